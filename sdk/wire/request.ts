/**
 * Sends one request to the appliance, with a timeout, and classifies the response: done, retry, smaller batch, no
 * compression, rejected or refused.
 */
import type { Bytes } from '../platform/platform.ts'
import type { Connection } from './connection.ts'
import type { Issue } from '../client/problem.ts'

/** The build compares the version with package.json. */
export const userAgent = 'sightglass-sdk/0.1.0'

export interface Call {
  method: 'GET' | 'POST'
  path: string
  body?: string | Bytes
  headers?: Record<string, string>
  /** Aborts the request, in addition to its timeout. */
  signal?: AbortSignal
}

export type Reply =
  | { kind: 'response'; status: number; headers: Headers; body: unknown }
  | { kind: 'failure'; isTls: boolean; message: string; cause: unknown }

/** Resolves with the response or the reason of the failure. Reads the whole body, undefined unless it is JSON. */
export async function request(connection: Connection, call: Call): Promise<Reply> {
  const { stop, signal } = deadline(connection.requestTimeoutMs, call.signal)
  try {
    const response = await send(connection, call, signal)
    const text = await response.text()
    return { kind: 'response', status: response.status, headers: response.headers, body: parsed(text) }
  } catch (error) {
    return failureOf(error, connection, signal)
  } finally {
    stop()
  }
}

/** Does not follow redirects, because the key must not be sent to another host. */
export function send(connection: Connection, call: Call, signal: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = {
    authorization: `Bearer ${connection.key}`,
    'user-agent': userAgent,
    ...call.headers,
  }
  if (call.body !== undefined) headers['content-type'] = 'application/json'
  return connection.fetch(`${connection.url}${call.path}`, {
    method: call.method,
    headers,
    redirect: 'manual',
    signal,
    ...(call.body === undefined ? {} : { body: call.body }),
  })
}

function deadline(timeoutMs: number, outer?: AbortSignal): { signal: AbortSignal; stop: () => void } {
  const controller = new AbortController()
  const cut = (): void => controller.abort()
  const timer = setTimeout(cut, timeoutMs)
  if (outer?.aborted === true) cut()
  outer?.addEventListener('abort', cut)
  const stop = (): void => {
    clearTimeout(timer)
    outer?.removeEventListener('abort', cut)
  }
  return { signal: controller.signal, stop }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Certificate errors, which a retry does not fix. Node.js sets the code on the cause, Bun on the error. */
const tlsCode =
  /^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)|HOSTNAME_MISMATCH|EPROTO|UNKNOWN_CERT)/

function failureOf(error: unknown, connection: Connection, signal: AbortSignal): Reply {
  const host = new URL(connection.url).host
  const codes = [error, (error as { cause?: unknown })?.cause].map(
    (failure) => (failure as { code?: unknown })?.code,
  )
  const code = codes.find((candidate): candidate is string => typeof candidate === 'string')
  const isTls = code !== undefined && tlsCode.test(code)
  const problem = signal.aborted
    ? 'did not respond in time'
    : isTls
      ? 'failed the TLS check'
      : 'could not be reached'
  return {
    kind: 'failure',
    isTls,
    message: `${host} ${problem}${code === undefined ? '' : ` (${code})`}`,
    cause: error,
  }
}

export type Verdict =
  | { kind: 'done'; body: { [field: string]: unknown } }
  /** Retryable, not before `waitMs` when the response has `Retry-After`. */
  | { kind: 'retry'; message: string; status: number | null; waitMs: number | null; cause: unknown }
  | { kind: 'too_large'; message: string }
  | { kind: 'no_compression' }
  /** These events are invalid; others may be accepted. */
  | { kind: 'rejected'; message: string; status: number; issues: Issue[] }
  /** No event is accepted until somebody fixes the configuration. */
  | { kind: 'refused'; message: string; status: number | null; cause: unknown }

/** `nowMs` is for a `Retry-After` with a date. */
export function verdictOf(reply: Reply, nowMs: number): Verdict {
  if (reply.kind === 'failure') {
    const { message, cause } = reply
    if (reply.isTls) return { kind: 'refused', message, status: null, cause }
    return { kind: 'retry', message, status: null, waitMs: null, cause }
  }
  const { status } = reply
  const body = isObject(reply.body) ? reply.body : null
  if (status >= 200 && status < 300) return body === null ? wrongAddress(status) : { kind: 'done', body }
  const message = sentence(status, body)
  const cause = undefined
  if (status === 413) return { kind: 'too_large', message }
  if (status === 415 && body?.['error'] === 'unsupported_encoding') return { kind: 'no_compression' }
  if (isRetryable(status)) {
    const waitMs = retryAfterMs(reply.headers.get('retry-after'), nowMs)
    return { kind: 'retry', message, status, waitMs, cause }
  }
  if (status === 400 || status === 422 || (status === 403 && body?.['reason'] === 'wrong_site')) {
    return { kind: 'rejected', message, status, issues: issuesOf(body?.['issues']) }
  }
  if (typeof body?.['error'] !== 'string') return wrongAddress(status)
  if (status === 404 || status === 405)
    return { kind: 'refused', message: `${message}: check the url`, status, cause }
  return { kind: 'refused', message, status, cause }
}

function isRetryable(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || (status >= 500 && status !== 501)
}

function wrongAddress(status: number): Verdict {
  const message = `this is not a Sightglass appliance (${status}), check the url`
  return { kind: 'refused', message, status, cause: undefined }
}

/** The message and hint of the appliance. */
function sentence(status: number, body: { [field: string]: unknown } | null): string {
  const texts = [body?.['message'], body?.['hint']].filter((text) => typeof text === 'string')
  return texts.length === 0 ? `status ${status}` : `${texts.join(' ').replace(/\.$/, '')} (${status})`
}

/** The valid entries of `errors` or `issues`. */
export function issuesOf(value: unknown): Issue[] {
  if (!Array.isArray(value)) return []
  return value.filter(
    (issue): issue is Issue => isObject(issue) && typeof issue['code'] === 'string' && 'message' in issue,
  )
}

const waitMsMax = 3_600_000

/** Seconds or a date (RFC 9110), at most 1 h. Null when missing or invalid. */
export function retryAfterMs(header: string | null, nowMs: number): number | null {
  if (header === null) return null
  const ms = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - nowMs
  return Number.isNaN(ms) ? null : Math.min(Math.max(ms, 0), waitMsMax)
}

export function isObject(value: unknown): value is { [field: string]: unknown } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
