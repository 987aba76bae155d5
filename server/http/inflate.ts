/** Decompresses request bodies within limits, without a long turn of the event loop. */
import type { Transform } from 'node:stream'
import zlib from 'node:zlib'
import { AppError } from '../errors.ts'

export type Encoding = 'gzip' | 'deflate' | 'br' | 'zstd'

interface InflateLimits {
  bytesMax: number // after decompression
  ratioMax: number // decompressed : compressed
}

/** Inputs up to this size are decompressed inline (about 1 ms at the ratio limit); larger ones in the thread pool. */
const syncBytesMax = 16 * 1024

/** The result of `node:zlib` with `info`: the output, and how many input bytes were consumed. */
interface Inflated {
  buffer: Uint8Array
  engine: { bytesWritten: number }
}

type Options = zlib.ZlibOptions & zlib.BrotliOptions & zlib.ZstdOptions
type InflateSync = (bytes: Uint8Array, options: Options) => unknown
type InflateAsync = (
  bytes: Uint8Array,
  options: Options,
  callback: (error: Error | null, result: unknown) => void,
) => void

// RFC 9659: zstd content encoding uses a window of at most 8 MiB; a larger one is rejected before memory is allocated.
const zstdParams = { [zlib.constants.ZSTD_d_windowLogMax]: 23 }

interface Coder {
  sync: InflateSync
  async: InflateAsync
  stream(options: Options): Transform & { bytesWritten: number }
  params?: object
}

const coders: Record<Encoding | 'deflate-raw', Coder> = {
  gzip: { sync: zlib.gunzipSync, async: zlib.gunzip, stream: zlib.createGunzip },
  deflate: { sync: zlib.inflateSync, async: zlib.inflate, stream: zlib.createInflate },
  'deflate-raw': { sync: zlib.inflateRawSync, async: zlib.inflateRaw, stream: zlib.createInflateRaw },
  br: {
    sync: zlib.brotliDecompressSync,
    async: zlib.brotliDecompress,
    stream: zlib.createBrotliDecompress,
  },
  zstd: {
    sync: zlib.zstdDecompressSync,
    async: zlib.zstdDecompress,
    stream: zlib.createZstdDecompress,
    params: zstdParams,
  },
}

/** Reads a content-encoding header; null means uncompressed. Throws 415 for a list or an unknown encoding. */
export function contentEncoding(header: string | null): Encoding | null {
  if (header === null) return null
  const name = header.trim().toLowerCase()
  if (name === '' || name === 'identity') return null
  if (name === 'gzip' || name === 'x-gzip') return 'gzip'
  if (name === 'deflate' || name === 'br' || name === 'zstd') return name
  throw new AppError('unsupported_encoding', 'This content-encoding is not supported.', {
    hint: 'Send the body uncompressed, or encoded as gzip, deflate, br or zstd.',
    headers: { 'accept-encoding': 'gzip, deflate, br, zstd' },
  })
}

/** The decompressed body; a promise for large inputs, so that the HTTP thread is not blocked. */
export function inflate(
  encoding: Encoding,
  bytes: Uint8Array,
  limits: InflateLimits,
): Uint8Array | Promise<Uint8Array> {
  if (bytes.length === 0) return bytes
  if (encoding === 'zstd' && !isWholeZstd(bytes)) throw corrupt()
  const coder = coders[encoding === 'deflate' && !hasZlibHeader(bytes) ? 'deflate-raw' : encoding]
  const options = {
    info: true,
    maxOutputLength: Math.min(limits.bytesMax, bytes.length * limits.ratioMax),
    chunkSize: bytes.length <= syncBytesMax ? 64 * 1024 : 256 * 1024,
    ...(coder.params === undefined ? {} : { params: coder.params }),
  } as Options
  if (bytes.length > syncBytesMax) return inflateOutside(coder, bytes, options, limits)
  let result: unknown
  try {
    result = coder.sync(bytes, options)
  } catch (error) {
    throw refusal(error, limits)
  }
  if (!usedAll(result, bytes)) throw corrupt()
  return (result as Inflated).buffer
}

/** Output up to this size is assembled in one piece. */
const pieceBytesMax = 2 * 1024 * 1024

/**
 * Decompresses in the thread pool. A large output is read part by part and assembled with pauses: for 64 MiB that would
 * occupy the HTTP thread for 200 ms in one piece, most of it to get memory from the system.
 */
