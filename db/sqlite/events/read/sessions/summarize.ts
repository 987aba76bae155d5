/** Summarizes several sessions in one pass, newest first, until each is complete or has 10,000 events. */
import { endsBefore, type Span } from '../page.ts'
import {
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
import type { OpenBlock } from '../../blocks/open-block.ts'
import type { Sliced } from '../../../threads/slices.ts'
import type { Candidate, LogView } from './candidates.ts'

export interface Asked {
  candidates: Candidate[]
  ceilingSeq: number
  eventsMax: number
  /** The filter of `newest`; each candidate has one. */
  matches(block: OpenBlock, row: number): boolean
  budgetMs: number
}

export interface Told {
  session: Session
  newest: EventPosition | null // its newest matching event
}

interface Telling {
  tally: Totals
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
  { candidates, ceilingSeq, eventsMax, matches, budgetMs }: Asked,
): Sliced<Map<string, Told>> {
  const tellings = new Map<string, Telling>()
  for (const { id, newest } of candidates) tellings.set(id, begun(newest))
  const drop = halver(tellings, budgetMs)
  yield* visitSessions(log, [...tellings.keys()], ceilingSeq, {
    wants(id, left) {
      const one = tellings.get(id)
      return one !== undefined && (!isComplete(one, left) || mayHoldNewer(left, one.known))
    },
    visit(id, rows, block) {
      const one = tellings.get(id)
      if (one === undefined) return
      for (const row of rows)
        if ((one.newest === null || isAfter(row, one.newest)) && matches(block, row.row))
          one.newest = positionOf(row)
      sumUp(one, rows, eventsMax, texts)
    },
    block: drop,
  })
  const told = new Map<string, Told>()
  for (const [id, { tally, newest, isCut, isDoubtful }] of tellings) {
    if (isDoubtful && drop() && !tellings.has(id)) continue
    const session = isDoubtful
      ? summaryOfRows(id, yield* newestOfSession(log, id, ceilingSeq, eventsMax), texts)
      : summaryOf(id, tally, texts, isCut)
    told.set(id, { session, newest })
  }
  return told
}

function begun(known: EventPosition): Telling {
  return { tally: emptyTotals(), known, newest: null, oldest: null, isCut: false, isDoubtful: false }
}

/** Drops the later half of the sessions each time half of the remaining budget is used up. */
function halver(tellings: Map<string, Telling>, budgetMs: number): () => boolean {
  let leftMs = budgetMs / 2
  let dueMs = performance.now() + leftMs
  return () => {
    if (performance.now() < dueMs || tellings.size <= 1) return false
    for (const id of [...tellings.keys()].slice(Math.ceil(tellings.size / 2))) tellings.delete(id)
    leftMs /= 2
    dueMs += leftMs
    return true
  }
}

function mayHoldNewer(left: Span, than: EventPosition): boolean {
  return !endsBefore(left, than)
}

/** Whether no remaining event can change the summary. */
function isComplete({ isCut, isDoubtful, oldest }: Telling, left: Span): boolean {
  return isDoubtful || (isCut && (oldest === null || endsBefore(left, oldest)))
}

/** Adds the newest of the rows up to the limit. */
function sumUp(one: Telling, rows: SessionRow[], eventsMax: number, texts: SessionTexts): void {
  const room = one.isCut ? 0 : eventsMax - one.tally.events
  const taken = rows.length <= room ? rows : rows.sort(newestRowFirst).slice(0, room)
  for (const row of taken) {
    accumulate(one.tally, row, texts.height)
    if (one.oldest === null || !isAfter(row, one.oldest)) one.oldest = positionOf(row)
  }
  const left = rows[taken.length]
  if (left === undefined) return
  one.isCut = true
  if (one.oldest !== null && isAfter(left, one.oldest)) one.isDoubtful = true
}

function positionOf({ at, seq }: SessionRow): EventPosition {
  return { occurredAtMs: at, seq }
}

/** A session from its summary, or from its newest events. */
function summaryOf(id: string, tally: Totals, texts: SessionTexts, isCut = false): Session {
  const { agent } = tally
  const sites = [...tally.sites].sort(([, a], [, b]) => a.occurredAtMs - b.occurredAtMs || a.seq - b.seq)
  const byPillar = new Map<string, number>()
  for (const [code, count] of tally.types) {
    const type = texts.term('type', code)
    const pillar = type.split('.', 1)[0] ?? type
    byPillar.set(pillar, (byPillar.get(pillar) ?? 0) + count)
  }
  const byOutcome = Array.from(tally.outcomes, ([code, count]) => [texts.term('outcome', code), count])
  return {
    id,
    siteIds: sites.map(([code]) => texts.term('siteId', code)),
    firstSeenAtMs: tally.firstAt,
    lastSeenAtMs: tally.lastAt,
    events: tally.events,
    isCut,
    class: agent && texts.of('class', agent),
    vendor: agent && texts.of('vendor', agent),
    trust: agent && texts.of('trust', agent),
    byPillar: Object.fromEntries(byPillar),
    byOutcome: Object.fromEntries(byOutcome) as Session['byOutcome'],
  }
}

export function summaryOfRows(id: string, { rows, isCut }: NewestRows, texts: SessionTexts): Session {
  const tally = emptyTotals()
  for (const row of rows) accumulate(tally, row, texts.height)
  return summaryOf(id, tally, texts, isCut)
}
