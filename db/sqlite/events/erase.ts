/** Erases the events of a session or a subject for good, in bounded steps; a resend of one counts as deduped. */
import type { Database } from 'bun:sqlite'
import { blankRows, matchingRows } from './blank-rows.ts'
import type { EraseMark } from './erased-id.ts'
import type { Clause } from './filter-codes.ts'
import type { StepBounds } from './expire.ts'
import { takeFromRollups } from './fold.ts'
import { noteRewrite } from './kept-hours.ts'
import type { OrgState } from './org-state.ts'
import { seqOf } from './place.ts'
import { rollupCounts } from './rollup-counts.ts'

/*
 * Gone are the texts, the values and the counts; of the id a keyed hash stays (erased-id.ts). Segment indexes keep the
 * hashes of sessions and subjects that they had. Freed pages are overwritten (secure_delete); the log keeps older pages
 * until it is truncated, and backups are out of reach.
 */
export interface ErasedRange extends StepBounds {
  clauses: readonly Clause[]
  afterSeq: number
}

/** `lastSeq` is where the next step goes on; null when this one came to the end. */
export function eraseEvents(
  db: Database,
  org: OrgState,
  { clauses, afterSeq, blocksMax, rollupRowsMax }: ErasedRange,
  mark: EraseMark,
): { events: number; lastSeq: number | null } {
  const folded = rollupCounts()
  let events = 0
  let blocks = 0
  let lastSeq: number | null = null
  for (const found of matchingRows(db, org.num, clauses, afterSeq)) {
    if (blocks++ === blocksMax || folded.entries() >= rollupRowsMax) {
      lastSeq = seqOf(found.zone.place) - 1
      break
    }
    blankRows(db, found, org.foldedSeq, folded, (id) => mark(org.num, id))
    events += found.rows.length
  }
  takeFromRollups(db, org.num, folded)
  if (events > 0) noteRewrite(db, org.num)
  return { events, lastSeq }
}
