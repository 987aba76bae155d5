/** Lists sessions by their newest matching event: the log is walked backwards, each told where it shows first. */
import type { Session, SessionPage, SessionPageQuery } from '../../session-store.ts'
import type { EventPosition, StoredEvent } from '../../store.ts'
import type { ReadContext } from '../contexts.ts'
import { sessionSummary } from './summary.ts'
import { walkSession } from './walk.ts'

const pageEvents = 500

/** Comes back short when the budget is used up; the walk goes on at `next`. */
export function listSessions({ events }: ReadContext, query: SessionPageQuery): SessionPage {
  const { orgId, filter, limit, budgetMs } = query
  const endMs = performance.now() + budgetMs
  const told = new Set<string>()
  const sessions: Session[] = []
  let { before, ceilingSeq } = query
  for (;;) {
    const page = events.page({ orgId, filter, limit: pageEvents, before, ceilingSeq })
    ceilingSeq = page.ceilingSeq
    for (const event of page.events) {
      const { sessionId } = JSON.parse(event.json) as { sessionId: string }
      before = positionOf(event)
      if (told.has(sessionId)) continue
      told.add(sessionId)
      // A walk that goes on may meet a session of an earlier page again.
      if (query.before !== null && !isNewest(events, { ...query, ceilingSeq }, sessionId, event)) continue
      sessions.push(summary(events, { ...query, ceilingSeq }, sessionId))
      const isLast = page.next === null && event === page.events.at(-1)
      if (isLast) return { sessions, next: null, ceilingSeq }
      if (sessions.length === limit || performance.now() > endMs)
        return { sessions, next: before, ceilingSeq }
    }
    before = page.next
    if (before === null || performance.now() > endMs) return { sessions, next: before, ceilingSeq }
  }
}

type Events = ReadContext['events']
type Walk = SessionPageQuery & { ceilingSeq: number }

function isNewest(
  events: Events,
  { orgId, filter, ceilingSeq }: Walk,
  id: string,
  event: StoredEvent,
): boolean {
  const one = { ...filter, sessionIds: [id] }
  const page = events.page({ orgId, filter: one, limit: 1, before: null, ceilingSeq })
  return page.events[0]?.seq === event.seq
}

function summary(events: Events, { orgId, ceilingSeq, eventsMax }: Walk, sessionId: string): Session {
  const sum = sessionSummary(sessionId)
  let isCut = false
  walkSession(events, { orgId, sessionId, ceilingSeq }, (event) => {
    isCut = sum.events() === eventsMax
    if (!isCut) sum.add(event)
    return !isCut
  })
  return sum.result(isCut)
}

function positionOf({ occurredAtMs, seq }: StoredEvent): EventPosition {
  return { occurredAtMs, seq }
}
