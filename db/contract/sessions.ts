/** The store's interface for sessions: the events of one agent from first to last. */
import type { EventFilter, EventPosition, StoredEvent } from './event-fields.ts'

/** Summarized from the session's events, or from the newest `eventsMax` of them. */
export interface Session {
  id: string
  siteIds: string[] // in order of appearance
  firstSeenAtMs: number
  lastSeenAtMs: number
  events: number
  isCut: boolean // more events exist than were counted
  class: string | null // class and vendor of the latest event with the highest trust
  vendor: string | null
  trust: string | null // the highest reached
  byPillar: { [firstWordOfType: string]: number }
  byOutcome: { [outcome: string]: number }
}

export interface SessionPageQuery {
  orgId: string
  filter: EventFilter // sessions with a matching event, ordered by the newest such event
  limit: number
  before: EventPosition | null
  ceilingSeq: number | null
  eventsMax: number // events counted per session
  budgetMs: number // time after which the page ends early
  bytesMax?: number // of the sessions as JSON: ends the page early, but never before its first session
}

export interface SessionPage {
  sessions: Session[]
  next: EventPosition | null // null exactly when no sessions are left
  ceilingSeq: number
}

export interface SessionStoryQuery {
  orgId: string
  sessionId: string
  after: EventPosition | null // null: from the first event
  ceilingSeq: number | null
  limit: number
  bytesMax?: number // of the events' texts in UTF-8, as in a page of events
  eventsMax: number
}

export interface SessionStory {
  session: Session
  events: StoredEvent[] // oldest first by (occurredAt, arrival)
  next: EventPosition | null // position to continue after
  ceilingSeq: number
}

export interface SessionStore {
  page(query: SessionPageQuery): Promise<SessionPage>
  /** Null when the session has no event. */
  story(query: SessionStoryQuery): Promise<SessionStory | null>
}
