/** Reads a request body under its limits: bytes, inflating, time to arrive, UTF-8, JSON. The body is never echoed. */
import zlib from 'node:zlib'
import { AppError, retryAfter } from '../errors.ts'
import { limits } from '../limits.ts'
import { contextIfAny, ownerOf } from './request-context.ts'
import { isDeeperThan } from '../text/json-scan.ts'
import { mediaType } from './media-type.ts'
import type { Json } from '../../db/contract/store.ts'
import type { Share } from './shares.ts'

export interface BodyLimits {
  bytesMax: number // of what is sent, and again after inflating
  ratioMax?: number // inflated : compressed; by default 100
  deadlineMs?: number // for the last byte to arrive; by default 30 s
}

export interface JsonObject {
  [member: string]: Json
}

const decoder = new TextDecoder('utf-8', { fatal: true }) // takes a BOM off

/** The body as text: as `readBytes`, and 400 when it is not UTF-8. */
export async function readBody(request: Request, bodyLimits: BodyLimits): Promise<string> {
  return decodeBody(await readBytes(request, bodyLimits))
}

/** The body, inflated. 413 over a limit, 415 for an unknown coding, 400 when it is corrupt, 503 when it stalls. */
export async function readBytes(request: Request, bodyLimits: BodyLimits): Promise<Uint8Array> {
  const { bytesMax, ratioMax = limits.bodyRatioMax, deadlineMs = limits.requestDeadlineMs } = bodyLimits
  const encoding = contentEncoding(request.headers.get('content-encoding'))
  const declared = Number(request.headers.get('content-length') ?? Number.NaN)
  if (declared > bytesMax) throw tooLarge(bytesMax)
  // The parser holds the client to a declared length, so only a body of unknown length is counted while it arrives.
  const isDeclared = !Number.isNaN(declared)
  const share = await takeShare(request, isDeclared ? declared : 0)
  const bytes = await (isDeclared
    ? inTime(request.bytes(), deadlineMs)
    : readCounted(request, bytesMax, deadlineMs, share))
  if (bytes.length > bytesMax) throw tooLarge(bytesMax)
  if (encoding === null) return bytes
  const inflated = await inflate(encoding, bytes, { bytesMax, ratioMax })
  if (share?.grow(inflated.length) === false) throw noRoom()
  return inflated
}

/**
 * Throws 503 when there is no room for a body of this length among those under way. What arrives of it is dropped for
 * two seconds first: a sender whose connection is closed while it sends would not see the answer.
 */
export async function requireBodyRoom(request: Request, bytes: number): Promise<void> {
  const context = contextIfAny(request)
  if (context === null || context.underWay.bodies.hasRoom(ownerOf(context), bytes)) return
  const isWhole = await dropped(request, limits.refusedBodyMs)
  throw noRoom(isWhole ? {} : { connection: 'close' })
}

/** What the request's body takes of the bytes under way; until it is given back, or the request is answered. */
async function takeShare(request: Request, bytes: number): Promise<Share | null> {
  const context = contextIfAny(request)
  if (context === null) return null
  await requireBodyRoom(request, bytes)
  const share = context.underWay.bodies.take(ownerOf(context), bytes)
  if (share === null) throw noRoom({ connection: 'close' })
  context.body = share
  return share
}

let dropping = 0

/** Reads and forgets; false when the body has not ended in time, and at once when many are being dropped already. */
async function dropped(request: Request, ms: number): Promise<boolean> {
  if (dropping >= limits.refusedBodiesMax) return false
  const reader = request.body?.getReader()
  if (reader === undefined) return true
  dropping++
  try {
    return await readToEnd(reader, ms)
  } finally {
    dropping--
  }
}

async function readToEnd(reader: ReadableStreamDefaultReader<unknown>, ms: number): Promise<boolean> {
  const late = Bun.sleep(ms).then(() => 'late' as const)
  for (;;) {
    const next = await Promise.race([reader.read().catch(() => null), late])
    if (next === null || next === 'late') return false
    if (next.done) return true
  }
}

function noRoom(headers: { [name: string]: string } = {}): AppError {
  const message = 'Too many bodies are under way; send this again later.'
  return new AppError('overloaded', message, { headers: { ...retryAfter(), ...headers } })
}

/** The text of a body, without a byte order mark; 400 when it is not UTF-8. */
export function decodeBody(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw new AppError('invalid_json', 'The body is not valid UTF-8.')
  }
}

/** A small JSON object. With `emptyIsObject` an empty body reads as `{}` (contract §1: audit export and replay). */
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
  // Deeper values parse, but overflow the stack where they are written again.
  if (isDeeperThan(value, limits.jsonDepthMax)) {
    throw new AppError('invalid_body', `The body is nested deeper than ${limits.jsonDepthMax} levels.`)
  }
  return value
}

/** Parses JSON text; a mistake is 400 `invalid_json`, without the parser's message, which quotes the body. */
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

function inTime(reading: Promise<Uint8Array>, deadlineMs: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(tooSlow(deadlineMs)), deadlineMs)
    reading.then(
      (bytes) => {
        clearTimeout(timer)
        resolve(bytes)
      },
      () => {
        clearTimeout(timer)
        reject(endedEarly())
      },
    )
  })
}

/** Reads a body of undeclared length (chunked), counting; keeps nothing of one that is too large or too slow. */
async function readCounted(
  request: Request,
  bytesMax: number,
  deadlineMs: number,
  share: Share | null,
): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array()
  const reader = request.body.getReader()
  const parts: Uint8Array[] = []
  let total = 0
  let late = false
  const timer = setTimeout(() => {
    late = true
    void reader.cancel().catch(() => undefined)
  }, deadlineMs)
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (late) throw tooSlow(deadlineMs)
      if (done) break
      total += value.length
      if (total > bytesMax) {
        void reader.cancel().catch(() => undefined)
        throw tooLarge(bytesMax)
      }
      if (share?.grow(value.length) === false) {
        void reader.cancel().catch(() => undefined)
        throw noRoom({ connection: 'close' })
      }
      parts.push(value)
    }
  } catch (error) {
    throw error instanceof AppError ? error : endedEarly()
  } finally {
    clearTimeout(timer)
  }
  return parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts, total)
}

// No `connection: close` here: a client that still sends when the connection closes (Node's fetch, Python) sees a
// broken pipe instead of this answer. The parser takes what still comes and drops it.
function tooLarge(bytesMax: number): AppError {
  return new AppError('payload_too_large', `The body is larger than ${bytesMax} bytes.`)
}

function tooSlow(deadlineMs: number): AppError {
  return new AppError('overloaded', `The body did not arrive within ${deadlineMs} ms.`, {
    headers: { connection: 'close', 'retry-after': '1' },
  })
}

function endedEarly(): AppError {
  return new AppError('invalid_body', 'The connection ended before the body did.')
}

/** Inflates compressed request bodies under an output cap; refuses the corrupt, the cut and what has a tail. */
export type Encoding = 'gzip' | 'deflate' | 'br' | 'zstd'

interface InflateLimits {
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
