/** The trace event: as a host writes it, and as it is sent with everything that was left out filled in. */
import { isoTime } from '../platform/clock.ts'

/** Kinds that the dashboard knows; every other dotted kind is accepted too. */
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
  confidence?: number | null // 0 to 1
  userAgent?: string | null
  detectionVersion?: string | number | null
  signals?: unknown
  [member: string]: unknown
}

export interface Policy {
  decision?: 'allow' | 'deny' | 'review' | (string & {}) | null
  ruleId?: string | null
  reason?: string | null
  [member: string]: unknown
}

export interface Metadata {
  page?: string | null // path
  protocol?: string | null // how identity was proved
  subject?: string | null // verified identity
  [member: string]: unknown
}

/** What `trace` takes. Only `type` must be given; members we do not name are kept and given back as sent. */
export interface TraceEvent {
  type: EventType
  id?: string
  siteId?: string
  sessionId?: string
  /** RFC 3339, a Date, or milliseconds since 1970; now when left out. */
  occurredAt?: string | Date | number
  /** When left out: `error` with an `error`, `blocked` with a policy that denies, else `success`. */
  outcome?: Outcome
  tool?: string | null
  durationMs?: number | null
  error?: string | null
  agent?: Agent | null
  policy?: Policy | null
  metadata?: Metadata | null
  [member: string]: unknown
}

/** An event as exporters get it and as it travels. */
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

/** Throws with a sentence when the event has no type or no site; the other members are the appliance's to judge. */
export function completeEvent(event: TraceEvent, defaults: EventDefaults): CompleteEvent {
  if (typeof event !== 'object' || event === null) throw new Error('an event must be an object')
  if (typeof event.type !== 'string' || event.type === '') throw new Error('the event has no type')
  const siteId = event.siteId ?? defaults.siteId
  if (siteId === undefined) throw new Error('the event has no siteId, and init was given none')
  // The spread last and the members assigned after it: the other way round V8 takes forty times as long.
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
