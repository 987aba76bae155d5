/** Lists sessions by their newest matching event, and pages through the events of one session. */
import { filterClauses } from '../../index/filter-codes.ts'
import { nextCandidates, type LogView } from './candidates.ts'
import { summaryOfRows, summarizeSessions } from './summarize.ts'
import { type SessionRow, isAfter, newestOfSession, sessionTexts } from './rows.ts'
import { StoreError } from '../../../../contract/errors.ts'
import { readBlock, type OpenBlock } from '../../blocks/open-block.ts'
import { isSliceOver, type Sliced } from '../../../threads/slices.ts'
import type {
  Session,
  SessionPage,
  SessionPageQuery,
  SessionStory,
  SessionStoryQuery,
} from '../../../../contract/sessions.ts'
import type { StoredEvent } from '../../../../contract/store.ts'

/** Ends early when the budget is used up. The walk continues at `next`. */
export function* listSessions(
  log: LogView,
  query: SessionPageQuery & { ceilingSeq: number },
): Sliced<SessionPage> {
  const { filter, limit, ceilingSeq, eventsMax, bytesMax = Infinity } = query
  // Half of the time finds the next sessions, half summarizes them.
  const budgetMs = query.budgetMs / 2
  const startMs = performance.now()
  const clauses = filterClauses(log.db, log.org, log.hashSeed, filter)
  const walk = { filter, clauses, ceilingSeq, told: new Set<string>(), endMs: startMs + budgetMs }
  const texts = sessionTexts(log)
  const sessions: Session[] = []
  const matches = (block: OpenBlock, row: number) =>
    block.at(row) >= (filter.sinceMs ?? -Infinity) &&
    block.at(row) < (filter.untilMs ?? Infinity) &&
    block.matches(row, clauses)
  let before = query.before
  let bytes = 0
  for (;;) {
    const { candidates, next } = yield* nextCandidates(log, walk, before, limit - sessions.length)
    const told = yield* summarizeSessions(log, texts, {
      candidates,
      ceilingSeq,
      eventsMax,
      matches,
      budgetMs,
    })
    for (const candidate of candidates) {
      const own = told.get(candidate.id)
      if (own === undefined) return { sessions, next: candidate.before, ceilingSeq }
      // A continued walk may meet a session of an earlier page again.
      if (own.newest?.seq !== candidate.newest.seq) continue
      bytes += Buffer.byteLength(JSON.stringify(own.session))
      if (sessions.length > 0 && bytes > bytesMax) return { sessions, next: candidate.before, ceilingSeq }
      sessions.push(own.session)
    }
    before = next
    if (next === null || sessions.length === limit || performance.now() > startMs + query.budgetMs)
      return { sessions, next, ceilingSeq }
  }
}

/** Inflates only the events of the page. */
export function* readStory(
  log: LogView,
  query: SessionStoryQuery & { ceilingSeq: number },
): Sliced<SessionStory | null> {
  const { sessionId, after, limit, ceilingSeq, eventsMax, bytesMax = Infinity } = query
  const found = yield* newestOfSession(log, sessionId, ceilingSeq, eventsMax)
  if (found.rows.length === 0) return null
  const rows = found.rows.toReversed().filter((row) => after === null || isAfter(row, after))
  const events = yield* openEvents(log, rows.slice(0, limit), bytesMax)
  const last = events.at(-1)
  const next =
    rows.length > events.length && last !== undefined
      ? { occurredAtMs: last.occurredAtMs, seq: last.seq }
      : null
  return { session: summaryOfRows(sessionId, found, sessionTexts(log)), events, next, ceilingSeq }
}

function* openEvents({ db }: LogView, rows: SessionRow[], bytesMax: number): Sliced<StoredEvent[]> {
  const blocks = new Map<number, OpenBlock | null>()
  const events: StoredEvent[] = []
  let bytes = 0
  for (const { zone, row } of rows) {
    if (isSliceOver()) yield
    if (!blocks.has(zone.place)) blocks.set(zone.place, readBlock(db, zone))
    const block = blocks.get(zone.place) ?? null
    if (block === null) throw new StoreError('corrupt', `block ${zone.place} is missing`)
    const event = block.event(row)
    bytes += Buffer.byteLength(event.json)
    if (events.length > 0 && bytes > bytesMax) break
    events.push(event)
  }
  return events
}
