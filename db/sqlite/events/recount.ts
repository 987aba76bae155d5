/** Recounts one hour from its rows and says by how much each rollup row is wrong; expected: none is. */
import type { Database } from 'bun:sqlite'
import type { RollupRepair } from '../../store.ts'
import { readColumns } from './block-table.ts'
import { extra } from './block.ts'
import { seqOf } from './place.ts'
import { hourMs, rollupCounts, type RollupCounts } from './rollup-counts.ts'
import { addToRow, countedRows, rowDifferences, storedRows } from './rollup-rows.ts'
import { partsOf } from './walk.ts'

/** In a reader's snapshot: rows up to the watermark against the rollups' `live` counts. */
export function recountHour(
  db: Database,
  org: number,
  hourStartMs: number,
  inTime: () => void,
): RollupRepair[] {
  const hour = Math.floor(hourStartMs / hourMs)
  const counted = countedRows(countHour(db, org, hour, inTime))
  return Array.from(rowDifferences(storedRows(db, org, hour), counted), ([row, difference]) => ({
    row,
    difference,
  }))
}

function countHour(db: Database, org: number, hour: number, inTime: () => void): RollupCounts {
  const folded = db
    .query<{ seq: number }, [number]>('SELECT folded_seq AS seq FROM event_org WHERE num = ?')
    .get(org)
  const counts = rollupCounts()
  const mayHold = ({ minAt, maxAt }: { minAt: number; maxAt: number }) =>
    maxAt >= hour * hourMs && minAt < (hour + 1) * hourMs
  for (const part of partsOf(db, org, [], 0).filter(mayHold)) {
    for (const zone of part.zones().filter(mayHold)) {
      inTime()
      const block = readColumns(db, zone.place)
      if (block === null) continue
      const end = Math.min(block.rows, (folded?.seq ?? 0) + 1 - seqOf(zone.place))
      const times = block.column(extra.at)
      for (let row = 0; row < end; row++) {
        if (Math.floor(times[row]! / hourMs) === hour) counts.add(block, row, row + 1)
      }
    }
  }
  return counts
}

/** Inside a transaction. Differences stay right whatever was folded or expired since they were found. */
export function repairRollups(db: Database, org: number, repairs: readonly RollupRepair[]): void {
  for (const { row, difference } of repairs) addToRow(db, org, row, difference)
  db.query('DELETE FROM event_type_total WHERE org = ?').run(org)
  db.query(
    `INSERT INTO event_type_total (org, type, events)
     SELECT org, type, sum(live + expired) FROM rollup_metric WHERE org = ? GROUP BY type`,
  ).run(org)
}
