/** The verbs that a reader thread runs on database files without an open store. */
import { placeDatabase, requireFreeFolder, settlePlacement } from './place.ts'
import { eachBlockAfter } from '../../sql/events/blocks/block-table.ts'
import { verifyAudit } from '../../sql/audit/verify.ts'
import { openUnlockedConnection, openReaderConnection, sqliteVersion } from '../file/connection.ts'
import { databasePath, requireDatabase } from '../file/files.ts'
import { migrations, schemaVersion } from '../migrations/migrations.ts'
import { auditHeads } from '../../sql/audit/append.ts'
import { member } from '../../sql/events/blocks/fields.ts'
import { atOnce } from '../../sql/threads/slices.ts'
import { statSync } from 'node:fs'
import type {
  Checkup,
  CopyReport,
  DatabaseFacts,
  Inspection,
  InspectionQuery,
  SchemaState,
} from '../../contract/operations.ts'
import type { SqliteDatabase } from '../file/connection.ts'

export const fileVerbs = {
  'file.checkup': checkup,
  'file.copy': copyDatabase,
  'file.facts': folderFacts,
  'file.inspect': inspectDatabase,
  'file.schema': readSchema,
  'file.place': placeDatabase,
  'file.requireFree': requireFreeFolder,
  'file.settle': settlePlacement,
} satisfies { [verb: string]: (command: never) => unknown }

export type FileVerbs = typeof fileVerbs

/** Copies databases and verifies whole files: SQLite's checks, counts and every audit chain. */
const faultsMax = 20

function inspectDatabase({ path, anchors }: InspectionQuery): Inspection {
  const db = openUnlockedConnection(path)
  try {
    const integrity = db
      .query<{ integrity_check: string }, []>(`PRAGMA integrity_check(${faultsMax})`)
      .all()
      .map((row) => row.integrity_check)
      .filter((text) => text !== 'ok')
    const strays = db.query<{ table: string; parent: string }, []>('PRAGMA foreign_key_check').all()
    const dangling = strays.slice(0, faultsMax).map(({ table, parent }) => {
      return `a row of ${table} points to a row of ${parent} that is not there`
    })
    const facts = readFacts(db)
    // A single file has no `audit-heads` beside it, so the caller passes the heads.
    return { facts, faults: [...integrity, ...dangling], audit: verifyAudit(db, path, anchors) }
  } finally {
    db.close()
  }
}

/** Copies one snapshot of a live database into a new file without blocking the writer. */
function copyDatabase({ folder, path }: { folder: string; path: string }): CopyReport {
  requireDatabase(folder)
  const db = openReaderConnection(databasePath(folder))
  try {
    const before = readFacts(db)
    // Reads one snapshot. The writer's log grows meanwhile and is truncated afterwards.
    db.query('VACUUM INTO ?').run(path)
    return { before, after: readFacts(db) }
  } finally {
    db.close()
  }
}

/** Lists the migrations that a database has and lacks, also for another schema than this release's. */
function readSchema(folder: string): SchemaState {
  requireDatabase(folder)
  const db = openUnlockedConnection(databasePath(folder))
  try {
    const version = schemaVersion(db)
    const applied =
      version === 0
        ? []
        : db
            .query<SchemaState['applied'][number], []>(
              'SELECT version, name, applied_at_ms AS appliedAtMs FROM schema_migration ORDER BY version',
            )
            .all()
    const pending = migrations.slice(version).map((migration) => {
      return { version: migration.version, name: migration.name }
    })
    return { version, newest: migrations.length, applied, pending }
  } finally {
    db.close()
  }
}

/**
 * The contents of a database in numbers that can be compared: schema, events, organizations, heads of the audit chains.
 */
function folderFacts(folder: string): DatabaseFacts {
  requireDatabase(folder)
  const db = openUnlockedConnection(databasePath(folder))
  try {
    return readFacts(db)
  } finally {
    db.close()
  }
}

