/** The sessions part of the store contract: what one agent did, from its first event to its last. */
import type { EventFilter, EventPosition, StoredEvent } from './event-filter.ts'

/** Made from the session's events; of more than `eventsMax` from the newest of them. */
export interface Session {
  id: string
  siteIds: string[] // in order of appearance
  firstSeenAtMs: number
  lastSeenAtMs: number
  events: number
  isCut: boolean // there are more events than were counted
  class: string | null // class and vendor of the highest trust, the latest of it
  vendor: string | null
  trust: string | null // the highest reached
  byPillar: { [firstWordOfType: string]: number }
  byOutcome: { [outcome: string]: number }
}

export interface SessionPageQuery {
  orgId: string
  filter: EventFilter // sessions with an event that matches, by the newest such event
  limit: number
  before: EventPosition | null
  ceilingSeq: number | null
  eventsMax: number // counted of one session
  budgetMs: number // after which a page comes back short
  bytesMax?: number // of the sessions as JSON: the page ends sooner then, but never before its first session
}

export interface SessionPage {
  sessions: Session[]
  next: EventPosition | null // null exactly when nothing is left to look at
  ceilingSeq: number
}

export interface SessionStoryQuery {
  orgId: string
  sessionId: string
  after: EventPosition | null // null: from the beginning
  ceilingSeq: number | null
  limit: number
  bytesMax?: number // of the events' texts in UTF-8, as of a page of events
  eventsMax: number
}

export interface SessionStory {
  session: Session
  events: StoredEvent[] // oldest first by (occurredAt, arrival)
  next: EventPosition | null // go on after it
  ceilingSeq: number
}

export interface SessionStore {
  page(query: SessionPageQuery): Promise<SessionPage>
  /** Null when the session has no event. */
  story(query: SessionStoryQuery): Promise<SessionStory | null>
}
