/**
 * Reads request bodies within limits: type, bytes, decompression, UTF-8, JSON. Errors never echo bodies. The deadline
 * of the request (`listener.ts`) closes the connection of a body that does not arrive, which ends the reading of it.
 */
import { AppError, retryAfter } from '../errors.ts'
import { limits } from '../limits.ts'
import { contextIfAny, ownerOf, type RequestContext } from './request.ts'
import { assemble, contentEncoding, inflate } from './inflate.ts'
import { discardRest, isClosing } from './linger.ts'
import { nestsDeeperThan } from '../text/json-scan.ts'
import type { Json } from '../../db/contract/store.ts'
import type { Share, Shares } from './shares.ts'

interface BodyLimits {
  bytesMax: number // as sent, and again after decompression
  ratioMax?: number // decompressed : compressed; 100 by default
}

interface JsonObject {
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
  if (declared > bytesMax) throw bodyTooLarge(bytesMax)
  // Bun enforces a declared length, so only a body of unknown length is counted while it arrives.
  const isDeclared = !Number.isNaN(declared)
  const context = contextIfAny(request)
  const expected = isDeclared ? declared : 0
  const share = context === null ? null : acquireShare(context, expected, bytesMax)
  if (context !== null && share === null) await refuseBody(request, expected)
  let bytes: Uint8Array
  if (declared > wholeBytesMax) bytes = await readParts(request, bytesMax, null)
  else if (isDeclared) {
    try {
      bytes = await request.bytes()
    } catch {
      cutShort()
    }
  } else bytes = await readParts(request, bytesMax, share)
  if (bytes.length > bytesMax) throw bodyTooLarge(bytesMax)
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
  const reader = request.body?.getReader()
  const isWhole = reader === undefined || (await discardRest(reader, limits.refusedBodyMs))
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

function tooManyBodies(headers: { [name: string]: string } = {}): AppError {
  const message = 'Too many request bodies are in flight. Try again later.'
  return new AppError('overloaded', message, { headers: { ...retryAfter(), ...headers } })
}

/** The text of a body without its byte order mark; throws 400 when it is not UTF-8. */
export function decodeBody(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw notUtf8()
  }
}

export function notUtf8(): AppError {
  return new AppError('invalid_json', 'The body is not valid UTF-8.')
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
  // Deeper values take long to parse, and overflow the stack when they are serialized.
  if (nestsDeeperThan(text, limits.jsonDepthMax)) {
    throw new AppError('invalid_body', `The body is nested deeper than ${limits.jsonDepthMax} levels.`)
  }
  const value = parseJson(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new AppError('invalid_body', 'The body must be a JSON object.')
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

/** Bun assembles a body of a declared length in one piece, which takes 100 ms for 64 MiB. */
const wholeBytesMax = 1024 * 1024

/** Reads a body part by part; drops it when it is too large. A share grows with what arrives of an unknown length. */
async function readParts(request: Request, bytesMax: number, share: Share | null): Promise<Uint8Array> {
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
        await endReading(request, reader, parts)
        throw bodyTooLarge(bytesMax)
      }
      if (share?.grow(value.length) === false) {
        await endReading(request, reader, parts)
        throw tooManyBodies({ connection: 'close' })
      }
      parts.push(value)
    }
  } catch (error) {
    if (error instanceof AppError) throw error
    cutShort()
  }
  if (parts.length === 1 && parts[0] !== undefined) return parts[0]
  return assemble(parts, total)
}

/** Stops reading a body. One of a client that closes its connection is discarded first, or it would see no answer. */
async function endReading(
  request: Request,
  reader: ReadableStreamDefaultReader<Uint8Array>,
  parts: Uint8Array[],
): Promise<void> {
  parts.length = 0
  if (isClosing(request.headers) && (await discardRest(reader, limits.lingerMs))) return
  void reader.cancel().catch(() => undefined)
}

/** Without `connection: close` the parser reads and discards the rest of the body. */
export function bodyTooLarge(bytesMax: number): AppError {
  return new AppError('payload_too_large', `The body is larger than ${bytesMax} bytes.`)
}

function cutShort(): never {
  throw new AppError('invalid_body', 'The connection closed before the whole body arrived.')
}

/**
 * Refuses the body of a form, which any page may send with a person's cookie, before reading it. Also where no body is
 * read, so that no route that changes something can be called that way.
 */
export function requireJson(request: Request): void {
  if (request.method === 'GET' || request.method === 'HEAD') return
  mediaType(request.headers.get('content-type'), ['application/json'])
}

/** The media type of the body, one of `knownTypes`; without a header the first of them (contract §1). Throws 415. */
export function mediaType<Known extends string>(
  header: string | null,
  knownTypes: readonly [Known, ...Known[]],
): Known {
  if (header === null) return knownTypes[0]
  for (const type of knownTypes) if (header === type) return type
  const [name = '', ...parameters] = header.split(';')
  const lower = name.trim().toLowerCase()
  if (lower === '' && parameters.length === 0) return knownTypes[0]
  const matchingType = knownTypes.find((type) => type === lower)
  if (matchingType === undefined) {
    throw new AppError('unsupported_media_type', `The content-type must be ${knownTypes.join(' or ')}.`, {
      hint: `Send the header "content-type: ${knownTypes[0]}".`,
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
  return matchingType
}
