/**
 * Bodies over a real socket: limits, chunks, disconnects, text and JSON; and decompression in every encoding.
 */
import zlib from 'node:zlib'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { AppError, errorBody } from '../errors.ts'
import { readBody, readJsonObject, requireBodyCapacity } from './body.ts'
import { contentEncoding, inflate, type Encoding } from './inflate.ts'
import { setContext, type RequestContext } from './request.ts'
import { makeShares } from './shares.ts'

const bytesMax = 100_000

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request) {
    try {
      const text = await readBody(request, { bytesMax })
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
    let pieceCount = 0
    const socket = connect(server.port ?? 0, '127.0.0.1', async () => {
      for (const piece of pieces) {
        if (typeof piece === 'number') await Bun.sleep(piece)
        else if (!socket.destroyed) socket.write(piece)
        pieceCount++
      }
      setTimeout(() => finish(false), waitMs)
    })
    const finish = (isClosed: boolean): void => {
      socket.destroy()
      resolve({ answer, isClosed, sent: pieceCount })
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
    const { answer, sent: pieceCount } = await talk(pieces, 1_000, 'HTTP/1.1 413 ')
    expect(answer).toStartWith('HTTP/1.1 413 ')
    expect(pieceCount).toBeLessThan(pieces.length * 0.9)
  })

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

const limits = { bytesMax: 4_000_000, ratioMax: 100 }

// Brotli's own default takes a second for the large samples.
const quick = { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 }

const packers: [string, Encoding, (bytes: Uint8Array) => Uint8Array][] = [
  ['gzip', 'gzip', zlib.gzipSync],
  ['deflate', 'deflate', zlib.deflateSync],
  ['raw deflate', 'deflate', zlib.deflateRawSync],
  ['br', 'br', (bytes) => zlib.brotliCompressSync(bytes, { params: quick })],
  ['zstd', 'zstd', zlib.zstdCompressSync],
]

/** Text of about `bytes` bytes that packs to about a third: large ones go to the thread pool. */
function sampleOf(bytes: number): Uint8Array {
  let seed = 1
  let text = ''
  while (text.length < bytes) text += `{"id":"evt_${(seed = (seed * 48_271) % 2_147_483_647)}"}`
  return Buffer.from(text)
}

async function outcome(encoding: Encoding, bytes: Uint8Array, bounds = limits): Promise<string | Uint8Array> {
  try {
    return await inflate(encoding, bytes, bounds)
  } catch (error) {
    if (error instanceof AppError) return error.code
    throw error
  }
}

const sizes = [2_000, 600_000]
const largeSample = sampleOf(8_000_000) // brotli returns nothing before 4 MiB

describe.each(packers)('%s', (_name, encoding, pack) => {
  test('decompresses to the original bytes', async () => {
    for (const size of sizes) {
      const bytes = sampleOf(size)
      expect(Buffer.from((await outcome(encoding, pack(bytes))) as Uint8Array).equals(bytes)).toBe(true)
    }
  })

  test('enforces the limit to the byte', async () => {
    for (const size of sizes) {
      const bytes = sampleOf(size)
      const exact = { ...limits, bytesMax: bytes.length }
      expect((await outcome(encoding, pack(bytes), exact)).length).toBe(bytes.length)
      expect(await outcome(encoding, pack(bytes), { ...limits, bytesMax: bytes.length - 1 })).toBe(
        'payload_too_large',
      )
    }
  })

  test('rejects a decompression bomb before its end', async () => {
    expect(await outcome(encoding, pack(new Uint8Array(300_000)))).toBe('payload_too_large')
    // It does not read on after the limit: it never finds that the rest is damaged.
    const damaged = pack(largeSample).slice()
    const from = Math.floor(damaged.length * 0.9)
    damaged.fill(0xff, from, encoding === 'zstd' ? from + 64 : undefined) // the headers of its blocks are checked first
    expect(await outcome(encoding, damaged, { bytesMax: 9_000_000, ratioMax: Infinity })).toBe('invalid_body')
    const bounds = { bytesMax: 1_000_000, ratioMax: Infinity }
    expect(await outcome(encoding, damaged, bounds)).toBe('payload_too_large')
  })

  test('a body truncated at any byte is corrupt', async () => {
    for (const size of sizes) {
      const packed = pack(sampleOf(size))
      for (const cutLength of [1, 2, 5, packed.length >> 1, packed.length - 9, packed.length - 1]) {
        expect(await outcome(encoding, packed.subarray(0, cutLength))).toBe('invalid_body')
      }
    }
  })

  test('a body followed by garbage or zeros is corrupt', async () => {
    for (const size of sizes) {
      for (const tail of [Buffer.alloc(5), Buffer.from('garbage garbage')]) {
        expect(await outcome(encoding, Buffer.concat([pack(sampleOf(size)), tail]))).toBe('invalid_body')
      }
    }
  })

  test('random bytes always fail', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 300 }), (bytes) => {
        try {
          return inflate(encoding, bytes, limits) instanceof Uint8Array
        } catch (error) {
          return error instanceof AppError && error.status < 500
        }
      }),
    )
  })
})

