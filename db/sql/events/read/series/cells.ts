/** What a series has counted so far, by group and step, within a bound of memory. */
import type { Database } from '../../../database.ts'
import type { SeriesValue } from '../../../../contract/event-series.ts'
import { otherCode } from '../../blocks/fields.ts'
import type { Clause } from '../../blocks/clause.ts'
import type { RollupCounts } from '../../rollups/counts.ts'
import { bucketsMax, quantile } from '../../rollups/sketches.ts'
import { codesSpan, pairs, type Pairs } from '../pairs.ts'

/** A million distinct values, or buckets of durations, of all groups and steps together, in 24 MiB. */
const placesMax = 2 ** 21

/** What a step of a group has counted so far. */
export interface Cells {
  index: number // of the group
  events: Uint32Array
  part: Uint32Array
  values: Float64Array // sums of tokens, or distinct values
}

export interface Reading {
  db: Database
  org: number
  value: SeriesValue | null
  steps: number
  edges: readonly number[] // of the steps
  indexed: Clause[] // the clauses that a segment index covers
  clauses: Clause[]
  part: Clause[] | null
  groupMember: number | null
  groups: Map<number, Cells> // by code; 0 without a field to group by
  found: Pairs // of a cell (group and step) and a distinct value, or a bucket of durations
  endMs: number
  unfolded: Map<number | null, RollupCounts> // by field
}

export const noPairs = (value: SeriesValue | null): Pairs => pairs(placesMax, value === 'p95')

/** Hostile values cannot take more memory than this many numbers: further groups count as one. */
const numbersMax = 2_000_000
const groupsMin = 100

export function cellsOf({ groups, steps, value, part }: Reading, groupCode: number): Cells {
  const existingCells = groups.get(groupCode)
  if (existingCells !== undefined) return existingCells
  const isFull = groups.size >= Math.max(groupsMin, numbersMax / steps)
  const code = isFull ? otherCode : groupCode
  let cells = groups.get(code)
  if (cells === undefined) {
    cells = {
      index: groups.size,
      events: new Uint32Array(steps),
      part: new Uint32Array(part === null ? 0 : steps),
      values: new Float64Array(value === null || value === 'p95' ? 0 : steps),
    }
    groups.set(code, cells)
  }
  return cells
}

export function addDuration(
  { found: cellPairs, steps }: Reading,
  cells: Cells,
  step: number,
  bucketCode: number,
  count: number,
): void {
  cellPairs.add(cells.index * steps + step, bucketCode % bucketsMax, count)
  cells.events[step]! += count
}

/** Adds a value that may have been there before. */
export function addDistinct(
  { found: cellPairs, steps }: Reading,
  cells: Cells,
  step: number,
  hash: number,
): void {
  if (hash !== 0 && cellPairs.add(cells.index * steps + step, hash >= codesSpan ? hash - codesSpan : hash))
    cells.values[step]!++
}

/**
 * Makes room for the pairs of one more block, in steps that begin before `leftMs`: what later steps have counted is
 * final. False: there is no room even then.
 */
export function makeRoom(reading: Reading, leftMs: number): boolean {
  const { found: cellPairs, value, edges, steps } = reading
  if (!cellPairs.isFull()) return true
  // A small table stays in the processor's cache.
  if (value !== 'p95' && cellPairs.keep((cell) => edges[cell % steps]! < leftMs)) return true
  return cellPairs.grow()
}

/** The p95 by group and step. */
export function quantiles(
  { found: cellPairs, steps }: Reading,
  share: number,
): (group: Cells, step: number) => number {
  const byCell = new Map<number, Map<number, number>>()
  cellPairs.each((cell, bucket, count) => {
    const buckets = byCell.get(cell)
    if (buckets === undefined) byCell.set(cell, new Map([[bucket, count]]))
    else buckets.set(bucket, (buckets.get(bucket) ?? 0) + count)
  })
  const emptyBuckets = new Map<number, number>()
  return ({ index }, step) => quantile(byCell.get(index * steps + step) ?? emptyBuckets, share)
}
