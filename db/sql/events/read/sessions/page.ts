/** Lists sessions by their newest matching event, and pages through the events of one session. */
import { filterClauses } from '../../index/filter-codes.ts'
import type { Clause } from '../../blocks/clause.ts'
import { summarizeSessions, summaryOfRows, type Candidate } from './summarize.ts'
import { isAfter, newestOf, newestOfSession, sessionTexts, type LogView, type SessionRow } from './rows.ts'
import { StoreError } from '../../../../contract/errors.ts'
import { type OpenBlock, type Zone, readAhead, readBlock } from '../../blocks/block-table.ts'
import { textsAhead } from '../../blocks/read-ahead.ts'
import { isSliceOver, type Sliced } from '../../../slices.ts'
import { boundsOf, endsBefore, newestFirst, newestZones, overlaps, type Bounds, type Span } from '../page.ts'
import { partsOf, type Part } from '../../index/walk.ts'
import type {
  Session,
  SessionPage,
  SessionPageQuery,
  SessionStory,
  SessionStoryQuery,
} from '../../../../contract/sessions.ts'
import type { EventPosition, StoredEvent } from '../../../../contract/store.ts'
import type { Database } from '../../../database.ts'

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
  const walk = { filter, clauses, ceilingSeq, listed: new Set<string>(), endMs: startMs + budgetMs }
  const texts = sessionTexts(log)
  const sessions: Session[] = []
  const matches = (block: OpenBlock, row: number) =>
    block.at(row) >= (filter.sinceMs ?? -Infinity) &&
    block.at(row) < (filter.untilMs ?? Infinity) &&
    block.matches(row, clauses)
  let beforePosition = query.before
  let bytes = 0
  for (;;) {
    const { candidates, next } = yield* nextCandidates(log, walk, beforePosition, limit - sessions.length)
    const summaries = yield* summarizeSessions(log, texts, {
      candidates,
      ceilingSeq,
      eventsMax,
      matches,
      budgetMs,
    })
    for (const candidate of candidates) {
      const summary = summaries.get(candidate.id)
      if (summary === undefined) return { sessions, next: candidate.before, ceilingSeq }
      // A continued walk may find a session of an earlier page again.
      if (summary.newest?.seq !== candidate.newest.seq) continue
      bytes += Buffer.byteLength(JSON.stringify(summary.session))
      if (sessions.length > 0 && bytes > bytesMax) return { sessions, next: candidate.before, ceilingSeq }
      sessions.push(summary.session)
    }
    beforePosition = next
    if (next === null || sessions.length === limit || performance.now() > startMs + query.budgetMs)
      return { sessions, next, ceilingSeq }
  }
}

/** Inflates only the events of the page. */
export function* readStory(
  log: LogView,
  query: SessionStoryQuery & { ceilingSeq: number },
): Sliced<SessionStory | null> {
  const { sessionId, after: afterPosition, limit, ceilingSeq, eventsMax, bytesMax = Infinity } = query
  const newestRows = yield* newestOfSession(log, sessionId, ceilingSeq, eventsMax)
  if (newestRows.rows.length === 0) return null
  const rows = newestRows.rows
    .toReversed()
    .filter((row) => afterPosition === null || isAfter(row, afterPosition))
  const events = yield* openEvents(log, rows.slice(0, limit), bytesMax)
  const last = events.at(-1)
  const next =
    rows.length > events.length && last !== undefined
      ? { occurredAtMs: last.occurredAtMs, seq: last.seq }
      : null
  return { session: summaryOfRows(sessionId, newestRows, sessionTexts(log)), events, next, ceilingSeq }
}

