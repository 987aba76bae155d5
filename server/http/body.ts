/** Reads a request body under its limits: bytes, inflating, time to arrive, UTF-8, JSON. The body is never echoed. */
import type { Json } from '../../db/contract/store.ts'
import { AppError } from '../errors.ts'
import { limits } from '../limits.ts'
import { contextIfAny, ownerOf } from './request-context.ts'
import { retryAfter } from './errors.ts'
import { contentEncoding, inflate } from './inflate.ts'
import { isDeeperThan } from '../text/json-depth.ts'
import { mediaType } from './media-type.ts'
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
