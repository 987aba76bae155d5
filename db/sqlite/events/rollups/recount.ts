/** Recounts one hour from its events and returns each wrong rollup row (expected: none). */
import { foldState, noteRewrite } from './hours.ts'
import { dayHours, hourMs, rollupCounts, type RollupCounts } from './counts.ts'
import { seqMax, seqOf } from '../blocks/row-key.ts'
import { addToRow, countedRows, isDayRow, rowDifferences, storedRows, type RowKey } from './rows.ts'
import { partsOf } from '../read/walk.ts'
import { readColumns, type Zone } from '../blocks/block-table.ts'
import { extra } from '../blocks/block.ts'
import type { Database } from 'bun:sqlite'
import type { RollupRepair } from '../../../contract/store.ts'
import type { PackedColumns } from '../blocks/number-columns.ts'

/** Blocks per slice: about 8 ms. A day of ten million events takes 15 s, and its reader answers others meanwhile. */
const sliceBlocks = 24

/** How often a count may start again. Then it takes one long slice, or it might never end. */
const restartsMax = 20

interface Wanted {
  fromMs: number
  untilMs: number // exclusive
  /** The blocks that may hold events of that time and reach past a seq, in arrival order. */
  zonesAfter(db: Database, org: number, afterSeq: number): Iterable<Zone>
}

interface FoldedCount {
  /**
   * One slice, inside its own read transaction. Null until the last slice, which returns all counts up to the
   * watermark.
   */
  step(db: Database, org: number): RollupCounts | null
  /** In the transaction of the last step: also the unfolded arrivals. */
  rest(db: Database, org: number): RollupCounts
}

/**
 * Counts in arrival order, so that events folded meanwhile are counted too. Every other change of counts, such as
 * retention, raises event_org.rewrites and starts the count again.
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

/** Run by run, because each call opens the columns again. */
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

export interface Recounting {
  /** One slice, as in `countFolded`. The last one returns the differences to the rollups' `live` counts. */
  step(db: Database, org: number): RollupRepair[] | null
}

/** The last hour of a day completes the day. */
export function recounting(hourStartMs: number, blocksMax?: number): Recounting {
  const hour = Math.floor(hourStartMs / hourMs)
  const closesDay = hour % dayHours === dayHours - 1
  const firstHour = closesDay ? hour + 1 - dayHours : hour
  const range = { fromMs: firstHour * hourMs, untilMs: (hour + 1) * hourMs }
  const zonesAfter = (db: Database, org: number, seq: number) => indexedZones(db, org, seq, range)
  const counting = countFolded({ ...range, zonesAfter }, blocksMax)
  const ofHour = (key: RowKey) => !isDayRow(key) && Number(key.split(' ', 1)[0]) === hour

  return {
    step(db, org) {
      const counts = counting.step(db, org)
      if (counts === null) return null
      const found = differencesOf(db, org, hour, counts, ofHour)
      return closesDay ? [...found, ...differencesOf(db, org, firstHour, counts, isDayRow)] : found
    },
  }
}

/** By the segments, whose rows contain their times. */
function* indexedZones(
  db: Database,
  org: number,
  afterSeq: number,
  { fromMs, untilMs }: { fromMs: number; untilMs: number },
): Generator<Zone> {
  const mayHold = ({ minAt, maxAt }: { minAt: number; maxAt: number }) => maxAt >= fromMs && minAt < untilMs
  for (const part of partsOf(db, org, [], afterSeq).filter(mayHold)) {
    for (const zone of part.zones())
      if (mayHold(zone) && seqOf(zone.place) + zone.events - 1 > afterSeq) yield zone
  }
}

function differencesOf(
  db: Database,
  org: number,
  hour: number,
  counts: RollupCounts,
  isMeant: (row: RowKey) => boolean,
): RollupRepair[] {
  const counted = [...countedRows(counts)].filter(([row]) => isMeant(row))
  const stored = [...storedRows(db, org, hour)].filter(([row]) => isMeant(row))
  return Array.from(rowDifferences(stored, new Map(counted)), ([row, difference]) => ({ row, difference }))
}

/** Inside a transaction. Differences stay valid whatever was folded or expired since they were found. */
export function repairRollups(db: Database, org: number, repairs: readonly RollupRepair[]): void {
  for (const { row, difference } of repairs) addToRow(db, org, row, difference)
  noteRewrite(db, org)
  db.query('DELETE FROM event_type_total WHERE org = ?').run(org)
  db.query(
    `INSERT INTO event_type_total (org, type, events)
     SELECT org, type, sum(live + expired) FROM rollup_metric WHERE org = ? GROUP BY type`,
  ).run(org)
}
