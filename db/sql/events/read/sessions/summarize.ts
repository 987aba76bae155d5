/** Summarizes several sessions in one pass, newest first, until each is complete or has 10,000 events. */
import { endsBefore, type Span } from '../page.ts'
import {
  type LogView,
  type NewestRows,
  type SessionRow,
  type SessionTexts,
  type Totals,
  accumulate,
  emptyTotals,
  isAfter,
  newestOfSession,
  newestRowFirst,
  visitSessions,
} from './rows.ts'
import type { Session } from '../../../../contract/sessions.ts'
import type { EventPosition } from '../../../../contract/store.ts'
import type { OpenBlock } from '../../blocks/block-table.ts'
import type { Sliced } from '../../../slices.ts'

export interface Candidate {
  id: string
  newest: EventPosition // its newest matching event after the walk's position
  before: EventPosition | null // a position of the walk before it reaches the session
}

interface SummaryQuery {
  candidates: Candidate[]
  ceilingSeq: number
  eventsMax: number
  /** The filter of `newest`; each candidate has one. */
  matches(block: OpenBlock, row: number): boolean
  budgetMs: number
}

interface Summary {
  session: Session
  newest: EventPosition | null // its newest matching event
}

interface Accumulator {
  totals: Totals
  known: EventPosition
  newest: EventPosition | null
  oldest: EventPosition | null // of the summarized ones
  isCut: boolean // more events exist than were summarized
  isDoubtful: boolean // an omitted event is newer than a summarized one: times and arrivals disagree
}

/**
 * Summarizes fewer sessions as time runs out: half of them after half of the budget, and only the first when it is used
 * up.
 */
export function* summarizeSessions(
  log: LogView,
  texts: SessionTexts,
  { candidates, ceilingSeq, eventsMax, matches, budgetMs }: SummaryQuery,
): Sliced<Map<string, Summary>> {
  const accumulators = new Map<string, Accumulator>()
  for (const { id, newest } of candidates) accumulators.set(id, emptyAccumulator(newest))
  const drop = halver(accumulators, budgetMs)
  yield* visitSessions(log, [...accumulators.keys()], ceilingSeq, {
    wants(id, remainingSpan) {
      const accumulator = accumulators.get(id)
      return (
        accumulator !== undefined &&
        (!isComplete(accumulator, remainingSpan) || mayHoldNewer(remainingSpan, accumulator.known))
      )
    },
    visit(id, rows, block) {
      const accumulator = accumulators.get(id)
      if (accumulator === undefined) return
      for (const row of rows)
        if ((accumulator.newest === null || isAfter(row, accumulator.newest)) && matches(block, row.row))
          accumulator.newest = positionOf(row)
      addRows(accumulator, rows, eventsMax, texts)
    },
    block: drop,
  })
  const summaries = new Map<string, Summary>()
  for (const [id, { totals, newest, isCut, isDoubtful }] of accumulators) {
    if (isDoubtful && drop() && !accumulators.has(id)) continue
    const session = isDoubtful
      ? summaryOfRows(id, yield* newestOfSession(log, id, ceilingSeq, eventsMax), texts)
      : summaryOf(id, totals, texts, isCut)
    summaries.set(id, { session, newest })
  }
  return summaries
}

function emptyAccumulator(knownPosition: EventPosition): Accumulator {
  return {
    totals: emptyTotals(),
    known: knownPosition,
    newest: null,
    oldest: null,
    isCut: false,
    isDoubtful: false,
  }
}

/** Drops the later half of the sessions each time half of the remaining budget is used up. */
function halver(accumulators: Map<string, Accumulator>, budgetMs: number): () => boolean {
  let leftMs = budgetMs / 2
  let dueMs = performance.now() + leftMs
  return () => {
    if (performance.now() < dueMs || accumulators.size <= 1) return false
    for (const id of [...accumulators.keys()].slice(Math.ceil(accumulators.size / 2))) accumulators.delete(id)
    leftMs /= 2
    dueMs += leftMs
    return true
  }
}

function mayHoldNewer(remainingSpan: Span, position: EventPosition): boolean {
  return !endsBefore(remainingSpan, position)
}

/** Whether no remaining event can change the summary. */
function isComplete({ isCut, isDoubtful, oldest }: Accumulator, remainingSpan: Span): boolean {
  return isDoubtful || (isCut && (oldest === null || endsBefore(remainingSpan, oldest)))
}

/** Adds the newest of the rows up to the limit. */
function addRows(accumulator: Accumulator, rows: SessionRow[], eventsMax: number, texts: SessionTexts): void {
  const free = accumulator.isCut ? 0 : eventsMax - accumulator.totals.events
  const counted = rows.length <= free ? rows : rows.sort(newestRowFirst).slice(0, free)
  for (const row of counted) {
    accumulate(accumulator.totals, row, texts.height)
    if (accumulator.oldest === null || !isAfter(row, accumulator.oldest)) accumulator.oldest = positionOf(row)
  }
  const nextRow = rows[counted.length]
  if (nextRow === undefined) return
  accumulator.isCut = true
  if (accumulator.oldest !== null && isAfter(nextRow, accumulator.oldest)) accumulator.isDoubtful = true
}

function positionOf({ at: atMs, seq }: SessionRow): EventPosition {
  return { occurredAtMs: atMs, seq }
}

/** A session from its summary, or from its newest events. */
function summaryOf(id: string, totals: Totals, texts: SessionTexts, isCut = false): Session {
  const { agent } = totals
  const sites = [...totals.sites].sort(([, a], [, b]) => a.occurredAtMs - b.occurredAtMs || a.seq - b.seq)
  const byPillar = new Map<string, number>()
  for (const [code, count] of totals.types) {
    const type = texts.term('type', code)
    const pillar = type.split('.', 1)[0] ?? type
    byPillar.set(pillar, (byPillar.get(pillar) ?? 0) + count)
  }
  const byOutcome = Array.from(totals.outcomes, ([code, count]) => [texts.term('outcome', code), count])
  return {
    id,
    siteIds: sites.map(([code]) => texts.term('siteId', code)),
    firstSeenAtMs: totals.firstAt,
    lastSeenAtMs: totals.lastAt,
    events: totals.events,
    isCut,
    class: agent && texts.of('class', agent),
    vendor: agent && texts.of('vendor', agent),
    trust: agent && texts.of('trust', agent),
    byPillar: Object.fromEntries(byPillar),
    byOutcome: Object.fromEntries(byOutcome) as Session['byOutcome'],
  }
}

export function summaryOfRows(id: string, { rows, isCut }: NewestRows, texts: SessionTexts): Session {
  const totals = emptyTotals()
  for (const row of rows) accumulate(totals, row, texts.height)
  return summaryOf(id, totals, texts, isCut)
}
