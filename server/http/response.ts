/** Makes every response: its media type, JSON, errors, streamed text, and the headers all of them carry. */
import { AppError, errorBody, type ErrorCode, retryAfter } from '../errors.ts'
import { limits } from '../limits.ts'
import { permitLost, watchPermit, type Permit } from './permit.ts'
import { contextIfAny, ownerOf, runningContext, type RequestContext } from './request.ts'
import { StoreError, passesBy, type StoreErrorKind } from '../../db/contract/errors.ts'
import type { Log } from '../log.ts'
import type { Share, Shares } from './shares.ts'

/** On every response. Pages have a stricter policy (field notes §3). */
const always: Record<string, string> = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}

export const pageCsp =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

const dataCsp = "default-src 'none'; frame-ancestors 'none'; sandbox"

const common = { ...always, 'content-security-policy': dataCsp, 'cache-control': 'no-store' }

/** Headers built in one go: setting them one by one costs as much as parsing the request. */
function commonHeaders(contentType: string): Headers {
  return new Headers({ ...common, 'content-type': contentType })
}

/** Adds the common headers; a header that the handler set wins. */
export function addCommonHeaders(response: Response, requestId: string): Response {
  const headers = response.headers
  headers.set('x-request-id', requestId)
  if (headers.has('x-content-type-options')) return response // made with `commonHeaders`
  for (const name in always) if (!headers.has(name)) headers.set(name, always[name]!)
  if (!headers.has('content-security-policy')) headers.set('content-security-policy', dataCsp)
  if (!headers.has('cache-control')) headers.set('cache-control', 'no-store')
  return response
}

export function json(value: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return jsonText(JSON.stringify(value), status, headers)
}

const jsonHeaders = commonHeaders('application/json')

/** Large bodies that wait for `limitInFlight` to send them. */
const largeTexts = new WeakMap<Response, string>()

export function jsonText(text: string, status = 200, headers: Record<string, string> = {}): Response {
  const isLarge = text.length > limits.responseCountedBytes
  const response = new Response(isLarge ? null : text, { status, headers: jsonHeaders })
  if (isLarge) largeTexts.set(response, text)
  for (const name in headers) response.headers.set(name, headers[name]!)
  return response
}

/**
 * Streams a large response as the client reads it and counts its bytes until then, so a client that stops reading
 * holds a bounded share of memory, for at most 30 s. Above the share the response becomes a 503.
 */
export function limitInFlight(response: Response, context: RequestContext): Response {
  const text = largeTexts.get(response)
  if (text === undefined) return response
  const share = context.inFlight.responses.acquire(ownerOf(context), text.length)
  if (share === null) {
    const message = 'Too many responses are waiting to be read. Read them, or request smaller pages.'
    return errorResponse(new AppError('overloaded', message, { headers: retryAfter() }), context.id)
  }
  const body = streamText({
    parts: pieces(text),
    stallMs: limits.responseStallMs,
    ended: () => share.release(),
    permit: context.permit,
  })
  return new Response(body, { status: response.status, headers: response.headers })
}

const pieceChars = 128 * 1024

async function* pieces(text: string): AsyncGenerator<string> {
  for (let start = 0; start < text.length;) {
    let end = Math.min(start + pieceChars, text.length)
    // Do not split a surrogate pair.
    if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end++
    yield text.slice(start, end)
    start = end
  }
}