async function inflateOutside(
  coder: Coder,
  bytes: Uint8Array,
  options: Options,
  limits: InflateLimits,
): Promise<Uint8Array> {
  const bytesMax = options.maxOutputLength ?? 0
  const small = { ...options, maxOutputLength: Math.min(bytesMax, pieceBytesMax) }
  const whole = await new Promise<Inflated | null>((resolve, reject) => {
    coder.async(bytes, small, (error, result) => {
      if (error === null || error === undefined) resolve(result as Inflated)
      else if (isTooLarge(error) && bytesMax > pieceBytesMax) resolve(null)
      else reject(refusal(error, limits))
    })
  })
  if (whole === null) return inflateParts(coder, bytes, options, limits)
  if (!usedAll(whole, bytes)) throw corrupt()
  return whole.buffer
}

async function inflateParts(
  coder: Coder,
  bytes: Uint8Array,
  options: Options,
  limits: InflateLimits,
): Promise<Uint8Array> {
  const { maxOutputLength: bytesMax = 0, info: _, ...streamOptions } = options
  const stream = coder.stream(streamOptions)
  const parts: Uint8Array[] = []
  let total = 0
  try {
    stream.end(bytes)
    for await (const part of stream as AsyncIterable<Buffer>) {
      total += part.length
      if (total > bytesMax) throw tooLargeInflated(limits)
      parts.push(part)
    }
  } catch (error) {
    throw error instanceof AppError ? error : refusal(error, limits)
  } finally {
    stream.destroy()
  }
  if (stream.bytesWritten !== bytes.length) throw corrupt()
  return assemble(parts, total)
}

/** Joins the parts and frees the memory of each, with a pause after every few. */
export async function assemble(parts: readonly Uint8Array[], total: number): Promise<Uint8Array> {
  const whole = Buffer.allocUnsafeSlow(total)
  let offset = 0
  let sinceBytes = 0
  for (const part of parts) {
    whole.set(part, offset)
    offset += part.length
    sinceBytes += part.length
    free(part)
    if (sinceBytes < pieceBytesMax) continue
    sinceBytes = 0
    await new Promise((resolve) => setImmediate(resolve))
  }
  return whole
}

/** zlib and brotli stop silently at the end of their data, so extra bytes would be dropped unread. */
function usedAll(result: unknown, bytes: Uint8Array): boolean {
  return (result as Inflated).engine.bytesWritten === bytes.length
}

function isTooLarge(error: unknown): boolean {
  return (error as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE'
}

function refusal(error: unknown, limits: InflateLimits): AppError {
  return isTooLarge(error) ? tooLargeInflated(limits) : corrupt()
}

function tooLargeInflated(limits: InflateLimits): AppError {
  return new AppError(
    'payload_too_large',
    `The decompressed body exceeds ${limits.bytesMax} bytes or ${limits.ratioMax} times its compressed size.`,
  )
}

function corrupt(): AppError {
  return new AppError('invalid_body', 'The compressed body is corrupt, truncated or followed by extra bytes.')
}

/** HTTP's "deflate" is the zlib format (RFC 9110), but some clients send raw deflate; the header distinguishes them. */
function hasZlibHeader(bytes: Uint8Array): boolean {
  const first = bytes[0] ?? 0
  return (first & 0x0f) === 8 && ((first << 8) | (bytes[1] ?? 0)) % 31 === 0
}

/** Whether the bytes are complete zstd frames and nothing else: Bun's zstd accepts a truncated frame as complete. */
function isWholeZstd(bytes: Uint8Array): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let offset = 0
  while (offset < bytes.length) {
    if (offset + 8 > bytes.length) return false
    const magic = view.getUint32(offset, true)
    if (magic >>> 4 === 0x184d2a5) offset += 8 + view.getUint32(offset + 4, true)
    else if (magic === 0xfd2fb528) offset = zstdFrameEnd(view, offset)
    else return false
  }
  return offset === bytes.length
}

/** The end of the frame at `offset` (RFC 8878 §3.1.1), or Infinity when it is truncated. */
function zstdFrameEnd(view: DataView, offset: number): number {
  const descriptor = view.getUint8(offset + 4)
  const single = (descriptor >> 5) & 1
  const contentSizeBytes = [single, 2, 4, 8][descriptor >> 6] ?? 0
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3] ?? 0
  let next = offset + 5 + (1 - single) + dictionaryBytes + contentSizeBytes
  for (;;) {
    if (next + 3 > view.byteLength) return Infinity
    const header = view.getUint16(next, true) | (view.getUint8(next + 2) << 16)
    const isRle = ((header >> 1) & 3) === 1
    next += 3 + (isRle ? 1 : header >> 3)
    if ((header & 1) === 1) return next + ((descriptor >> 2) & 1) * 4
  }
}

/**
 * Frees the memory of a part of a body now. Left to the garbage collector, the parts of 200 refused bodies of 7 MB
 * occupied 100 MiB more.
 */
export function free(part: Uint8Array): void {
  if (part.buffer instanceof ArrayBuffer) part.buffer.transfer(0)
}
