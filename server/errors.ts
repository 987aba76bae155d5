/** Every error of the API: stable codes with one status each, and one JSON shape (contract §3). */

export const errorStatus = {
  invalid_json: 400,
  invalid_body: 400,
  invalid_query: 400,
  unauthorized: 401,
  forbidden: 403,
  key_exposed: 403,
  not_found: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  conflict: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  unsupported_encoding: 415,
  rate_limited: 429,
  internal_error: 500,
  overloaded: 503,
  shutting_down: 503,
  not_ready: 503,
  unavailable: 503,
  storage_full: 507,
} as const

export type ErrorCode = keyof typeof errorStatus

/** One problem of a body or query. `index` and `id` identify an event in `events`. */
export interface Issue {
  path: string
  message: string
  code: string
  index?: number
  id?: string
}

interface ErrorDetails {
  reason?: string
  hint?: string
  issues?: Issue[]
  headers?: Record<string, string>
  members?: Record<string, unknown> // extra fields of the response, such as the failing checks of /readyz
}

/** Thrown anywhere in the server and sent by `http/response.ts`. Clients see `message`: no internals in it. */
export class AppError extends Error {
  readonly code: ErrorCode
  readonly details: ErrorDetails
  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message)
    this.name = 'AppError'
    this.code = code
    // Every invalid_body has at least one issue; a problem of the whole body has the path "".
    const issues = details.issues ?? [{ path: '', message, code: 'wrong_format' }]
    this.details = code === 'invalid_body' ? { ...details, issues } : details
  }
  get status(): number {
    return errorStatus[this.code]
  }
}

/** An invalid command line, configuration or setup file: one line and a hint, exit code 2. */
export class UsageError extends Error {
  readonly hint: string | null
  constructor(message: string, hint: string | null = null) {
    super(message)
    this.name = 'UsageError'
    this.hint = hint
  }
}

/** The JSON text of an error response. */
export function errorBody(error: AppError, requestId: string): string {
  const { reason, hint, issues, members } = error.details
  return JSON.stringify({
    error: error.code,
    message: error.message,
    ...(reason === undefined ? {} : { reason }),
    ...(hint === undefined ? {} : { hint }),
    ...(issues === undefined ? {} : { issues }),
    ...members,
    requestId,
  })
}

/** A `Retry-After` of 1 to 5 seconds, jittered so that refused senders do not retry together. */
export function retryAfter(): Record<string, string> {
  return { 'retry-after': String(1 + Math.floor(Math.random() * 5)) }
}
