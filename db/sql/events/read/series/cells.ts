/** What a series has counted so far, by group and step, within a bound of memory. */
import type { Database } from '../../../database.ts'
import type { SeriesValue } from '../../../../contract/event-series.ts'
import { otherCode } from '../../blocks/fields.ts'
import type { Clause } from '../../index/filter-codes.ts'
import type { RollupCounts } from '../../rollups/counts.ts'
import { bucketsMax } from '../../rollups/sketches.ts'

/** Distinct values, or buckets of durations, of all groups and steps together. One more ends the query. */
export const cellsMax = 500_000

/** What a step of a group has counted so far. */
export interface Cells {
  events: Uint32Array
  part: Uint32Array
  sums: Float64Array // of tokens
  sets: Map<number, Set<number>> // by step
  buckets: Map<number, Map<number, number>> // by step
}

export interface Reading {
  db: Database
  org: number
  value: SeriesValue | null
  steps: number
  indexed: Clause[] // the clauses that a segment index covers
  clauses: Clause[]
  part: Clause[] | null
  groupMember: number | null
  groups: Map<number, Cells> // by code; 0 without a field to group by
  cells: number
  endMs: number
  unfolded: Map<number | null, RollupCounts> // by field
}

/** Hostile values cannot take more memory than this many numbers: further groups count as one. */
const numbersMax = 2_000_000
const groupsMin = 100

export function cellsOf({ groups, steps, value, part }: Reading, of: number): Cells {
  const isFull = groups.size >= Math.max(groupsMin, numbersMax / steps)
  const code = isFull && !groups.has(of) ? otherCode : of
  let cells = groups.get(code)
  if (cells === undefined) {
    cells = {
      ...{ events: new Uint32Array(steps), part: new Uint32Array(part === null ? 0 : steps) },
      ...{ sums: new Float64Array(value === 'tokens' ? steps : 0), sets: new Map(), buckets: new Map() },
    }
    groups.set(code, cells)
  }
  return cells
}

export function addDuration(
  reading: Reading,
  cells: Cells,
  step: number,
  bucketCode: number,
  count: number,
): void {
  const bucket = bucketCode % bucketsMax
  let buckets = cells.buckets.get(step)
  if (buckets === undefined) cells.buckets.set(step, (buckets = new Map()))
  const known = buckets.get(bucket)
  if (known === undefined) reading.cells++
  buckets.set(bucket, (known ?? 0) + count)
  cells.events[step]! += count
}
