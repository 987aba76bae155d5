/** `client.session`: gives each visitor of a server a session of their own, so that one visit is one story. */
import type { TraceEvent } from './event.ts'

/** As much of a request as names its sender: Fetch style, or Node's and Express's. */
export interface VisitorRequest {
  headers: RequestHeaders
  /** Express: the address behind the proxies that it trusts. */
  ip?: string | undefined
  socket?: { remoteAddress?: string | undefined } | null | undefined
}

export interface VisitorOptions {
  /** The sender's address, where the request does not carry it (Fetch style) or a proxy of yours stands in front. */
  address?: string | null | undefined
}

export interface Session {
  readonly sessionId: string
  /** As `client.trace`, into this session. */
  trace(event: TraceEvent): void
}

export interface SessionClock {
  nowMs(): number
  /** Lower-case hexadecimal SHA-256 of the text's UTF-8. */
  sha256(text: string): string
}

/** A visit ends after this long without a request (what web analytics calls a session). */
export const silenceMs = 30 * 60_000
const visitorsMax = 20_000

/**
 * Returns a function from visitor to session id. A visitor keeps the id until 30 minutes without a call. The id is a
 * hash of `secret`, the visitor and the half hour in which the visit began: nobody reads an address out of it without
 * the secret, and several processes with one secret agree about visits that begin in the same half hour. At most
 * 20,000 visitors are remembered; the one silent for longest is forgotten first.
 */
export function visitorSessions(secret: string, clock: SessionClock): (visitor: string) => string {
  const visits = new Map<string, { sessionId: string; lastMs: number }>()
  return (visitor) => {
    const nowMs = clock.nowMs()
    let visit = visits.get(visitor)
    visits.delete(visitor) // and in again: the map's order is that of the last calls
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

/** What tells one visitor from another: a text of the host's own, or the user agent and address of a request. */
export function visitorKey(visitor: string | VisitorRequest, options: VisitorOptions | undefined): string {
  if (typeof visitor === 'string') return `key\0${visitor}`
  const address = options?.address ?? visitor.ip ?? visitor.socket?.remoteAddress ?? ''
  return `request\0${userAgentOf(visitor.headers)}\0${address}`
}

export type RequestHeaders =
  { get(name: string): string | null } | { [name: string]: string | string[] | undefined }

const userAgentCharsMax = 2_000

/** Empty when there is none. Cut at 2,000 characters, as much as an event may hold. */
export function userAgentOf(headers: RequestHeaders): string {
  const value = isFetchStyle(headers) ? headers.get('user-agent') : headers['user-agent']
  return typeof value === 'string' ? value.slice(0, userAgentCharsMax) : ''
}

function isFetchStyle(headers: RequestHeaders): headers is { get(name: string): string | null } {
  return typeof headers.get === 'function'
}
