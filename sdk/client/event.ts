/** The trace event, as `trace` accepts it and as it is sent, and the defaults in between. */
import { isoTime } from '../platform/clock.ts'

/** Event types that the dashboard knows. Every other dotted type is accepted, too. */
export type EventType =
  | 'agent.detected'
  | 'agent.missed'
  | 'auth.identity_presented'
  | 'auth.identity_cleared'
  | 'authz.policies_set'
  | 'authz.evaluated'
  | 'memory.accessed'
  | 'memory.updated'
  | 'tool.registered'
  | 'tool.executed'
  | 'tool.surfaced'
  | 'tool.progressed'
  | 'sdk.error'
  | (string & {})

export type Outcome = 'success' | 'error' | 'blocked' | (string & {})

export interface Agent {
  class?: 'webmcp' | 'dom' | 'screenshot' | 'crawler' | (string & {}) | null
  trust?: 'detected' | 'declared' | 'verified' | 'linked' | (string & {}) | null
  vendor?: string | null
  verdict?: 'verified' | 'consistent' | 'contradicted' | 'unverifiable' | 'unknown' | (string & {}) | null
  confidence?: number | null // 0 to 1
  userAgent?: string | null
  detectionVersion?: string | number | null
  signals?: unknown
  [field: string]: unknown
}

export interface Policy {
  decision?: 'allow' | 'deny' | 'review' | (string & {}) | null
  ruleId?: string | null
  reason?: string | null
  [field: string]: unknown
}

export interface Metadata {
  page?: string | null // path
  protocol?: string | null // how the identity was proved
  subject?: string | null // verified identity
  [field: string]: unknown
}

/** The argument of `trace`. Only `type` is required. Unknown fields are stored as they are. */
export interface TraceEvent {
  type: EventType
  id?: string
  siteId?: string
  sessionId?: string
  /** RFC 3339, a Date, or milliseconds since 1970. Default: now. */
  occurredAt?: string | Date | number
  /** Default: `error` with an `error`, `blocked` with the decision `deny`, otherwise `success`. */
  outcome?: Outcome
  tool?: string | null
  durationMs?: number | null
  error?: string | null
  agent?: Agent | null
  policy?: Policy | null
  metadata?: Metadata | null
  [field: string]: unknown
}

/** An event as exporters receive and send it. */
export interface CompleteEvent extends TraceEvent {
  id: string
  siteId: string
  sessionId: string
  occurredAt: string
  outcome: Outcome
}

export interface EventDefaults {
  siteId: string | undefined
  sessionId: string
  nowMs: () => number
  uuid: () => string
}

/** Throws when the event has no type or no site. The appliance validates the other fields. */
export function completeEvent(event: TraceEvent, defaults: EventDefaults): CompleteEvent {
  if (typeof event !== 'object' || event === null) throw new Error('an event must be an object')
  if (typeof event.type !== 'string' || event.type === '') throw new Error('the event has no type')
  const siteId = event.siteId ?? defaults.siteId
  if (siteId === undefined) throw new Error('the event has no siteId, and init has no default')
  // Spread last, then assign: in the other order V8 needs 40 times as long.
  const complete = { id: '', siteId, sessionId: '', occurredAt: '', outcome: '', ...event }
  complete.id = event.id ?? `trc_${defaults.uuid()}`
  complete.siteId = siteId
  complete.sessionId = event.sessionId ?? defaults.sessionId
  complete.occurredAt = timeText(event.occurredAt ?? defaults.nowMs())
  complete.outcome = event.outcome ?? impliedOutcome(event)
  return complete as CompleteEvent
}

function timeText(time: string | Date | number): string {
  if (typeof time === 'string') return time
  return isoTime(typeof time === 'number' ? time : time.getTime())
}

function impliedOutcome(event: TraceEvent): Outcome {
  if (typeof event.error === 'string' && event.error !== '') return 'error'
  return event.policy?.decision === 'deny' ? 'blocked' : 'success'
}
