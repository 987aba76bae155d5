/** Examines a database for `doctor` within two seconds: settings, growth, keys and times. */
import type { Database } from 'bun:sqlite'
import { statSync } from 'node:fs'
import type { Checkup } from '../../contract/operations.ts'
import { openLookConnection, sqliteVersion } from '../file/connection.ts'
import { databasePath, requireDatabase } from '../file/files.ts'
import { hasTable, readFacts } from './inspect.ts'

const hourMs = 3_600_000
const quickCheckBytesMax = 256 * 1024 * 1024 // about 0.3 s
const problemsMax = 5

export function checkup({ folder, now }: { folder: string; now: number }): Checkup {
  requireDatabase(folder)
  const path = databasePath(folder)
  const bytes = statSync(path).size
  const db = openLookConnection(path)
  try {
    return {
      facts: readFacts(db),
      sqlite: sqliteVersion(db),
      bytes,
      walBytes: statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0,
      problems: bytes > quickCheckBytesMax ? null : quickCheck(db),
      eventsLastWeek: eventsSince(db, now - 7 * 24 * hourMs),
      newestAuditAtMs: newestAudit(db),
      keys: keyCounts(db, now),
    }
  } finally {
    db.close()
  }
}

function quickCheck(db: Database): string[] {
  return db
    .query<{ quick_check: string }, []>(`PRAGMA quick_check(${problemsMax})`)
    .all()
    .map((row) => row.quick_check)
    .filter((text) => text !== 'ok')
}

function eventsSince(db: Database, sinceMs: number): number {
  if (!hasTable(db, 'rollup_metric')) return 0
  const row = db
    .query<{ n: number | null }, [number]>('SELECT sum(live) AS n FROM rollup_metric WHERE hour >= ?')
    .get(Math.floor(sinceMs / hourMs))
  return row?.n ?? 0
}

function newestAudit(db: Database): number | null {
  if (!hasTable(db, 'audit_entry')) return null
  const row = db
    .query<{ at: string }, []>('SELECT occurredAt AS at FROM audit_entry ORDER BY rowid DESC LIMIT 1')
    .get()
  return row === null ? null : Date.parse(row.at)
}

const dayMs = 24 * hourMs

function keyCounts(db: Database, now: number): Checkup['keys'] {
  const none = { live: 0, exposed: 0, endingSoon: 0, idle: 0 }
  if (!hasTable(db, 'api_key')) return none
  const row = db
    .query<Checkup['keys'], [number, number, number]>(
      `SELECT count(*) AS live,
              coalesce(sum(exposed_at_ms IS NOT NULL), 0) AS exposed,
              coalesce(sum(expires_at_ms < ?2), 0) AS endingSoon,
              coalesce(sum(coalesce(last_used_at_ms, created_at_ms) < ?3), 0) AS idle
         FROM api_key
        WHERE kind <> 'publishable' AND revoked_at_ms IS NULL AND (expires_at_ms IS NULL OR expires_at_ms > ?1)`,
    )
    .get(now, now + 7 * dayMs, now - 90 * dayMs)
  return row ?? none
}