function* openEvents({ db }: LogView, rows: SessionRow[], bytesMax: number): Sliced<StoredEvent[]> {
  const blocks = new Map<number, OpenBlock | null>()
  const events: StoredEvent[] = []
  let bytes = 0
  for (const { zone, row } of textsAhead(db, rows, (sessionRow) => sessionRow.zone.place)) {
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

interface Walk extends Pick<SessionPageQuery, 'filter'> {
  clauses: readonly Clause[]
  ceilingSeq: number
  listed: Set<string> // sessions that were candidates before, as JSON text
  endMs: number
}

interface Scan extends Walk {
  db: Database
  bounds: Bounds
  newest: Map<string, EventPosition> // by session as JSON text
  isPruned: boolean
}

/**
 * Visits parts, and the blocks in each, by their newest time. The search ends at what is older than the last of `count`
 * candidates. When time is up it ends where everything newer was examined, possibly without a candidate. `next` is null
 * when no event is left.
 */
function* nextCandidates(
  { db, org }: LogView,
  walk: Walk,
  beforePosition: EventPosition | null,
  count: number,
): Sliced<{ candidates: Candidate[]; next: EventPosition | null }> {
  const { clauses, ceilingSeq, endMs } = walk
  const bounds = boundsOf({ filter: walk.filter, before: beforePosition }, ceilingSeq)
  const scan: Scan = { ...walk, db, bounds, newest: new Map(), isPruned: false }
  const parts = partsOf(db, org, clauses, 0).filter((part) => overlaps(part, bounds))
  parts.sort(newestFirst)
  for (const [index, part] of parts.entries()) {
    const zones = newestZones(part, bounds)
    let zoneIndex = -1
    for (const zone of readAhead(db, zones)) {
      zoneIndex++
      if (isSliceOver()) yield
      scanZone(scan, part, zone)
      const isLate = performance.now() > endMs
      const remainingSpan = newestOf(zones[zoneIndex + 1], parts[index + 1])
      if (remainingSpan === null || (scan.newest.size < count && !isLate)) continue
      prune(scan, count)
      const settled = settledAfter(scan.newest, remainingSpan)
      if (settled.length < count && !isLate) continue
      const next = settled.length === count ? settled.at(-1)![1] : endOf(remainingSpan)
      if (settled.length === 0 && !isEarlier(next, bounds.before)) continue // the walk would not advance
      return { candidates: candidatesOf(settled, beforePosition, walk.listed), next }
    }
  }
  prune(scan, count)
  const newestEntries = [...scan.newest]
  const next = scan.isPruned ? (newestEntries.at(-1)?.[1] ?? null) : null
  return { candidates: candidatesOf(newestEntries, beforePosition, walk.listed), next }
}

/** Sorts the sessions and drops all but the newest. A dropped session that proves newer is added again. */
function prune(scan: Scan, count: number): void {
  const sorted = [...scan.newest].sort(([, a], [, b]) => b.occurredAtMs - a.occurredAtMs || b.seq - a.seq)
  if (sorted.length > count) scan.isPruned = true
  scan.newest = new Map(sorted.slice(0, count))
}

function scanZone({ db, bounds, clauses, listed, newest }: Scan, part: Part, zone: Zone): void {
  const block = readBlock(db, zone, clauses)
  if (block === null) return
  const { sinceMs, before: beforePosition, ceilingSeq } = bounds
  for (let row = 0; row < block.rows; row++) {
    const atMs = block.at(row)
    const seq = block.firstSeq + row
    if (
      atMs < sinceMs ||
      atMs > beforePosition.occurredAtMs ||
      (atMs === beforePosition.occurredAtMs && seq >= beforePosition.seq)
    )
      continue
    if (seq > ceilingSeq || !part.mayMatch(zone, row) || !block.matches(row, clauses)) continue
    const text = block.session(row)
    const newestPosition = newest.get(text)
    if (newestPosition === undefined) {
      if (!listed.has(text)) newest.set(text, { occurredAtMs: atMs, seq })
    } else if (
      atMs > newestPosition.occurredAtMs ||
      (atMs === newestPosition.occurredAtMs && seq > newestPosition.seq)
    ) {
      newestPosition.occurredAtMs = atMs
      newestPosition.seq = seq
    }
  }
}

type Found = [text: string, newest: EventPosition]

/** The candidates newer than all that is left to examine. */
function settledAfter(newest: ReadonlyMap<string, EventPosition>, remainingSpan: Span): Found[] {
  const newestEntries = [...newest]
  const end = newestEntries.findIndex(([, position]) => !endsBefore(remainingSpan, position))
  return end < 0 ? newestEntries : newestEntries.slice(0, end)
}

/** The position before which everything in it lies. */
function endOf({ maxAt, lastSeq }: Span): EventPosition {
  return { occurredAtMs: maxAt, seq: lastSeq + 1 }
}

function isEarlier(a: EventPosition, b: EventPosition): boolean {
  return a.occurredAtMs < b.occurredAtMs || (a.occurredAtMs === b.occurredAtMs && a.seq < b.seq)
}

function candidatesOf(newestEntries: Found[], start: EventPosition | null, listed: Set<string>): Candidate[] {
  return newestEntries.map(([text, newest], index) => {
    listed.add(text)
    return { id: JSON.parse(text) as string, newest, before: newestEntries[index - 1]?.[1] ?? start }
  })
}
