/** Writes the record of an event (contract §17) as JSON: who says so, beside the text as it was sent. */
import { isoTime } from '../../clock.ts'
import { invalidQuery, type Query } from '../../http/request.ts'
import type { StoredEvent } from '../../../db/contract/store.ts'

/** The record of an event that was read with its provenance. The evidence is stored as JSON text. */
export function recordJson({
  receivedAtMs,
  provenance,
}: Pick<StoredEvent, 'receivedAtMs' | 'provenance'>): string {
  const { door, key, verdict, judgedBy, observedBy, evidence, network } = provenance ?? noProvenance
  const head = JSON.stringify({ door, key, receivedAt: isoTime(receivedAtMs), verdict, judgedBy, observedBy })
  return `${head.slice(0, -1)},"evidence":${evidence ?? 'null'},"network":${JSON.stringify(network)}}`
}

const noProvenance = {
  door: null,
  key: null,
  verdict: null,
  judgedBy: null,
  observedBy: null,
  evidence: null,
  network: null,
}

/** The record in a message. Without the network: deliveries are stored longer than networks may be. */
export function messageRecordJson({
  receivedAtMs,
  provenance,
}: Pick<StoredEvent, 'receivedAtMs' | 'provenance'>): string {
  return recordJson({ receivedAtMs, provenance: { ...(provenance ?? noProvenance), network: null } })
}

/** An event with its record: `{"event":…,"record":…}` with the text of the event unchanged. */
export function recordedJson(event: Pick<StoredEvent, 'json' | 'receivedAtMs' | 'provenance'>): string {
  return `{"event":${event.json},"record":${recordJson(event)}}`
}

/** An event as pages receive it, with its arrival and its record. */
export function receivedJson(event: Pick<StoredEvent, 'json' | 'receivedAtMs' | 'provenance'>): string {
  const receivedAt = isoTime(event.receivedAtMs)
  return `{"receivedAt":"${receivedAt}","event":${event.json},"record":${recordJson(event)}}`
}

/** Whether `include=record` asks for records. Throws 400 `invalid_query` for another value. */
export function includesRecord(query: Query): boolean {
  const include = query.one('include')
  if (include !== undefined && include !== 'record') throw invalidQuery('include', 'include must be record')
  return include === 'record'
}

/** The list's items, with each event's stored text unchanged. */
export function wrapEvents(events: StoredEvent[]): string {
  return events.map(receivedJson).join(',')
}
