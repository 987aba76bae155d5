/** Bodies over a real socket: limits, chunks, stalls, disconnects, text and JSON. */
import { afterAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { AppError, errorBody } from '../errors.ts'
import { readBody, readJsonObject } from './body.ts'

const bytesMax = 100_000
const deadlineMs = 1_000

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    try {
      const text = await readBody(request, { bytesMax, deadlineMs })
      return new Response(String(text.length))
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      const { status, details } = error
      return new Response(errorBody(error, 'req_1'), { status, headers: details.headers ?? {} })
    }
  },
})
afterAll(() => server.stop(true))

const post = (init: RequestInit): Promise<Response> =>
  fetch(`http://127.0.0.1:${server.port}/`, { method: 'POST', ...init })

/**
 * Sends pieces (numbers are pauses in ms) and gives what came back until the server hangs up, `enough` was said, or
 * `waitMs` passed after the last piece.
 */
function talk(
  pieces: (string | number)[],
  waitMs: number,
  enough?: string,
): Promise<{ answer: string; isClosed: boolean; sent: number }> {
  return new Promise((resolve) => {
    let answer = ''
    let sent = 0
    const socket = connect(server.port ?? 0, '127.0.0.1', async () => {
      for (const piece of pieces) {
        if (typeof piece === 'number') await Bun.sleep(piece)
        else if (!socket.destroyed) socket.write(piece)
        sent++
      }
      setTimeout(() => finish(false), waitMs)
    })
    const finish = (isClosed: boolean): void => {
      socket.destroy()
      resolve({ answer, isClosed, sent })
    }
    socket.on('data', (data) => {
      answer += data.toString()
      if (enough !== undefined && answer.includes(enough)) finish(false)
    })
    socket.on('close', () => finish(true))
    socket.on('error', () => finish(true))
  })
}

const head = (header: string): string => `POST / HTTP/1.1\r\nhost: a\r\n${header}\r\n\r\n`
const chunk = (bytes: number): string => `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`

