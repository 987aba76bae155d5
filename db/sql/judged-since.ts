/** Since when the database records judges of verdicts. */
import type { Database } from './database.ts'

/** The name of the migration ends alike on both engines, whose numbers differ. */
const judgesMigration = '%_provenance'

/** When the upgrade began to record judges; null when they were recorded from the first event on. */
export function judgedSince(db: Database): number | null {
  const row = db
    .query<{ appliedAtMs: number; firstAtMs: number }, [string]>(
      `SELECT applied_at_ms AS "appliedAtMs", (SELECT min(applied_at_ms) FROM schema_migration) AS "firstAtMs"
       FROM schema_migration WHERE name LIKE ?`,
    )
    .get(judgesMigration)
  // The migrations of a new database are applied at one time.
  return row === null || row.appliedAtMs === row.firstAtMs ? null : row.appliedAtMs
}

/** A copied database has the time of its source: its events are as old. */
export function copyJudgedSince(source: Database, target: Database): void {
  const sinceMs = judgedSince(source)
  if (sinceMs === null) return
  target
    .query('UPDATE schema_migration SET applied_at_ms = ? WHERE name LIKE ?')
    .run(sinceMs, judgesMigration)
}
