/** Which events a query reads, what it returns of each, and the position of a walk through them. */
import type { FilterLists } from './event-fields.ts'

/**
 * Filters of contract §6. A list means any of; an absent or empty one does not filter; '' in a list matches events
 * without the field; `types` accept a trailing `.*`.
 */
export interface EventFilter extends FilterLists {
  sinceMs?: number // inclusive, by occurredAt
  untilMs?: number // exclusive
  /** Part of any text in the event, case-insensitive. `tail` ignores it. */
  text?: string
}

export interface StoredEvent {
  seq: number // arrival number, rising; never shown to clients in clear
  occurredAtMs: number // the time it is ordered and filtered by (db/rules/event-time.ts)
  receivedAtMs: number
  json: string
}

/** Where a walk stands: the next event is the newest one strictly before this pair. */
export interface EventPosition {
  occurredAtMs: number
  seq: number
}
