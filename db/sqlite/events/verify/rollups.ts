/** Compares the rollups with a recount of the rows they stand for. */
import type { Database } from 'bun:sqlite'
import { firstPlace, zonesFrom, type Zone } from '../blocks/block-table.ts'
import { countFolded } from '../rollups/recount.ts'
import { countedRows, rowDifferences, rowName, storedRows } from '../rollups/rows.ts'
import type { Check, Report } from './blocks.ts'

const zonesAtOnce = 64

/** Returns how many events there are, at the moment of the comparison and but for those in damaged blocks. */
export function* verifyRollups(
  db: Database,
  org: number,
  damaged: ReadonlySet<number>,
  report: Report,
  blocksMax?: number,
): Check<number> {
  const zonesAfter = (_db: Database, _org: number, seq: number) => wholeBlocks(db, org, seq, damaged)
  const counting = countFolded({ fromMs: -Infinity, untilMs: Infinity, zonesAfter }, blocksMax)
  for (;;) {
    const counts = counting.step(db, org)
    if (counts !== null) {
      for (const [key, difference] of rowDifferences(storedRows(db, org, null), countedRows(counts)))
        report(rowName(key), difference > 0 ? `says ${difference} too few` : `says ${-difference} too many`)
      verifyTotals(db, org, report)
      return counting.rest(db, org).events()
    }
    yield
  }
}

/** As they lie, whatever an index says of them. */
function* wholeBlocks(
  db: Database,
  org: number,
  afterSeq: number,
  damaged: ReadonlySet<number>,
): Generator<Zone> {
  for (let place = firstPlace(db, org, afterSeq + 1); ;) {
    const zones = zonesFrom(db, org, place, zonesAtOnce)
    yield* zones.filter((zone) => !damaged.has(zone.place))
    if (zones.length < zonesAtOnce) return
    place = zones.at(-1)!.place + 1
  }
}

/** Totals by type count what the rollups count, expired events included. */
function verifyTotals(db: Database, org: number, report: Report): void {
  const wrong = db
    .query<{ type: number }, [number]>(
      `SELECT type FROM (
         SELECT type, sum(live + expired) AS n FROM rollup_metric WHERE org = ?1 GROUP BY type
         UNION ALL SELECT type, -events FROM event_type_total WHERE org = ?1
       ) GROUP BY type HAVING sum(n) <> 0`,
    )
    .all(org)
  if (wrong.length > 0) report('the totals by type', `differ from the rollups for ${wrong.length} types`)
}
