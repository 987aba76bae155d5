/** Turns whatever was thrown into the one error shape of contract §3. */
import { StoreError, type StoreErrorKind } from '../../db/contract/errors.ts'
import { AppError, errorBody, type ErrorCode } from '../errors.ts'
import type { Log } from '../log.ts'

const storeCode: Record<StoreErrorKind, [ErrorCode, string]> = {
  storage_full: ['storage_full', 'There is no room left on the disk; nothing of this request was stored.'],
  read_only: ['storage_full', 'The data folder does not take writes; nothing of this request was stored.'],
  conflict: ['conflict', 'This conflicts with what is already there.'],
  not_found: ['not_found', 'There is no such thing here.'],
  closed: ['shutting_down', 'The server is shutting down; try again in a moment.'],
  deadline: ['overloaded', 'The query took longer than it may; narrow it or try again.'],
  io: ['not_ready', 'The disk failed; nothing of this request was acknowledged.'],
  displaced: ['not_ready', 'The data folder was moved or replaced; nothing of this request was stored.'],
  deleted: ['not_ready', 'The data folder was deleted; nothing of this request was stored.'],
  corrupt: ['internal_error', 'The database is damaged; the log says where.'],
  incomplete: ['internal_error', 'Something went wrong on our side.'],
  older_schema: ['internal_error', 'Something went wrong on our side.'],
  newer_schema: ['internal_error', 'Something went wrong on our side.'],
  locked: ['internal_error', 'Something went wrong on our side.'],
  internal: ['internal_error', 'Something went wrong on our side.'],
}

/** Expected, or logged once when the store failed: under load one line per request would fill the log. */
const silent: readonly StoreErrorKind[] = ['conflict', 'not_found', 'closed', 'displaced', 'deleted']

/** The error a client sees for `thrown`; anything unknown is logged and becomes 500 without detail. */
export function toAppError(thrown: unknown, requestId: string, log: Log): AppError {
  if (thrown instanceof AppError) return thrown
  if (thrown instanceof StoreError) {
    const [code, message] = storeCode[thrown.kind]
    if (!silent.includes(thrown.kind)) {
      log.error('store_failed', { requestId, kind: thrown.kind, message: thrown.message })
    }
    return new AppError(code, message, retryHeaders(code))
  }
  const error = thrown instanceof Error ? thrown : new Error(String(thrown))
  log.error('unexpected_error', { requestId, message: error.message, stack: error.stack ?? '' })
  return new AppError('internal_error', 'Something went wrong on our side.', {
    hint: 'The server log has the details under this request id.',
  })
}

function retryHeaders(code: ErrorCode): { headers?: Record<string, string> } {
  return code === 'overloaded' || code === 'shutting_down' ? { headers: retryAfter() } : {}
}

/** A `Retry-After` of 1 to 5 seconds, jittered so that refused senders do not come back together. */
export function retryAfter(): Record<string, string> {
  return { 'retry-after': String(1 + Math.floor(Math.random() * 5)) }
}

// Every 401 names a scheme (RFC 9110 §11.6.1); where it is not a key that is missing, it is the session's cookie. No
// browser asks for a password at a scheme that it does not know.
const challenge = { 'www-authenticate': 'Cookie realm="sightglass"' }

export function errorResponse(error: AppError, requestId: string): Response {
  const fixed = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  return new Response(errorBody(error, requestId), {
    status: error.status,
    headers: { ...fixed, ...(error.status === 401 ? challenge : {}), ...error.details.headers },
  })
}
