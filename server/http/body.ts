/**
 * Reads request bodies within limits: type, bytes, decompression, UTF-8, JSON. Errors never echo bodies. The deadline
 * of the request (`listener.ts`) closes the connection of a body that does not arrive, which ends the reading of it.
 */
import zlib from 'node:zlib'
import { AppError, retryAfter } from '../errors.ts'
import { limits } from '../limits.ts'
import { contextIfAny, ownerOf, type RequestContext } from './request.ts'
import { isDeeperThan } from '../text/json-scan.ts'
import type { Json } from '../../db/contract/store.ts'
import type { Share, Shares } from './shares.ts'

export interface BodyLimits {
  bytesMax: number // as sent, and again after decompression
  ratioMax?: number // decompressed : compressed; 100 by default
}

export interface JsonObject {
  [field: string]: Json
}

const decoder = new TextDecoder('utf-8', { fatal: true }) // removes a BOM

/** The body as text. Throws like `readBytes`, and 400 when it is not UTF-8. */
export async function readBody(request: Request, bodyLimits: BodyLimits): Promise<string> {
  return decodeBody(await readBytes(request, bodyLimits))
}

/** The decompressed body. Throws 413 above a limit, 415 for an unknown encoding, 400 when corrupt or cut short. */
export async function readBytes(request: Request, bodyLimits: BodyLimits): Promise<Uint8Array> {
  const { bytesMax, ratioMax = limits.bodyRatioMax } = bodyLimits
  const encoding = contentEncoding(request.headers.get('content-encoding'))
  const declared = Number(request.headers.get('content-length') ?? Number.NaN)
  if (declared > bytesMax) throw tooLarge(bytesMax)
  // Bun enforces a declared length, so only a body of unknown length is counted while it arrives.
  const isDeclared = !Number.isNaN(declared)
  const context = contextIfAny(request)
  const expected = isDeclared ? declared : 0
  const share = context === null ? null : acquireShare(context, expected, bytesMax)
  if (context !== null && share === null) await refuseBody(request, expected)
  let bytes: Uint8Array
  if (isDeclared) {
    try {
      bytes = await request.bytes()
    } catch {
      cutShort()
    }
  } else bytes = await readCounted(request, bytesMax, share)
  if (bytes.length > bytesMax) throw tooLarge(bytesMax)
  if (encoding === null) return bytes
  const inflated = await inflate(encoding, bytes, { bytesMax, ratioMax })
  if (share?.grow(inflated.length) === false) throw tooManyBodies()
  return inflated
}

/**
 * Undefined (at once) when a body of this length fits among those in flight; otherwise rejects with 503. Discards what
 * arrives of a large one for 2 s first, because a client whose connection is closed while it sends sees no response.
 */
export function requireBodyCapacity(
  request: Request,
  bytes: number,
  bytesMax: number = limits.bodyBytesMax,
): Promise<void> | undefined {
  const context = contextIfAny(request)
  if (context === null || sharesFor(context, bytesMax).fits(ownerOf(context), bytes)) return undefined
  return refuseBody(request, bytes)
}

async function refuseBody(request: Request, bytes: number): Promise<never> {
  if (bytes > 0 && bytes <= limits.unreadBodyBytesMax) throw tooManyBodies()
  const isWhole = await discard(request, limits.refusedBodyMs)
  throw tooManyBodies(isWhole ? {} : { connection: 'close' })
}

/** Routes with larger bodies have a share of their own, so that neither kind can occupy the other's. */
function sharesFor({ inFlight }: RequestContext, bytesMax: number): Shares {
  return bytesMax > limits.bodyBytesMax ? inFlight.largeBodies : inFlight.bodies
}

/** Counts the body's bytes as in flight until they are released or the request is answered. Null: they do not fit. */
function acquireShare(context: RequestContext, bytes: number, bytesMax: number): Share | null {
  const share = sharesFor(context, bytesMax).acquire(ownerOf(context), bytes)
  if (share !== null) context.body = share
  return share
}

let discarding = 0

/** Reads and discards a body. False when it did not end in time, or when too many are being discarded already. */
async function discard(request: Request, ms: number): Promise<boolean> {
  if (discarding >= limits.refusedBodiesMax) return false
  const reader = request.body?.getReader()
  if (reader === undefined) return true
  discarding++
  try {
    return await readToEnd(reader, ms)
  } finally {
    discarding--
  }
}

async function readToEnd(reader: ReadableStreamDefaultReader<Uint8Array>, ms: number): Promise<boolean> {
  const late = Bun.sleep(ms).then(() => 'late' as const)
  for (;;) {
    const next = await Promise.race([reader.read().catch(() => null), late])
    if (next === null || next === 'late') return false
    if (next.done) return true
    free(next.value)
  }
}

/**
 * Frees the memory of a part of a body now. Left to the garbage collector, the parts of 200 refused bodies of 7 MB
 * occupied 100 MiB more.
 */
function free(part: Uint8Array): void {
  if (part.buffer instanceof ArrayBuffer) part.buffer.transfer(0)
}

function tooManyBodies(headers: { [name: string]: string } = {}): AppError {
  const message = 'Too many request bodies are in flight. Try again later.'
  return new AppError('overloaded', message, { headers: { ...retryAfter(), ...headers } })
}

