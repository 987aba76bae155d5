/** Decompression in every encoding and size; corrupt, truncated, too large or extended bodies are rejected. */
import { describe, expect, test } from 'bun:test'
import zlib from 'node:zlib'
import fc from 'fast-check'
import { quickestMs } from '../../tests/support/quickest.ts'
import { AppError } from '../errors.ts'
import { contentEncoding, type Encoding, inflate } from './body.ts'

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

async function outcome(encoding: Encoding, bytes: Uint8Array, within = limits): Promise<string | Uint8Array> {
  try {
    return await inflate(encoding, bytes, within)
  } catch (error) {
    if (error instanceof AppError) return error.code
    throw error
  }
}

const sizes = [2_000, 600_000]

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

  test('rejects a decompression bomb early', async () => {
    expect(await outcome(encoding, pack(new Uint8Array(300_000)))).toBe('payload_too_large')
    const bomb = pack(new Uint8Array(60_000_000))
    const whole = { bytesMax: 60_000_000, ratioMax: Infinity }
    const wholeMs = await quickestMs(() => inflate(encoding, bomb, whole), 3)
    const refusedMs = await quickestMs(async () => {
      expect(await outcome(encoding, bomb)).toBe('payload_too_large')
    }, 3)
    expect(refusedMs).toBeLessThan(wholeMs / 2)
  })

  test('a body truncated at any byte is corrupt', async () => {
    for (const size of sizes) {
      const packed = pack(sampleOf(size))
      for (const left of [1, 2, 5, packed.length >> 1, packed.length - 9, packed.length - 1]) {
        expect(await outcome(encoding, packed.subarray(0, left))).toBe('invalid_body')
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
