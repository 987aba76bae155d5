/** Inflates compressed request bodies under an output cap; refuses the corrupt, the cut and what has a tail. */
import zlib from 'node:zlib'
import { AppError } from '../errors.ts'

export type Encoding = 'gzip' | 'deflate' | 'br' | 'zstd'

export interface InflateLimits {
  bytesMax: number // after inflating
  ratioMax: number // inflated : compressed
}

/** Inputs up to this size are inflated at once (about 1 ms at the ratio cap); larger ones go to the thread pool. */
const syncBytesMax = 16 * 1024

/** What `node:zlib` gives when asked for `info`: the output, and how much of the input was used. */
interface Inflated {
  buffer: Uint8Array
  engine: { bytesWritten: number }
}

type Options = zlib.ZlibOptions & zlib.BrotliOptions & zlib.ZstdOptions
type InflateSync = (bytes: Uint8Array, options: Options) => unknown
type InflateAsync = (
  bytes: Uint8Array,
  options: Options,
  done: (error: Error | null, result: unknown) => void,
) => void

// RFC 9659: a zstd content coding needs a window of at most 8 MiB; more is refused before memory is taken for it.
const zstdParams = { [zlib.constants.ZSTD_d_windowLogMax]: 23 }

const coders: Record<Encoding | 'deflate-raw', { sync: InflateSync; async: InflateAsync; params?: object }> =
  {
    gzip: { sync: zlib.gunzipSync, async: zlib.gunzip },
    deflate: { sync: zlib.inflateSync, async: zlib.inflate },
    'deflate-raw': { sync: zlib.inflateRawSync, async: zlib.inflateRaw },
    br: { sync: zlib.brotliDecompressSync, async: zlib.brotliDecompress },
    zstd: { sync: zlib.zstdDecompressSync, async: zlib.zstdDecompress, params: zstdParams },
  }

/** Reads a content-encoding header: null means as is. A list and an unknown coding are 415. */
export function contentEncoding(header: string | null): Encoding | null {
  if (header === null) return null
  const name = header.trim().toLowerCase()
  if (name === '' || name === 'identity') return null
  if (name === 'gzip' || name === 'x-gzip') return 'gzip'
  if (name === 'deflate' || name === 'br' || name === 'zstd') return name
  throw new AppError('unsupported_encoding', 'This content-encoding is not supported.', {
    hint: 'Send the body as it is, or with one of gzip, deflate, br, zstd.',
    headers: { 'accept-encoding': 'gzip, deflate, br, zstd' },
  })
}

/** The inflated body; a promise for large inputs, so that the HTTP thread is not held. */
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
  if (bytes.length > syncBytesMax) {
    return new Promise((resolve, reject) => {
      coder.async(bytes, options, (error, result) => {
        if (error !== null && error !== undefined) reject(refusal(error, limits))
        else if (usedAll(result, bytes)) resolve((result as Inflated).buffer)
        else reject(corrupt())
      })
    })
  }
  let result: unknown
  try {
    result = coder.sync(bytes, options)
  } catch (error) {
    throw refusal(error, limits)
  }
  if (!usedAll(result, bytes)) throw corrupt()
  return (result as Inflated).buffer
}

/** zlib and brotli stop silently at the end of their data: what follows would be dropped unread. */
function usedAll(result: unknown, bytes: Uint8Array): boolean {
  return (result as Inflated).engine.bytesWritten === bytes.length
}

function refusal(error: unknown, limits: InflateLimits): AppError {
  if ((error as { code?: unknown }).code !== 'ERR_BUFFER_TOO_LARGE') return corrupt()
  return new AppError(
    'payload_too_large',
    `The body inflates to more than ${limits.bytesMax} bytes or more than ${limits.ratioMax} times its size.`,
  )
}

function corrupt(): AppError {
  return new AppError('invalid_body', 'The compressed body is corrupt, cut short or followed by other bytes.')
}

/** HTTP's "deflate" is the zlib format (RFC 9110), but some clients send raw deflate; the header tells them apart. */
function hasZlibHeader(bytes: Uint8Array): boolean {
  const first = bytes[0] ?? 0
  return (first & 0x0f) === 8 && ((first << 8) | (bytes[1] ?? 0)) % 31 === 0
}

/** Whether the bytes are whole zstd frames and nothing else: Bun's zstd takes a cut frame for a finished one. */
function isWholeZstd(bytes: Uint8Array): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 0
  while (at < bytes.length) {
    if (at + 8 > bytes.length) return false
    const magic = view.getUint32(at, true)
    if (magic >>> 4 === 0x184d2a5) at += 8 + view.getUint32(at + 4, true)
    else if (magic === 0xfd2fb528) at = zstdFrameEnd(view, at)
    else return false
  }
  return at === bytes.length
}

/** Where the frame at `at` ends (RFC 8878 §3.1.1), or Infinity when it does not. */
function zstdFrameEnd(view: DataView, at: number): number {
  const descriptor = view.getUint8(at + 4)
  const single = (descriptor >> 5) & 1
  const contentSizeBytes = [single, 2, 4, 8][descriptor >> 6] ?? 0
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3] ?? 0
  let next = at + 5 + (1 - single) + dictionaryBytes + contentSizeBytes
  for (;;) {
    if (next + 3 > view.byteLength) return Infinity
    const header = view.getUint16(next, true) | (view.getUint8(next + 2) << 16)
    const isRle = ((header >> 1) & 3) === 1
    next += 3 + (isRle ? 1 : header >> 3)
    if ((header & 1) === 1) return next + ((descriptor >> 2) & 1) * 4
  }
}
