/** Compares the rollups with a recount of the rows they stand for. */
import type { Database } from 'bun:sqlite'
import type { RollupCounts } from './rollup-counts.ts'
import { countedRows, rowDifferences, rowName, storedRows } from './rollup-rows.ts'
import type { Report, VerifiedOrg } from './verified-org.ts'

export function verifyRollups(db: Database, org: VerifiedOrg, counted: RollupCounts, report: Report): void {
  for (const [key, difference] of rowDifferences(storedRows(db, org.num, null), countedRows(counted))) {
    report(rowName(key), difference > 0 ? `says ${difference} too few` : `says ${-difference} too many`)
  }
  verifyTotals(db, org.num, report)
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
