/** Which events a question is about, what it gets of each, and where a walk through them stands. */

/**
 * Filters of contract §6. A list means any of, an absent or empty one does not filter; '' in a list means the member is
 * missing; `types` take a trailing `.*`.
 */
export interface EventFilter {
  sinceMs?: number // inclusive, by occurredAt
  untilMs?: number // exclusive
  types?: string[]
  outcomes?: string[]
  classes?: string[]
  vendors?: string[]
  names?: string[]
  purposes?: string[]
  trusts?: string[]
  siteIds?: string[]
  sessionIds?: string[]
  tools?: string[]
  protocols?: string[]
  decisions?: string[]
  subjects?: string[]
  /** A part of any text in the event, whatever its case. `tail` does not take it. */
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
