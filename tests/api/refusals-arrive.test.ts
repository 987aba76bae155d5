/**
 * A refusal arrives at clients that close their connection (Python's urllib, Node without keep-alive, HTTP/1.1 with
 * `Connection: close`), whatever its status and however large the body that nobody reads (RFC 9112 §9.6).
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { testServer, type TestServer } from '../support/server.ts'
import { tempDir } from '../support/temp-dir.ts'

let server: TestServer
let limited: TestServer
let keys: { [name: string]: string }
const temp = tempDir('clients')

beforeAll(async () => {
  server = await testServer({ ingestListen: { host: '127.0.0.1', port: 0 } })
  limited = await testServer({ rateLimits: { gateway: null, ingest: { count: 1, windowMs: 3_600_000 } } })
  keys = {
    ingest: await server.key('ingest'),
    secret: await server.key('secret'),
    wrong: `agtx_ik_${'A'.repeat(32)}`,
  }
  await Bun.write(join(temp.path, 'client.py'), python)
  await Bun.write(join(temp.path, 'client.mjs'), node)
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await limited[Symbol.asyncDispose]()
  temp.remove()
})

const python = `
import sys, json, urllib.request, urllib.error
for line in sys.stdin:
    ask = json.loads(line)
    request = urllib.request.Request(ask['url'], data=b'x' * ask['bytes'], headers=ask['headers'], method=ask['method'])
    try:
        status = urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        status = error.code
        error.read()
    except Exception as error:
        status = repr(error)
    print(json.dumps(status), flush=True)
`

const node = `
import { request } from 'node:http'
import { createInterface } from 'node:readline'
for await (const line of createInterface({ input: process.stdin })) {
  const { url, method, headers, bytes, chunked } = JSON.parse(line)
  const length = chunked ? {} : { 'content-length': bytes }
  const status = await new Promise((resolve) => {
    const sent = request(url, { method, agent: false, headers: { ...headers, ...length, connection: 'close' } })
    sent.on('response', (response) => { response.resume(); response.on('end', () => resolve(response.statusCode)) })
    sent.on('error', (error) => resolve(error.code))
    if (chunked) for (let left = bytes; left > 0; left -= 65536) sent.write(Buffer.alloc(Math.min(left, 65536), 'x'))
    sent.end(chunked ? undefined : Buffer.alloc(bytes, 'x'))
  })
  console.log(JSON.stringify(status))
}
`

interface Ask {
  url: string
  method: string
  headers: { [name: string]: string }
  bytes: number
  chunked?: boolean
}

/** The status of each answer, or the client's error. */
async function statuses(client: 'python' | 'node', asks: Ask[]): Promise<unknown[]> {
  const command = client === 'python' ? ['python3', 'client.py'] : ['node', 'client.mjs']
  const child = Bun.spawn(command, { cwd: temp.path, stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' })
  child.stdin.write(asks.map((ask) => `${JSON.stringify(ask)}\n`).join(''))
  await child.stdin.end()
  const lines = (await new Response(child.stdout).text()).trim().split('\n')
  return lines.map((line) => JSON.parse(line) as unknown)
}

const sizes = [1, 3_000, 70_000, 1_000_000, 9_000_000]
const json = { 'content-type': 'application/json' }

/** Every early refusal, with the smallest body that it concerns. */
function refusals(): {
  status: number
  path: string
  method?: string
  headers: Ask['headers']
  bytesMin?: number
}[] {
  const bearer = (key: string) => ({ authorization: `Bearer ${keys[key]}` })
  return [
    { status: 401, path: '/v1/sdk/events', headers: { ...json, ...bearer('wrong') } },
    { status: 401, path: '/v1/traces', headers: { ...json, ...bearer('wrong') } },
    { status: 401, path: '/mcp', headers: json },
    { status: 401, path: '/api/keys', headers: json },
    { status: 403, path: '/v1/sdk/events', headers: { ...json, ...bearer('secret') } },
    {
      status: 403,
      path: '/v1/sdk/events',
      headers: { ...json, ...bearer('ingest'), host: 'x', 'sec-fetch-site': 'same-origin' },
    },
    { status: 404, path: '/v1/nothing', headers: json },
    { status: 405, path: '/v1/sdk/events', method: 'PUT', headers: { ...json, ...bearer('secret') } },
    { status: 413, path: '/v1/sdk/events', headers: { ...json, ...bearer('ingest2') }, bytesMin: 9_000_000 },
    { status: 413, path: '/mcp', headers: { ...json, ...bearer('secret') }, bytesMin: 70_000 },
    { status: 413, path: '/v1/sdk/access-logs?siteId=a', headers: bearer('ingest2'), bytesMin: 70_000_000 },
    { status: 413, path: '/v1/traces', headers: { ...json, ...bearer('ingest2') }, bytesMin: 70_000_000 },
    { status: 415, path: '/v1/sdk/events', headers: { 'content-type': 'text/plain', ...bearer('ingest2') } },
    { status: 415, path: '/v1/traces', headers: { 'content-type': 'text/plain', ...bearer('ingest2') } },
  ]
}

describe.each(['python', 'node'] as const)('%s', (client) => {
  test('every early refusal arrives, at every size', async () => {
    keys['ingest2'] = await server.key('ingest')
    const asks = refusals().flatMap(({ status, path, method = 'POST', headers, bytesMin = 1 }) =>
      (bytesMin > 9_000_000 ? [bytesMin] : sizes.filter((size) => size >= bytesMin)).map((bytes) => ({
        status,
        url: server.url + path,
        method,
        headers,
        bytes,
      })),
    )
    expect(asks.length).toBeGreaterThan(50)
    const seenStatuses = await statuses(client, asks)
    const name = ({ status, url, bytes }: (typeof asks)[number], got: unknown) =>
      `${url.slice(server.url.length)} ${bytes} bytes, ${status}: ${String(got)}`
    expect(asks.map((ask, n) => name(ask, seenStatuses[n]))).toEqual(asks.map((ask) => name(ask, ask.status)))
  }, 120_000)

  test('a 429 arrives, and what a node or a listener refuses before routing', async () => {
    const headers = { ...json, authorization: `Bearer ${await limited.key('ingest')}` }
    const ask = (bytes: number) => ({ url: `${limited.url}/v1/sdk/events`, method: 'POST', headers, bytes })
    expect((await statuses(client, [1, ...sizes].map(ask))).slice(1)).toEqual(sizes.map(() => 429))
    const elsewhere = (bytes: number) => ({ ...ask(bytes), url: `${server.ingestUrl}/api/keys` })
    expect(await statuses(client, sizes.map(elsewhere))).toEqual(sizes.map(() => 404))
  }, 60_000)
})

test('a 507 of a full disk and a 503 of a full memory arrive', async () => {
  await using full = await testServer({ diskFloorBytes: 2 ** 60 })
  const ask = (to: TestServer, key: string, bytes: number): Ask => ({
    url: `${to.url}/v1/sdk/events`,
    method: 'POST',
    bytes,
    headers: { ...json, authorization: `Bearer ${key}` },
  })
  const fullKey = await full.key('ingest')
  const key = await server.key('ingest')
  // Bodies that never arrive take all that one key may have in flight.
  const { port } = new URL(server.url)
  const waiting = await Promise.all(
    [1, 2, 3].map(async () => {
      const socket = connect(Number(port), '127.0.0.1')
      socket.on('error', () => undefined)
      await once(socket, 'connect')
      const head = ['POST /v1/sdk/events HTTP/1.1', 'host: x', `authorization: Bearer ${key}`]
      socket.write([...head, 'content-length: 8000000', '', 'x'].join('\r\n'))
      return socket
    }),
  )
  const large = [3_000_000, 5_000_000, 8_000_000]
  const deadline = Date.now() + 30_000
  while ((await statuses('node', [ask(server, key, 3_000_000)]))[0] !== 503) {
    if (Date.now() > deadline) throw new Error('the bodies that wait take no share')
  }
  for (const client of ['python', 'node'] as const) {
    const asks = sizes.map((bytes) => ask(full, fullKey, bytes))
    expect(await statuses(client, asks)).toEqual(sizes.map(() => 507))
    expect(
      await statuses(
        client,
        large.map((bytes) => ask(server, key, bytes)),
      ),
    ).toEqual([503, 503, 503])
  }
  for (const socket of waiting) socket.destroy()
}, 90_000)

test('a body of unknown length above the limit gets its 413 in Node', async () => {
  const headers = { ...json, authorization: `Bearer ${await server.key('ingest')}` }
  const ask = {
    url: `${server.url}/v1/sdk/events`,
    method: 'POST',
    headers,
    bytes: 20_000_000,
    chunked: true,
  }
  expect(await statuses('node', [ask, ask, ask])).toEqual([413, 413, 413])
}, 60_000)
