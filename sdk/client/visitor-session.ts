/** `client.session`: assigns each visitor of a server a session that ends after 30 minutes without a request. */
import type { TraceEvent } from './event.ts'
import type { Observed } from './observed.ts'

/** The parts of a request that identify its sender. Works with Fetch, Node.js and Express requests. */
export interface VisitorRequest {
  headers: RequestHeaders
  /** Express: the address behind trusted proxies. */
  ip?: string | undefined
  socket?: { remoteAddress?: string | undefined } | null | undefined
}

export interface VisitorOptions {
  /** The sender's address. Required for Fetch requests and behind a proxy. */
  address?: string | null | undefined
}

export interface Session {
  readonly sessionId: string
  /** Like `client.trace`, in this session. */
  trace(event: TraceEvent, observed?: Observed): void
}

export interface SessionClock {
  nowMs(): number
  /** SHA-256 of the UTF-8 bytes, in lower-case hex. */
  sha256(text: string): string
}

/** A session ends after this time without a request, as in web analytics. */
export const silenceMs = 30 * 60_000
const visitorsMax = 20_000

/**
 * Returns a function from visitor to session id. The id is a hash of `secret`, the visitor and the half hour in which
 * the session began. Without the secret, nobody can compute an address from it, and processes with the same secret
 * agree on sessions that begin in the same half hour. The cache holds the 20,000 most recent visitors.
 */
export function visitorSessions(secret: string, clock: SessionClock): (visitor: string) => string {
  const visits = new Map<string, { sessionId: string; lastMs: number }>()
  return (visitor) => {
    const nowMs = clock.nowMs()
    let visit = visits.get(visitor)
    visits.delete(visitor) // reinserted below, so that the map is ordered by last call
    if (visit === undefined || nowMs - visit.lastMs > silenceMs) {
      const hash = clock.sha256(`${secret}\0${visitor}\0${Math.floor(nowMs / silenceMs)}`)
      visit = { sessionId: `sess_${hash.slice(0, 32)}`, lastMs: nowMs }
    }
    visit.lastMs = nowMs
    visits.set(visitor, visit)
    if (visits.size > visitorsMax) visits.delete(visits.keys().next().value as string)
    return visit.sessionId
  }
}

/** Identifies a visitor by an id of the host, or by user agent and address of a request. */
export function visitorKey(visitor: string | VisitorRequest, options: VisitorOptions | undefined): string {
  if (typeof visitor === 'string') return `key\0${visitor}`
  const address = options?.address ?? visitor.ip ?? visitor.socket?.remoteAddress ?? ''
  return `request\0${userAgentOf(visitor.headers)}\0${address}`
}

export type RequestHeaders =
  { get(name: string): string | null } | { [name: string]: string | string[] | undefined }

const userAgentCharsMax = 2_000

/** At most 2,000 characters, the limit of an event. Empty when the header is missing. */
export function userAgentOf(headers: RequestHeaders): string {
  const value = isFetchStyle(headers) ? headers.get('user-agent') : headers['user-agent']
  return typeof value === 'string' ? value.slice(0, userAgentCharsMax) : ''
}

function isFetchStyle(headers: RequestHeaders): headers is { get(name: string): string | null } {
  return typeof headers.get === 'function'
}
