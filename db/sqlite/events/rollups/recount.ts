/** Recounts one hour from its rows and says by how much each rollup row is wrong; expected: none is. */
import type { Database } from 'bun:sqlite'
import type { RollupRepair } from '../../../contract/store.ts'
import type { Zone } from '../blocks/block-table.ts'
import { countFolded } from './folded-count.ts'
import { noteRewrite } from '../cache/hours.ts'
import { dayHours, hourMs, type RollupCounts } from './counts.ts'
import { seqOf } from '../blocks/row-key.ts'
import { addToRow, countedRows, isDayRow, rowDifferences, storedRows, type RowKey } from './rows.ts'
import { partsOf } from '../read/walk.ts'

export interface Recounting {
  /** One slice, as of `countFolded`; at the end what the rollups' `live` counts lack. */
  step(db: Database, org: number): RollupRepair[] | null
}

/** The last hour of a day closes the day. */
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

/** By the segments, of which each says its times. */
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