/** The text of a body without its byte order mark; throws 400 when it is not UTF-8. */
export function decodeBody(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw new AppError('invalid_json', 'The body is not valid UTF-8.')
  }
}

/** A small JSON object. With `emptyIsObject` an empty body is read as `{}` (contract §1: audit export and replay). */
export async function readJsonObject(
  request: Request,
  bodyLimits: BodyLimits = { bytesMax: limits.jsonBodyBytesMax },
  options: { emptyIsObject?: boolean } = {},
): Promise<JsonObject> {
  mediaType(request.headers.get('content-type'), ['application/json'])
  const text = await readBody(request, bodyLimits)
  if (text === '' && options.emptyIsObject === true) return {}
  const value = parseJson(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new AppError('invalid_body', 'The body must be a JSON object.')
  }
  // Deeper values parse, but overflow the stack when they are serialized.
  if (isDeeperThan(value, limits.jsonDepthMax)) {
    throw new AppError('invalid_body', `The body is nested deeper than ${limits.jsonDepthMax} levels.`)
  }
  return value
}

/** Parses JSON. Throws 400 `invalid_json` without the parser's message, because that quotes the body. */
export function parseJson(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    throw new AppError(
      'invalid_json',
      text.trim() === '' ? 'The body is empty.' : 'The body is not valid JSON.',
    )
  }
}

/** Reads a chunked body and counts its bytes while they arrive; drops it when it is too large. */
async function readCounted(request: Request, bytesMax: number, share: Share | null): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array()
  const reader = request.body.getReader()
  const parts: Uint8Array[] = []
  let total = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      total += value.length
      if (total > bytesMax) {
        void reader.cancel().catch(() => undefined)
        throw tooLarge(bytesMax)
      }
      if (share?.grow(value.length) === false) {
        void reader.cancel().catch(() => undefined)
        throw tooManyBodies({ connection: 'close' })
      }
      parts.push(value)
    }
  } catch (error) {
    if (error instanceof AppError) throw error
    cutShort()
  }
  if (parts.length === 1 && parts[0] !== undefined) return parts[0]
  const whole = Buffer.concat(parts, total)
  for (const part of parts) free(part)
  return whole
}

// Without `connection: close`: a client that is still sending when the connection closes (Node's fetch, Python) sees a
// broken pipe instead of this response. The parser reads and discards the rest.
function tooLarge(bytesMax: number): AppError {
  return new AppError('payload_too_large', `The body is larger than ${bytesMax} bytes.`)
}

function cutShort(): never {
  throw new AppError('invalid_body', 'The connection closed before the whole body arrived.')
}

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
  done: (error: Error | null, result: unknown) => void,
) => void

// RFC 9659: zstd content encoding uses a window of at most 8 MiB; a larger one is rejected before memory is allocated.
const zstdParams = { [zlib.constants.ZSTD_d_windowLogMax]: 23 }

const coders: Record<Encoding | 'deflate-raw', { sync: InflateSync; async: InflateAsync; params?: object }> =
  {
    gzip: { sync: zlib.gunzipSync, async: zlib.gunzip },
    deflate: { sync: zlib.inflateSync, async: zlib.inflate },
    'deflate-raw': { sync: zlib.inflateRawSync, async: zlib.inflateRaw },
    br: { sync: zlib.brotliDecompressSync, async: zlib.brotliDecompress },
    zstd: { sync: zlib.zstdDecompressSync, async: zlib.zstdDecompress, params: zstdParams },
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

/** zlib and brotli stop silently at the end of their data, so extra bytes would be dropped unread. */
function usedAll(result: unknown, bytes: Uint8Array): boolean {
  return (result as Inflated).engine.bytesWritten === bytes.length
}

function refusal(error: unknown, limits: InflateLimits): AppError {
  if ((error as { code?: unknown }).code !== 'ERR_BUFFER_TOO_LARGE') return corrupt()
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

/** The end of the frame at `at` (RFC 8878 §3.1.1), or Infinity when it is truncated. */
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

/**
 * Refuses the body of a form, which any page may send with a person's cookie, before reading it. Also where no body is
 * read, so that no route that changes something can be called that way.
 */
export function requireJson(request: Request): void {
  if (request.method === 'GET' || request.method === 'HEAD') return
  mediaType(request.headers.get('content-type'), ['application/json'])
}

/** The media type of the body, one of `known`; without a header the first of them (contract §1). Throws 415. */
export function mediaType<Known extends string>(
  header: string | null,
  known: readonly [Known, ...Known[]],
): Known {
  if (header === null) return known[0]
  for (const type of known) if (header === type) return type
  const [name = '', ...parameters] = header.split(';')
  const lower = name.trim().toLowerCase()
  if (lower === '' && parameters.length === 0) return known[0]
  const found = known.find((type) => type === lower)
  if (found === undefined) {
    throw new AppError('unsupported_media_type', `The content-type must be ${known.join(' or ')}.`, {
      hint: `Send the header "content-type: ${known[0]}".`,
    })
  }
  for (const parameter of parameters) {
    const [label = '', value = ''] = parameter.split('=')
    if (label.trim().toLowerCase() !== 'charset') continue
    const charset = value.trim().replace(/^"(.*)"$/, '$1')
    if (!/^utf-?8$/i.test(charset)) {
      throw new AppError('unsupported_media_type', 'The charset of the body must be utf-8.')
    }
  }
  return found
}
