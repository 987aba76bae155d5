/** Decides what an answer means for what was sent: done, again later, smaller, or not at all. */
import type { Issue } from '../client/problem.ts'
import type { Reply } from './request.ts'

export type Verdict =
  | { kind: 'done'; body: { [member: string]: unknown } }
  /** Worth sending again unchanged, not before `waitMs` when the appliance named a time. */
  | { kind: 'again'; message: string; status: number | null; waitMs: number | null; cause: unknown }
  | { kind: 'too_large'; message: string }
  | { kind: 'no_compression' }
  /** The content was not wanted; other content may be. */
  | { kind: 'rejected'; message: string; status: number; issues: Issue[] }
  /** Nothing we send will be taken until somebody changes something. */
  | { kind: 'refused'; message: string; status: number | null; cause: unknown }

/** `nowMs` is for a `Retry-After` that names a moment. */
export function verdictOf(reply: Reply, nowMs: number): Verdict {
  if (reply.kind === 'failure') {
    const { message, cause } = reply
    if (reply.isTls) return { kind: 'refused', message, status: null, cause }
    return { kind: 'again', message, status: null, waitMs: null, cause }
  }
  const { status } = reply
  const body = isObject(reply.body) ? reply.body : null
  if (status >= 200 && status < 300) return body === null ? wrongAddress(status) : { kind: 'done', body }
  const message = sentence(status, body)
  const cause = undefined
  if (status === 413) return { kind: 'too_large', message }
  if (status === 415 && body?.['error'] === 'unsupported_encoding') return { kind: 'no_compression' }
  if (isPassing(status)) {
    const waitMs = retryAfterMs(reply.headers.get('retry-after'), nowMs)
    return { kind: 'again', message, status, waitMs, cause }
  }
  if (status === 400 || status === 422 || (status === 403 && body?.['reason'] === 'wrong_site')) {
    return { kind: 'rejected', message, status, issues: issuesOf(body?.['issues']) }
  }
  if (typeof body?.['error'] !== 'string') return wrongAddress(status)
  if (status === 404 || status === 405)
    return { kind: 'refused', message: `${message}: check the url`, status, cause }
  return { kind: 'refused', message, status, cause }
}

function isPassing(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || (status >= 500 && status !== 501)
}

function wrongAddress(status: number): Verdict {
  const message = `what answers (${status}) is not a Sightglass appliance: check the url`
  return { kind: 'refused', message, status, cause: undefined }
}

/** The appliance's own words; its hint says what to do. */
function sentence(status: number, body: { [member: string]: unknown } | null): string {
  const texts = [body?.['message'], body?.['hint']].filter((text) => typeof text === 'string')
  return texts.length === 0 ? `the appliance answered ${status}` : `${texts.join(' ')} (${status})`
}

/** The `errors` or `issues` of an answer; anything else in their place is left out. */
export function issuesOf(value: unknown): Issue[] {
  if (!Array.isArray(value)) return []
  return value.filter(
    (issue): issue is Issue => isObject(issue) && typeof issue['code'] === 'string' && 'message' in issue,
  )
}

const waitMsMax = 3_600_000

/** Seconds or a date (RFC 9110), at most an hour; null when absent or unreadable. */
export function retryAfterMs(header: string | null, nowMs: number): number | null {
  if (header === null) return null
  const ms = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - nowMs
  return Number.isNaN(ms) ? null : Math.min(Math.max(ms, 0), waitMsMax)
}

export function isObject(value: unknown): value is { [member: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