describe('several members', () => {
  const bytes = sampleOf(2_000)
  const twice = Buffer.concat([bytes, bytes])
  test.each([
    ['gzip', zlib.gzipSync],
    ['zstd', zlib.zstdCompressSync],
  ] as const)('%s may come in several pieces, as its format allows', async (encoding, pack) => {
    const packed = Buffer.concat([pack(bytes), pack(bytes)])
    expect(Buffer.from((await outcome(encoding, packed)) as Uint8Array).equals(twice)).toBe(true)
  })

  test('a skippable zstd frame is skipped', async () => {
    const skippable = Buffer.from([0x51, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3])
    const packed = Buffer.concat([skippable, zlib.zstdCompressSync(bytes)])
    expect(Buffer.from((await outcome('zstd', packed)) as Uint8Array).equals(Buffer.from(bytes))).toBe(true)
  })

  test('zstd with a checksum, streamed without a known size', async () => {
    const params = { [zlib.constants.ZSTD_c_checksumFlag]: 1 }
    const packed = zlib.zstdCompressSync(bytes, { params })
    expect(await outcome('zstd', packed)).toHaveLength(bytes.length)
    expect(await outcome('zstd', packed.subarray(0, -1))).toBe('invalid_body')
  })

  test('rejects zstd with a window of more than 8 MiB', async () => {
    // Magic, no single segment, window descriptor 2^27; then one raw block with a byte.
    const header = [0x28, 0xb5, 0x2f, 0xfd, 0x00, (27 - 10) << 3]
    const block = [(1 << 3) | 1, 0, 0, 0x61]
    expect(await outcome('zstd', Buffer.from([...header, ...block]))).toBe('invalid_body')
    header[5] = (20 - 10) << 3
    expect(await outcome('zstd', Buffer.from([...header, ...block]))).toHaveLength(1)
  })
})

test('the header contains one encoding in any case; lists and unknown encodings are 415', () => {
  expect(contentEncoding(null)).toBe(null)
  expect(contentEncoding('identity')).toBe(null)
  expect(contentEncoding('')).toBe(null)
  expect(contentEncoding(' GZIP ')).toBe('gzip')
  expect(contentEncoding('x-gzip')).toBe('gzip')
  for (const name of ['deflate', 'br', 'zstd'] as const) expect(contentEncoding(name)).toBe(name)
  for (const name of ['gzip, br', 'identity, gzip', 'compress', 'snappy', 'gzip;q=1', '*']) {
    let code = ''
    try {
      contentEncoding(name)
    } catch (error) {
      code = (error as AppError).code
    }
    expect(code).toBe('unsupported_encoding')
  }
})

test('an empty body stays empty', () => {
  expect(inflate('gzip', new Uint8Array(), limits)).toHaveLength(0)
})

/** A request whose body consists of these parts; `bodyBytesMax` bytes of bodies may be in flight. */
function requestOf(parts: Uint8Array[], bodyBytesMax: number): Request {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const part of parts) controller.enqueue(part)
      controller.close()
    },
  })
  const request = new Request('http://localhost/', { method: 'POST', body })
  const inFlight = { bodies: makeShares(bodyBytesMax), responses: makeShares(0) }
  const sender = () => ({ address: '127.0.0.1', secure: false })
  setContext(request, { sender, inFlight } as RequestContext)
  return request
}

const threeParts = () => [1, 2, 3].map(() => new Uint8Array(50_000).fill(32))

test('the parts of a refused body are freed when they are discarded, not when garbage is collected', async () => {
  const parts = threeParts()
  const refusal = await requireBodyCapacity(requestOf(parts, 1_000), 150_000)?.catch(
    (error: AppError) => error,
  )
  expect(refusal).toMatchObject({ code: 'overloaded' })
  expect(parts.map(({ length }) => length)).toEqual([0, 0, 0])
})

test('the parts of a body of unknown length are freed when they are joined', async () => {
  const parts = threeParts()
  expect(await readBody(requestOf(parts, 1_000_000), { bytesMax: 200_000 })).toHaveLength(150_000)
  expect(parts.map(({ length }) => length)).toEqual([0, 0, 0])
})
