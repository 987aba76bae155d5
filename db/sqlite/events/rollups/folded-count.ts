/** Counts from its blocks what an organization's rollups count, slice by slice beside a writer that goes on. */
import type { Database } from 'bun:sqlite'
import { readColumns, type Zone } from '../blocks/block-table.ts'
import { extra } from '../blocks/block.ts'
import { foldState } from '../cache/hours.ts'
import type { PackedColumns } from '../blocks/number-columns.ts'
import { seqMax, seqOf } from '../blocks/row-key.ts'
import { rollupCounts, type RollupCounts } from './counts.ts'

/** Blocks of one slice: about 8 ms. A day of ten million events takes 15 s, and its reader has others to answer. */
const sliceBlocks = 24

/** Times that a count may begin anew; then it takes one long slice, or it might never end. */
const restartsMax = 20

export interface Wanted {
  fromMs: number
  untilMs: number // exclusive
  /** The blocks that may hold events of that time, of those that reach past a seq, in order of arrival. */
  zonesAfter(db: Database, org: number, afterSeq: number): Iterable<Zone>
}

export interface FoldedCount {
  /** One slice, inside a read transaction of its own. Null while more is left; at the end all up to the watermark. */
  step(db: Database, org: number): RollupCounts | null
  /** In the transaction of the last step: what is behind the watermark too. */
  rest(db: Database, org: number): RollupCounts
}

/**
 * Counts in order of arrival, so that what comes and is folded meanwhile is counted too when its turn comes. Whatever
 * else changes counts, as retention does, raises event_org.rewrites, and the count begins anew.
 */
export function countFolded(wanted: Wanted, blocksMax = sliceBlocks): FoldedCount {
  let counts = rollupCounts()
  let countedSeq = 0
  let rewrites: number | null = null
  let restarts = -1

  /** Whether all arrivals up to a seq are counted. */
  function countOn(db: Database, org: number, lastSeq: number, blocks: number): boolean {
    for (const { place, events } of wanted.zonesAfter(db, org, countedSeq)) {
      const first = seqOf(place)
      if (first > lastSeq) break
      if (blocks-- === 0) return false
      const end = Math.min(events, lastSeq + 1 - first)
      const block = readColumns(db, place)
      if (block !== null) addRows(counts, block, Math.max(0, countedSeq + 1 - first), end, wanted)
      countedSeq = Math.max(countedSeq, first + end - 1)
    }
    return true
  }

  return {
    step(db, org) {
      const state = foldState(db, org)
      if (state?.rewrites !== rewrites) {
        rewrites = state?.rewrites ?? null
        counts = rollupCounts()
        countedSeq = 0
        restarts++
      }
      const blocks = restarts < restartsMax ? blocksMax : Infinity
      return countOn(db, org, state?.foldedSeq ?? 0, blocks) ? counts : null
    },
    rest(db, org) {
      countOn(db, org, seqMax, Infinity)
      return counts
    },
  }
}

/** Run by run, as each call opens the columns anew. */
function addRows(
  counts: RollupCounts,
  block: PackedColumns,
  first: number,
  end: number,
  { fromMs, untilMs }: Wanted,
): void {
  const times = block.column(extra.at)
  const isWanted = (row: number) => times[row]! >= fromMs && times[row]! < untilMs
  for (let row = first; row < end; row++) {
    if (!isWanted(row)) continue
    const from = row
    while (row < end && isWanted(row)) row++
    counts.add(block, from, row)
  }
}
