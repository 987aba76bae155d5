/** Defines which events a query reads, what it returns of each, and the position in a listing. */
import type { FilterLists } from './event-fields.ts'

/**
 * Filters of contract §6. A list matches any of its values; an absent or empty list does not filter; '' matches events
 * without the field; `types` accept a trailing `.*`.
 */
export interface EventFilter extends FilterLists {
  sinceMs?: number // inclusive, by occurredAt
  untilMs?: number // exclusive
  /** Matches within any text of the event, ignoring case. `tail` ignores it. */
  text?: string
}

export interface StoredEvent {
  seq: number // arrival number, ascending; clients get it encrypted only
  occurredAtMs: number // the time by which it is ordered and filtered (db/rules/event-record.ts)
  receivedAtMs: number
  json: string
}

/** A position in a listing: the next event is the newest one strictly before this pair. */
export interface EventPosition {
  occurredAtMs: number
  seq: number
}