async function thrownBy(reading: Promise<unknown>): Promise<AppError> {
  try {
    await reading
  } catch (error) {
    if (error instanceof AppError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

const request = (body: BodyInit | null, headers: Record<string, string> = {}): Request =>
  new Request('http://host/', { method: 'POST', body, headers })

describe('over a socket', () => {
  test('reads a body of declared length completely, also at the limit', async () => {
    expect(await (await post({ body: 'x'.repeat(bytesMax) })).text()).toBe(String(bytesMax))
    expect(await (await post({ body: '' })).text()).toBe('0')
    expect(await (await post({})).text()).toBe('0')
  })

  test('a declared length above the limit is 413 before the body arrives', async () => {
    const { answer } = await talk([head('content-length: 100001')], 200)
    expect(answer).toStartWith('HTTP/1.1 413 ')
    expect(answer).toContain('payload_too_large')
  })

  test('a client that sends a too large body gets its response on a connection that stays open', async () => {
    const next = head('content-length: 2') + 'ok'
    const declared = [head('content-length: 300000'), 'x'.repeat(100_000), 50, 'x'.repeat(200_000), 50, next]
    const chunked = [
      head('transfer-encoding: chunked'),
      chunk(200_000),
      50,
      chunk(100_000),
      '0\r\n\r\n',
      50,
      next,
    ]
    for (const pieces of [declared, chunked]) {
      const { answer, isClosed } = await talk(pieces, 300)
      expect(answer).toStartWith('HTTP/1.1 413 ')
      expect(answer).toContain('HTTP/1.1 200 ')
      expect(isClosed).toBe(false)
    }
  })

  test('reads a chunked body completely up to the limit', async () => {
    const pieces = [head('transfer-encoding: chunked'), chunk(50_000), 20, chunk(50_000), '0\r\n\r\n']
    expect((await talk(pieces, 200)).answer).toEndWith('100000')
  })

  test('an endless chunked body gets its response as soon as it exceeds the limit', async () => {
    const flood = Array.from({ length: 100 }, () => [chunk(20_000), 10]).flat()
    const pieces = [head('transfer-encoding: chunked'), ...flood]
    const { answer, sent } = await talk(pieces, 1_000, 'HTTP/1.1 413 ')
    expect(answer).toStartWith('HTTP/1.1 413 ')
    expect(sent).toBeLessThan(pieces.length * 0.9)
  })

  for (const header of ['content-length: 50', 'transfer-encoding: chunked']) {
    test(`a stalled client gets 503 and its connection is closed (${header})`, async () => {
      const start = header.startsWith('content') ? 'abc' : '3\r\nabc\r\n'
      const { answer, isClosed } = await talk([head(header), start], 5_000)
      expect(answer).toStartWith('HTTP/1.1 503 ')
      expect(answer).toContain('"overloaded"')
      expect(answer.toLowerCase()).toContain('retry-after: ')
      expect(isClosed).toBe(true)
    })
  }

  test('a client that disconnects halfway does no harm', async () => {
    await talk([head('content-length: 50'), 'abc'], 30)
    await talk([head('transfer-encoding: chunked'), '3\r\nabc\r\n'], 30)
    expect(await (await post({ body: 'still here' })).text()).toBe('10')
  })
})

describe('text', () => {
  const read = (body: BodyInit): Promise<string> => readBody(request(body), { bytesMax })

  test('removes a byte order mark and nothing else', async () => {
    expect(await read(new Uint8Array([0xef, 0xbb, 0xbf, 0x61, 0xe2, 0x82, 0xac]))).toBe('a€')
    expect(await read('größe \u{1f600} \0')).toBe('größe \u{1f600} \0')
  })

  test('rejects bytes that are not UTF-8, but not a valid body after them', async () => {
    const bad = [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80], [0xf4, 0x90, 0x80, 0x80]]
    for (const bytes of bad) {
      const error = await thrownBy(read(new Uint8Array([0x22, ...bytes, 0x22])))
      expect(error.code).toBe('invalid_json')
      expect(error.message).toContain('UTF-8')
    }
    expect(await read('fine')).toBe('fine')
  })
})

describe('readJsonObject', () => {
  const json = { 'content-type': 'application/json' }
  const codeOf = async (body: BodyInit | null, headers: Record<string, string> = json): Promise<string> =>
    (await thrownBy(readJsonObject(request(body, headers)))).code

  test('reads an object; a missing content-type is JSON', async () => {
    expect(await readJsonObject(request('{"a":[1]}', json))).toEqual({ a: [1] })
    expect(await readJsonObject(request(new TextEncoder().encode('{"a":1}')))).toEqual({ a: 1 })
    const spelled = { 'content-type': 'Application/JSON; Charset="UTF-8"' }
    expect(await readJsonObject(request('{}', spelled))).toEqual({})
  })

  test('an empty body is an object only with `emptyIsObject`', async () => {
    expect(await readJsonObject(request('', json), { bytesMax: 10 }, { emptyIsObject: true })).toEqual({})
    expect(await codeOf('')).toBe('invalid_json')
    expect(await codeOf(null)).toBe('invalid_json')
  })

  test('other media types and charsets are 415', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', 'json']) {
      expect(await codeOf('{}', { 'content-type': type })).toBe('unsupported_media_type')
    }
    expect(await codeOf('{}', { 'content-type': 'application/json; charset=utf-16' })).toBe(
      'unsupported_media_type',
    )
  })

  test('anything but an object is 400, and the error does not echo the body', async () => {
    for (const text of ['[]', 'null', '"x"', '1', 'true']) expect(await codeOf(text)).toBe('invalid_body')
    for (const text of ['{', '{"secret-canary":}', 'secret-canary', '{}{}', "{'a':1}"]) {
      const error = await thrownBy(readJsonObject(request(text, json)))
      expect(error.code).toBe('invalid_json')
      expect(errorBody(error, 'req_1')).not.toContain('canary')
    }
  })

  test('rejects nesting that would overflow the stack when serialized', async () => {
    const nested = (depth: number): string => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`
    expect(Object.keys(await readJsonObject(request(nested(100), json)))).toEqual(['a'])
    expect(await codeOf(nested(101))).toBe('invalid_body')
    expect(await codeOf(nested(30_000))).toBe('invalid_body')
  })

  test('the default limit is 64 KiB', async () => {
    expect(await codeOf(`{"a":"${'x'.repeat(64 * 1024)}"}`)).toBe('payload_too_large')
  })
})
