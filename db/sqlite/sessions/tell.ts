/** Sums several sessions up in one pass; those that are longer than may be counted again, by their newest events. */
import type { Session } from '../../session-store.ts'
import type { EventPosition } from '../../store.ts'
import type { OpenBlock } from '../events/open-block.ts'
import type { Candidate } from './candidates.ts'
import type { LogView } from './log-view.ts'
import { newestOfSession, visitSessions } from './rows.ts'
import { summaryOf, summaryOfRows } from './summary.ts'
import { addToTally, emptyTally, type Tally } from './tally.ts'
import type { SessionTexts } from './texts.ts'

export interface Asked {
  candidates: Candidate[]
  ceilingSeq: number
  eventsMax: number
  /** Which events `newest` is of; each candidate has one. */
  matches(block: OpenBlock, row: number): boolean
  budgetMs: number
}

export interface Told {
  session: Session
  newest: EventPosition | null // of its events that match
}

interface Telling {
  tally: Tally
  known: EventPosition
  newest: EventPosition | null
}

/** Whenever the budget is used up, the later half of the sessions is left out; the first one is always there. */
export function tellSessions(log: LogView, texts: SessionTexts, asked: Asked): Map<string, Told> {
  const { candidates, ceilingSeq, eventsMax, matches, budgetMs } = asked
  const tellings = new Map<string, Telling>()
  for (const { id, newest } of candidates)
    tellings.set(id, { tally: emptyTally(), known: newest, newest: null })
  let endMs = performance.now() + budgetMs
  visitSessions(log, [...tellings.keys()], ceilingSeq, {
    wants(id, maxAt) {
      const one = tellings.get(id)
      return one !== undefined && (one.tally.events <= eventsMax || one.known.occurredAtMs <= maxAt)
    },
    visit(id, row, block) {
      const one = tellings.get(id)
      if (one === undefined) return
      // Of one that is too long only the newest match is asked for from here on.
      if (one.tally.events <= eventsMax) addToTally(one.tally, row, texts.height)
      if (isNewer(row, one.newest) && matches(block, row.row))
        one.newest = { occurredAtMs: row.at, seq: row.seq }
    },
    block() {
      if (performance.now() < endMs || tellings.size <= 1) return
      for (const id of [...tellings.keys()].slice(Math.ceil(tellings.size / 2))) tellings.delete(id)
      endMs = performance.now() + budgetMs
    },
  })
  const told = new Map<string, Told>()
  for (const [id, { tally, newest }] of tellings) {
    const isLong = tally.events > eventsMax
    const session = isLong
      ? summaryOfRows(id, newestOfSession(log, id, ceilingSeq, eventsMax), texts)
      : summaryOf(id, tally, texts)
    told.set(id, { session, newest })
  }
  return told
}

function isNewer({ at, seq }: { at: number; seq: number }, than: EventPosition | null): boolean {
  return than === null || at > than.occurredAtMs || (at === than.occurredAtMs && seq > than.seq)
}
