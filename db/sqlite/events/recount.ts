/** Recounts one hour from its rows and says by how much each rollup row is wrong; expected: none is. */
import type { Database } from 'bun:sqlite'
import type { RollupRepair } from '../../store.ts'
import { readColumns } from './block-table.ts'
import { extra } from './block.ts'
import { noteRewrite } from './kept-hours.ts'
import { seqOf } from './place.ts'
import { dayHours, hourMs, rollupCounts, type RollupCounts } from './rollup-counts.ts'
import type { HourRange } from './rollup-range.ts'
import { addToRow, countedRows, isDayRow, rowDifferences, storedRows, type RowKey } from './rollup-rows.ts'
import { partsOf } from './walk.ts'

/** In a reader's snapshot: rows up to the watermark against the rollups' `live` counts. */
export function recountHour(
  db: Database,
  org: number,
  hourStartMs: number,
  inTime: () => void,
): RollupRepair[] {
  const hour = Math.floor(hourStartMs / hourMs)
  const repairs = differences(db, org, { from: hour, until: hour + 1 }, (row) => !isDayRow(row), inTime)
  // The last hour of a day closes the day.
  if (hour % dayHours !== dayHours - 1) return repairs
  const from = hour + 1 - dayHours
  return [...repairs, ...differences(db, org, { from, until: hour + 1 }, isDayRow, inTime)]
}

function differences(
  db: Database,
  org: number,
  range: HourRange,
  isMeant: (row: RowKey) => boolean,
  inTime: () => void,
): RollupRepair[] {
  const counted = [...countedRows(countHours(db, org, range, inTime))].filter(([row]) => isMeant(row))
  const stored = [...storedRows(db, org, range.from)].filter(([row]) => isMeant(row))
  return Array.from(rowDifferences(stored, new Map(counted)), ([row, difference]) => ({ row, difference }))
}

function countHours(db: Database, org: number, { from, until }: HourRange, inTime: () => void): RollupCounts {
  const folded = db
    .query<{ seq: number }, [number]>('SELECT folded_seq AS seq FROM event_org WHERE num = ?')
    .get(org)
  const counts = rollupCounts()
  const mayHold = ({ minAt, maxAt }: { minAt: number; maxAt: number }) =>
    maxAt >= from * hourMs && minAt < until * hourMs
  for (const part of partsOf(db, org, [], 0).filter(mayHold)) {
    for (const zone of part.zones().filter(mayHold)) {
      inTime()
      const block = readColumns(db, zone.place)
      if (block === null) continue
      const end = Math.min(block.rows, (folded?.seq ?? 0) + 1 - seqOf(zone.place))
      const times = block.column(extra.at)
      for (let row = 0; row < end; row++) {
        const hour = Math.floor(times[row]! / hourMs)
        if (hour >= from && hour < until) counts.add(block, row, row + 1)
      }
    }
  }
  return counts
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