/** The client's view of a failure of the store (contract §3). */
const storeCode: Record<StoreErrorKind, [ErrorCode, string]> = {
  storage_full: ['storage_full', 'The disk is full. Nothing in this request was stored.'],
  read_only: ['storage_full', 'The server may not write its data. Nothing in this request was stored.'],
  not_writable: [
    'unavailable',
    'The database is read-only at the moment. Nothing in this request was stored. Try again in a second.',
  ],
  conflict: ['conflict', 'This conflicts with existing data.'],
  not_found: ['not_found', 'Not found.'],
  unavailable: ['unavailable', 'The database did not answer. Try again in a second.'],
  closed: ['shutting_down', 'The server is shutting down. Try again in a few seconds.'],
  deadline: ['overloaded', 'The query exceeded its time limit. Narrow it or try again.'],
  cancelled: ['overloaded', 'The query was cancelled.'],
  io: ['not_ready', 'The disk failed. Nothing in this request was acknowledged.'],
  displaced: ['not_ready', 'The data folder was moved or replaced. Nothing in this request was stored.'],
  deleted: ['not_ready', 'The data folder was deleted. Nothing in this request was stored.'],
  corrupt: ['internal_error', 'The database is corrupt. See the server log for details.'],
  incomplete: ['internal_error', 'Internal server error.'],
  older_schema: ['internal_error', 'Internal server error.'],
  newer_schema: ['unavailable', 'A newer release of the server is taking over. Try again in a second.'],
  locked: [
    'unavailable',
    'Another program locks the database. Nothing in this request was stored. Try again in a second.',
  ],
  internal: ['internal_error', 'Internal server error.'],
}

/** Expected errors, and failures that are logged once elsewhere: a line per request would flood the log. */
const silent: readonly StoreErrorKind[] = [
  'conflict',
  'not_found',
  'cancelled',
  'closed',
  'displaced',
  'deleted',
]

/** The client's error for `thrown`; anything unknown is logged and becomes a 500 without details. */
export function toAppError(thrown: unknown, requestId: string, log: Log): AppError {
  if (thrown instanceof AppError) return thrown
  if (thrown instanceof StoreError) {
    const [code, message] = storeCode[thrown.kind]
    const isTemporary: boolean = passesBy(thrown)
    if (isTemporary) logUnavailable(thrown, log)
    else if (!silent.includes(thrown.kind)) {
      log.error('store_failed', { requestId, kind: thrown.kind, message: thrown.message })
    }
    return new AppError(code, message, retryHeaders(code))
  }
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  log.error('unexpected_error', { requestId, message: error.message, stack: error.stack ?? '' })
  return new AppError('internal_error', 'Internal server error.', {
    hint: 'Search the server log for this requestId.',
  })
}

const unavailableEveryMs = 1_000
const unavailableLoggedMs = new WeakMap<Log, number>()

/** At most once per second, because every request fails while the database is away. */
function logUnavailable({ message }: StoreError, log: Log): void {
  const nowMs = performance.now()
  if (nowMs - (unavailableLoggedMs.get(log) ?? -Infinity) < unavailableEveryMs) return
  unavailableLoggedMs.set(log, nowMs)
  log.warn('store_unavailable', { message })
}

function retryHeaders(code: ErrorCode): { headers?: Record<string, string> } {
  // Not jittered: every node answers for the same database, and a fail-over takes longer than a second anyway.
  if (code === 'unavailable') return { headers: { 'retry-after': '1' } }
  return code === 'overloaded' || code === 'shutting_down' ? { headers: retryAfter() } : {}
}

// Every 401 must name a scheme (RFC 9110 §11.6.1). `Cookie` is unknown to browsers, so none of them prompts for a
// password.
const challenge = { 'www-authenticate': 'Cookie realm="sightglass"' }

/** `request` may decide the form: exporters of OpenTelemetry read another one. */
export function errorResponse(error: AppError, requestId: string, request?: Request): Response {
  const customResponse = request === undefined ? null : contextIfAny(request)?.writeError?.(error, request)
  if (customResponse) return customResponse
  const fixed = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  return new Response(errorBody(error, requestId), {
    status: error.status,
    headers: { ...fixed, ...(error.status === 401 ? challenge : {}), ...error.details.headers },
  })
}

const encoder = new TextEncoder()

interface StreamedText {
  parts: AsyncGenerator<string | Uint8Array>
  stallMs: number // without progress of the reader, then the connection is closed
  /** Called once when the stream ends; `failed` is the generator's error or the stall, otherwise null. */
  ended(failed: unknown): void
  /** By default that of the running request. */
  permit?: Permit | undefined
}