/** One snapshot of the database. Tables that its schema lacks count as empty. */
function readFacts(db: SqliteDatabase): DatabaseFacts {
  db.run('BEGIN')
  try {
    const count = (table: string, sql: string) => (hasTable(db, table) ? number(db, sql) : 0)
    return {
      schema: schemaVersion(db),
      events: liveEvents(db),
      orgs: count('org', 'SELECT count(*) AS n FROM org'),
      accounts: count('account', 'SELECT count(*) AS n FROM account'),
      keys: count('api_key', 'SELECT count(*) AS n FROM api_key'),
      auditHeads: hasTable(db, 'audit_head') ? auditHeads(db) : {},
    }
  } finally {
    db.run('COMMIT')
  }
}

/** Blocks also count the gaps of erased events. Rollups do not, and after their watermark a gap has no type. */
function liveEvents(db: SqliteDatabase): number {
  if (!hasTable(db, 'rollup_metric')) return 0
  let events = number(db, 'SELECT coalesce(sum(live), 0) AS n FROM rollup_metric')
  const orgs = db.query<{ num: number; folded: number }, []>(
    'SELECT num, folded_seq AS folded FROM event_org',
  )
  for (const { num, folded } of orgs.all()) {
    const blocks = eachBlockAfter(db, num, folded, (columns, first, end) => {
      for (const type of columns.column(member.type).subarray(first, end)) if (type !== 0) events++
    })
    atOnce(blocks)
  }
  return events
}

function hasTable(db: SqliteDatabase, name: string): boolean {
  const found = db.query<{ n: number }, [string]>(
    "SELECT count(*) AS n FROM sqlite_schema WHERE type = 'table' AND name = ?",
  )
  return found.get(name)?.n === 1
}

function number(db: SqliteDatabase, sql: string): number {
  return db.query<{ n: number }, []>(sql).get()?.n ?? 0
}

/** Examines a database for `doctor` within two seconds: settings, growth, keys and times. */
const hourMs = 3_600_000
const quickCheckBytesMax = 256 * 1024 * 1024 // about 0.3 s
const problemsMax = 5

function checkup({ folder, now }: { folder: string; now: number }): Checkup {
  requireDatabase(folder)
  const path = databasePath(folder)
  const bytes = statSync(path).size
  const db = openUnlockedConnection(path)
  try {
    return {
      facts: readFacts(db),
      engine: `SQLite ${sqliteVersion(db)}`,
      bytes,
      logBytes: statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0,
      problems: bytes > quickCheckBytesMax ? null : quickCheck(db),
      eventsLastWeek: eventsSince(db, now - 7 * 24 * hourMs),
      newestAuditAtMs: newestAudit(db),
      keys: keyCounts(db, now),
    }
  } finally {
    db.close()
  }
}

function quickCheck(db: SqliteDatabase): string[] {
  return db
    .query<{ quick_check: string }, []>(`PRAGMA quick_check(${problemsMax})`)
    .all()
    .map((row) => row.quick_check)
    .filter((text) => text !== 'ok')
}

function eventsSince(db: SqliteDatabase, sinceMs: number): number {
  if (!hasTable(db, 'rollup_metric')) return 0
  const row = db
    .query<{ n: number | null }, [number]>('SELECT sum(live) AS n FROM rollup_metric WHERE hour >= ?')
    .get(Math.floor(sinceMs / hourMs))
  return row?.n ?? 0
}

function newestAudit(db: SqliteDatabase): number | null {
  if (!hasTable(db, 'audit_entry')) return null
  const row = db
    .query<{ at: string }, []>('SELECT occurredAt AS at FROM audit_entry ORDER BY rowid DESC LIMIT 1')
    .get()
  return row === null ? null : Date.parse(row.at)
}

const dayMs = 24 * hourMs

function keyCounts(db: SqliteDatabase, now: number): Checkup['keys'] {
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
