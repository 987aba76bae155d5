/** Erases the events of a session or a subject for good, in bounded steps; a resend of one counts as deduped. */
import type { Database } from 'bun:sqlite'
import type { EraseRange } from '../../../contract/store.ts'
import { blankRows, matchingRows } from './blank-rows.ts'
import type { EraseMark } from '../dedupe/erased-id.ts'
import type { Clause } from '../index/filter-codes.ts'
import type { StepBounds } from './expire.ts'
import { takeFromRollups } from '../rollups/fold.ts'
import { noteRewrite } from '../cache/hours.ts'
import type { OrgState } from '../write/org-state.ts'
import { seqOf } from '../blocks/row-key.ts'
import { rollupCounts } from '../rollups/counts.ts'

/*
 * Gone are the texts, the values and the counts; of the id a keyed hash stays (erased-id.ts). Segment indexes keep the
 * hashes of sessions and subjects that they had. Freed pages are overwritten (secure_delete); the log keeps older pages
 * until it is truncated, and backups are out of reach.
 */
export interface Erased extends StepBounds, EraseRange {
  clauses: readonly Clause[]
}

/**
 * The organization's rollups must be folded. Looks at whole blocks, so at the end it may go a little beyond the range.
 * `next` is null when nothing is left.
 */
export function eraseEvents(
  db: Database,
  org: OrgState,
  { clauses, after, until, blocksMax, rollupRowsMax }: Erased,
  mark: EraseMark,
): { events: number; next: EraseRange | null } {
  const gone = rollupCounts()
  let events = 0
  let blocks = 0
  let next: EraseRange | null = null
  for (const found of matchingRows(db, org.num, clauses, after)) {
    const firstSeq = seqOf(found.zone.place)
    if (firstSeq > until) break
    if (blocks++ === blocksMax || gone.entries() >= rollupRowsMax) {
      next = { after: firstSeq - 1, until }
      break
    }
    blankRows(db, found, gone, (id) => mark(org.num, id))
    events += found.rows.length
  }
  takeFromRollups(db, org.num, gone)
  if (events > 0) noteRewrite(db, org.num)
  return { events, next }
}