const pieceBytes = 256 * 1024

/**
 * The body of a streamed response: requests the next part only when the receiver has read the previous one. When
 * generating fails, or the key or sign-in of the request is no longer valid, the connection is closed without a proper
 * end, so that no receiver mistakes a part for the whole.
 */
export function streamText({ parts, stallMs, ended, permit }: StreamedText): ReadableStream<Uint8Array> {
  let stall: Timer | null = null
  let isOver = false
  let endWatch = () => {}
  const finish = (failed: unknown): void => {
    if (stall !== null) clearTimeout(stall)
    endWatch()
    if (isOver) return
    isOver = true
    ended(failed)
  }
  const mayGoOn = permit ?? runningContext()?.permit
  let remainder: Uint8Array = new Uint8Array()
  /** A piece of the current part, or of the next one: what was handed over is sent even after the stream is cut. */
  const nextPiece = async (): Promise<Uint8Array | null> => {
    while (remainder.length === 0) {
      const { done, value } = await parts.next()
      if (done) return null
      remainder = typeof value === 'string' ? encoder.encode(value) : value
    }
    const piece = remainder.subarray(0, pieceBytes)
    remainder = remainder.subarray(pieceBytes)
    return piece
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        if (mayGoOn === undefined) return
        endWatch = watchPermit(mayGoOn, () => {
          finish(permitLost)
          controller.error(permitLost)
          void parts.return(undefined)
        })
      },
      async pull(controller) {
        if (stall !== null) clearTimeout(stall)
        try {
          const piece = await nextPiece()
          if (isOver) return
          if (piece === null) {
            finish(null)
            controller.close()
            return
          }
          controller.enqueue(piece)
          stall = setTimeout(() => {
            const error = new Error(`the receiver read nothing for ${stallMs} ms`)
            finish(error)
            controller.error(error)
            void parts.return(undefined)
          }, stallMs)
        } catch (error) {
          if (isOver) return // cut meanwhile
          finish(error)
          controller.error(error)
        }
      },
      async cancel() {
        finish(null)
        await parts.return(undefined)
      },
    },
    { highWaterMark: 0 },
  )
}

/** Throws 503 when the organization or the actor is at its limit of concurrent exports. A large one weighs more. */
export function acquireExport(shares: Shares, orgId: string, actor: string, weight = 1): Share {
  const share = shares.acquire({ orgId, holderId: actor }, weight)
  if (share !== null) return share
  const message = 'You have reached your limit of concurrent exports. Try again when one has finished.'
  throw new AppError('overloaded', message, { headers: retryAfter() })
}

/**
 * The offered type that the `accept` header prefers; the first one on a tie or without a header. Throws 406 when the
 * client accepts none of them.
 */
export function acceptedType<const Offered extends string>(
  header: string | null,
  offered: readonly [Offered, ...Offered[]],
): Offered {
  if (header === null || header.trim() === '') return offered[0]
  const ranges = header.split(',').map(readRange)
  let best: { type: Offered; quality: number } | null = null
  for (const type of offered) {
    const quality = qualityOf(type, ranges)
    if (quality > 0 && (best === null || quality > best.quality)) best = { type, quality }
  }
  if (best === null) throw new AppError('not_acceptable', `Available media types: ${offered.join(', ')}.`)
  return best.type
}

interface Range {
  type: string
  quality: number
}

function readRange(text: string): Range {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase())
  const qualityParameter = parameters.find((parameter) => parameter.startsWith('q='))
  const quality = qualityParameter === undefined ? 1 : Number(qualityParameter.slice(2))
  return { type, quality: quality >= 0 && quality <= 1 ? quality : 0 }
}

/** Quality by the most specific range that matches; 0 when none does. */
function qualityOf(type: string, ranges: Range[]): number {
  for (const name of [type, `${type.split('/')[0]}/*`, '*/*']) {
    const range = ranges.find((candidate) => candidate.type === name)
    if (range !== undefined) return range.quality
  }
  return 0
}
