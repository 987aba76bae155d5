/** One session with its events from the first to the last, a page of them at a time. */
import type { SessionStory, SessionStoryQuery } from '../../session-store.ts'
import type { EventPosition, StoredEvent } from '../../store.ts'
import type { ReadContext } from '../contexts.ts'
import { sessionSummary } from './summary.ts'
import { walkSession } from './walk.ts'

/**
 * The log is walked backwards, so the oldest `limit` events after `after` are the last ones that pass: no more than
 * those are held at a time.
 */
export function readStory({ events }: ReadContext, query: SessionStoryQuery): SessionStory | null {
  const { sessionId, after, limit, eventsMax } = query
  const sum = sessionSummary(sessionId)
  const oldest: StoredEvent[] = [] // a ring
  let passed = 0
  let isCut = false
  const { ceilingSeq } = walkSession(events, query, (event) => {
    isCut = sum.events() === eventsMax
    if (isCut) return false
    sum.add(event)
    if (after === null || isAfter(event, after)) oldest[passed++ % limit] = event
    return true
  })
  if (sum.events() === 0) return null
  const shown = oldest.sort((a, b) => a.occurredAtMs - b.occurredAtMs || a.seq - b.seq)
  const last = shown.at(-1)
  const next =
    passed > limit && last !== undefined ? { occurredAtMs: last.occurredAtMs, seq: last.seq } : null
  return { session: sum.result(isCut), events: shown, next, ceilingSeq }
}

function isAfter({ occurredAtMs, seq }: StoredEvent, after: EventPosition): boolean {
  return occurredAtMs > after.occurredAtMs || (occurredAtMs === after.occurredAtMs && seq > after.seq)
}
