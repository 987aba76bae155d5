/** Makes the filters of segments that an earlier schema sealed without them, a few at a time. */
import type { Database } from 'bun:sqlite'
import { codesInSegment } from './posting.ts'
import { filteredMembers, writeFilter } from './value-filter.ts'

/** Filters that one step makes; a few milliseconds. */
const stepFilters = 4

export interface FilterBackfill {
  isDue(): boolean
  /** Inside a transaction: makes the filters of a few segments that an earlier schema sealed without them. */
  step(): void
  /** A transaction was undone: what is missing is looked up anew. */
  forget(): void
}

type Lacking = { org: number; segment: number; member: number }

export function filterBackfill(db: Database): FilterBackfill {
  let lacking = lackingFilters(db)
  return {
    isDue: () => lacking.length > 0,
    step() {
      for (const at of lacking.splice(0, stepFilters)) {
        const codes = codesInSegment(db, at)
        if (codes.length > 0) writeFilter(db, at, codes, codes.length) // none: retention was there first
      }
    },
    forget() {
      lacking = lackingFilters(db)
    },
  }
}

function lackingFilters(db: Database): Lacking[] {
  const find = db.query<Lacking, [number]>(
    `SELECT org, segment, ?1 AS member FROM event_segment AS sealed WHERE NOT EXISTS (
       SELECT 1 FROM event_posting_filter AS filter
       WHERE filter.org = sealed.org AND filter.segment = sealed.segment AND filter.member = ?1)`,
  )
  return filteredMembers.flatMap((member) => find.all(member))
}
