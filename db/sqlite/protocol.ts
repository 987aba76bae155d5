/**
 * What the calling thread and the workers say to each other: one string a message, because a string crosses threads
 * several times cheaper than the same data as an object.
 *
 * A request is a JSON list [id, verb, command]. An append carries the events' own JSON texts behind it, each after a
 * record separator, so that they need no second escaping; JSON text cannot contain that character.
 * An answer is the JSON list [id, result] or [id, null, failure].
 */
import { StoreError, type StoreErrorKind } from '../errors.ts'
import type { AppendResult, EventBatch, EventRecord } from '../store.ts'

const separator = '\u001e'

export interface Failure {
  kind: StoreErrorKind
  message: string
}

/** What became of one batch of a group. */
export type AppendOutcome = AppendResult | Failure

export type Request = [id: number, verb: string, command: unknown]
export type Answer = [id: number, result: unknown, failure?: Failure]

export function failureOf(error: StoreError): Failure {
  return { kind: error.kind, message: error.message }
}

type EventHead = Omit<EventRecord, 'json'>
type BatchHead = [orgId: string, keyId: string, receivedAtMs: number, events: (string | number | null)[][]]

/** The members of an event other than its JSON text, in the order in which they travel. */
const members = [
  'id',
  'siteId',
  'sessionId',
  'occurredAtMs',
  'type',
  'outcome',
  'tool',
  'durationMs',
  'class',
  'vendor',
  'trust',
  'protocol',
  'subject',
  'page',
  'decision',
  'ruleId',
  'reason',
] as const satisfies (keyof EventHead)[]

export function packAppend(id: number, batches: EventBatch[]): string {
  const heads: BatchHead[] = batches.map(({ orgId, keyId, receivedAtMs, events }) => [
    orgId,
    keyId,
    receivedAtMs,
    events.map((event) => members.map((member) => event[member])),
  ])
  const parts = [JSON.stringify([id, 'append', heads])]
  for (const batch of batches) for (const event of batch.events) parts.push(event.json)
  return parts.join(separator)
}

/** The request of a message; for an append, `bodies` are the events' texts in order. */
export function unpackRequest(message: string): { request: Request; bodies: string[] } {
  const end = message.indexOf(separator)
  if (end < 0) return { request: JSON.parse(message) as Request, bodies: [] }
  const bodies = message.slice(end + 1).split(separator)
  return { request: JSON.parse(message.slice(0, end)) as Request, bodies }
}

export function unpackBatches(heads: unknown, bodies: string[]): EventBatch[] {
  let next = 0
  return (heads as BatchHead[]).map(([orgId, keyId, receivedAtMs, events]) => ({
    orgId,
    keyId,
    receivedAtMs,
    events: events.map((values) => eventOf(values, bodies[next++])),
  }))
}

function eventOf(values: (string | number | null)[], json: string | undefined): EventRecord {
  if (json === undefined || values.length !== members.length) {
    throw new StoreError('internal', 'an append arrived incomplete')
  }
  const [id, siteId, sessionId, occurredAtMs, type, outcome, tool, durationMs, ...rest] = values
  const [agentClass, vendor, trust, protocol, subject, page, decision, ruleId, reason] = rest
  return {
    id,
    siteId,
    sessionId,
    occurredAtMs,
    type,
    outcome,
    tool,
    durationMs,
    class: agentClass,
    vendor,
    trust,
    protocol,
    subject,
    page,
    decision,
    ruleId,
    reason,
    json,
  } as EventRecord // the types are those that packAppend took the values from
}
