/** Messages over stdio: lines in any pieces, answers in any order, and failures as errors of the protocol. */
import { expect, test } from 'bun:test'
import { httpExchange, serveLines, type Exchange } from './stdio.ts'

async function linesFor(pieces: (string | Uint8Array)[], exchange: Exchange): Promise<unknown[]> {
  const written: unknown[] = []
  const bytes = pieces.map((piece) => (typeof piece === 'string' ? new TextEncoder().encode(piece) : piece))
  const input = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of bytes) controller.enqueue(piece)
      controller.close()
    },
  })
  await serveLines({ exchange, input, write: (line) => void written.push(JSON.parse(line)) })
  return written
}

const echo: Exchange = async (message) => {
  const { id } = message as { id?: unknown }
  return id === undefined ? null : { jsonrpc: '2.0', id, result: message }
}

test('one answer per request, whatever the pieces; none for notifications and empty lines', async () => {
  const message = { jsonrpc: '2.0', id: 'ü', method: 'x' }
  const [first, second] = [1, 2].map((n) => JSON.stringify(n === 1 ? message : { ...message, id: 2 }))
  const text = `${first}\n\n{"jsonrpc":"2.0","method":"n"}\r\n${second}`
  const bytes = new TextEncoder().encode(text)
  for (const size of [1, 3, 7, 1_000]) {
    const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) =>
      bytes.slice(n * size, n * size + size),
    )
    expect(await linesFor(pieces, echo)).toMatchObject([{ id: 'ü' }, { id: 2 }])
  }
})

test('lines that are no JSON, too long, or fail', async () => {
  const long = `{"jsonrpc":"2.0","id":1,"method":"${'x'.repeat(70_000)}"}`
  const nextMessage = '{"jsonrpc":"2.0","id":2,"method":"x"}'
  expect(
    await linesFor(['nonsense\n', long.slice(0, 69_000), long.slice(69_000), '\n', `${nextMessage}\n`], echo),
  ).toMatchObject([{ error: { code: -32700 } }, { error: { code: -32600 } }, { id: 2 }])
  const fails: Exchange = () => Promise.reject(new Error('No appliance runs.'))
  expect(await linesFor([`${nextMessage}\n{"jsonrpc":"2.0","method":"n"}\n`], fails)).toEqual([
    { jsonrpc: '2.0', id: 2, error: { code: -32603, message: 'No appliance runs.' } },
  ])
})

test('at most 16 are passed on at a time, and a slow one holds up no other', async () => {
  let running = 0
  let most = 0
  const slow: Exchange = async (message) => {
    most = Math.max(most, ++running)
    const { id } = message as { id: number }
    await Bun.sleep(id === 0 ? 60 : 1)
    running--
    return { id }
  }
  const text = Array.from({ length: 60 }, (_, id) => `{"id":${id}}\n`).join('')
  const answers = await linesFor([text], slow)
  expect([answers.length, most]).toEqual([60, 16])
  expect(answers.at(0)).not.toEqual({ id: 0 })
})

test('over HTTP: headers repeat the message; the agreed version and refusals come back', async () => {
  const seenHeaders: { [name: string]: string | null }[] = []
  using server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const names = ['authorization', 'mcp-protocol-version', 'mcp-method', 'mcp-name']
      seenHeaders.push(Object.fromEntries(names.map((name) => [name, request.headers.get(name)])))
      const { id, method } = (await request.json()) as { id?: number; method: string }
      if (id === undefined) return new Response(null, { status: 202 })
      if (method === 'refuse')
        return Response.json({ error: 'unauthorized', message: 'Unknown API key.' }, { status: 401 })
      if (method === 'page') return new Response('<html>', { status: 502 })
      const result = method === 'initialize' ? { protocolVersion: '2025-06-18' } : {}
      return Response.json({ jsonrpc: '2.0', id, result })
    },
  })
  const exchange = httpExchange(server.url.origin, 'agtx_sk_x')
  await exchange({ id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18' } })
  expect(await exchange({ method: 'notifications/initialized' })).toBeNull()
  await exchange({ id: 2, method: 'tools/call', params: { name: '日本' } })
  const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' }
  await exchange({ id: 3, method: 'tools/list', params: { _meta: meta } })
  const common = { authorization: 'Bearer agtx_sk_x' }
  expect(seenHeaders).toEqual([
    { ...common, 'mcp-protocol-version': null, 'mcp-method': 'initialize', 'mcp-name': null },
    {
      ...common,
      'mcp-protocol-version': '2025-06-18',
      'mcp-method': 'notifications/initialized',
      'mcp-name': null,
    },
    {
      ...common,
      'mcp-protocol-version': '2025-06-18',
      'mcp-method': 'tools/call',
      'mcp-name': '=?base64?5pel5pys?=',
    },
    { ...common, 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list', 'mcp-name': null },
  ])
  const refused = (method: string) =>
    Promise.resolve(exchange({ id: 4, method })).catch((error: Error) => error.message)
  expect(await refused('refuse')).toBe('Unknown API key.')
  expect(await refused('page')).toContain('status 502')
})
