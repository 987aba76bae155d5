/** Walks the matching events from the newest on and tells each session where it shows first. */
import type { SessionPageQuery } from '../../session-store.ts'
import type { EventPosition } from '../../store.ts'
import type { Clause } from '../events/filter-codes.ts'
import { newestRows } from '../events/page.ts'
import type { LogView } from './log-view.ts'

const firstRows = 500
const rowsMax = 8_000

export interface Candidate {
  id: string
  newest: EventPosition // of the events that match and that the walk met
  before: EventPosition | null // where a walk stands that has yet to meet it
}

export interface Walk extends Pick<SessionPageQuery, 'filter'> {
  clauses: readonly Clause[]
  ceilingSeq: number
  told: Set<string> // sessions that are candidates already, as JSON text
  endMs: number
}

/** At most `count`, fewer when time is up; `next` is null when no event is left. Opens no text of an event. */
export function nextCandidates(
  { db, org, inTime }: LogView,
  { filter, clauses, ceilingSeq, told, endMs }: Walk,
  before: EventPosition | null,
  count: number,
): { candidates: Candidate[]; next: EventPosition | null } {
  const candidates: Candidate[] = []
  let stand = before
  for (let limit = firstRows; ; limit = Math.min(limit * 2, rowsMax)) {
    const found = newestRows(db, org, clauses, { filter, before: stand, limit }, ceilingSeq, inTime)
    for (const { at, seq, block, row } of found.rows) {
      const position = { occurredAtMs: at, seq }
      const text = block.session(row)
      if (!told.has(text)) {
        if (candidates.length === count) return { candidates, next: stand }
        told.add(text)
        candidates.push({ id: JSON.parse(text) as string, newest: position, before: stand })
      }
      stand = position
    }
    const isOver = found.next === null || candidates.length === count || performance.now() > endMs
    if (isOver) return { candidates, next: found.next }
    stand = found.next
  }
}
