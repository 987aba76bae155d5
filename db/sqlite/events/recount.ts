/** Recounts one hour from its rows and says by how much each rollup row is wrong; expected: none is. */
import type { Database } from 'bun:sqlite'
import type { RollupRepair } from '../../store.ts'
import { readColumns } from './block-table.ts'
import { extra } from './block.ts'
import { noteRewrite } from './kept-hours.ts'
import { seqOf } from './place.ts'
import { dayHours, hourMs, rollupCounts, type RollupCounts } from './rollup-counts.ts'
import { addToRow, countedRows, isDayRow, rowDifferences, storedRows, type RowKey } from './rollup-rows.ts'
import { partsOf } from './walk.ts'

/** Blocks of one slice: about 25 ms. A day of ten million events takes 15 s, and its reader has others to answer. */
const sliceBlocks = 64

export interface Recounting {
  /**
   * One slice, inside a read transaction of its own. Null while more is left; at the end the differences between the
   * rollups' `live` counts and the rows up to the watermark.
   */
  step(db: Database, org: number): RollupRepair[] | null
}

/**
 * Counts in order of arrival, so that what comes and is folded meanwhile is counted too when its turn comes. Whatever
 * else changes counts, as retention does, makes it begin again. The last hour of a day closes the day.
 */
export function recounting(hourStartMs: number, blocksMax = sliceBlocks): Recounting {
  const hour = Math.floor(hourStartMs / hourMs)
  const closesDay = hour % dayHours === dayHours - 1
  const fromMs = (closesDay ? hour + 1 - dayHours : hour) * hourMs
  const untilMs = (hour + 1) * hourMs
  let counts = rollupCounts()
  let countedSeq = 0
  let rewrites: number | null = null

  /** Whether all arrivals up to the watermark are counted. */
  function count(db: Database, org: number, foldedSeq: number): boolean {
    let blocks = 0
    for (const { place, events } of zonesAfter(db, org, countedSeq, fromMs, untilMs)) {
      const first = seqOf(place)
      if (first > foldedSeq) break
      if (blocks++ === blocksMax) return false
      const block = readColumns(db, place)
      const end = Math.min(events, foldedSeq + 1 - first)
      if (block !== null) {
        const times = block.column(extra.at)
        for (let row = Math.max(0, countedSeq + 1 - first); row < end; row++)
          if (times[row]! >= fromMs && times[row]! < untilMs) counts.add(block, row, row + 1)
      }
      countedSeq = first + end - 1
    }
    return true
  }

  function differences(db: Database, org: number): RollupRepair[] {
    const ofHour = (key: RowKey) => !isDayRow(key) && Number(key.split(' ', 1)[0]) === hour
    const found = differencesOf(db, org, hour, counts, ofHour)
    return closesDay ? [...found, ...differencesOf(db, org, fromMs / hourMs, counts, isDayRow)] : found
  }

  return {
    step(db, org) {
      const state = db
        .query<{ foldedSeq: number; rewrites: number }, [number]>(
          'SELECT folded_seq AS foldedSeq, rewrites FROM event_org WHERE num = ?',
        )
        .get(org)
      if (state === null) return []
      if (state.rewrites !== rewrites) {
        rewrites = state.rewrites
        counts = rollupCounts()
        countedSeq = 0
      }
      return count(db, org, state.foldedSeq) ? differences(db, org) : null
    },
  }
}

/** Blocks with arrivals after a seq that may hold events of a time, in order of arrival. */
function* zonesAfter(db: Database, org: number, afterSeq: number, fromMs: number, untilMs: number) {
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

/** Inside a transaction. Differences stay right whatever was folded or expired since they were found. */
export function repairRollups(db: Database, org: number, repairs: readonly RollupRepair[]): void {
  for (const { row, difference } of repairs) addToRow(db, org, row, difference)
  noteRewrite(db, org)
  db.query('DELETE FROM event_type_total WHERE org = ?').run(org)
  db.query(
    `INSERT INTO event_type_total (org, type, events)
     SELECT org, type, sum(live + expired) FROM rollup_metric WHERE org = ? GROUP BY type`,
  ).run(org)
}
