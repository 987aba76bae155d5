/** Copies databases and verifies whole files: SQLite's checks, counts and every audit chain. */
import { eachBlockAfter } from '../events/blocks/block-table.ts'
import { verifyAudit } from '../audit/verify.ts'
import { openLookConnection, openReaderConnection } from '../file/connection.ts'
import { databasePath, requireDatabase } from '../file/files.ts'
import { schemaVersion } from '../migrations/migrate.ts'
import { migrations } from '../migrations/migrations.ts'
import { auditHeads } from '../audit/append.ts'
import { member } from '../events/blocks/fields.ts'
import { atOnce } from '../threads/slices.ts'
import type {
  CopyReport,
  DatabaseFacts,
  Inspection,
  InspectionWanted,
  SchemaState,
} from '../../contract/operations.ts'
import type { Database } from 'bun:sqlite'

const faultsMax = 20

export function inspectDatabase({ path, anchors }: InspectionWanted): Inspection {
  const db = openLookConnection(path)
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
export function copyDatabase({ folder, path }: { folder: string; path: string }): CopyReport {
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
export function readSchema(folder: string): SchemaState {
  requireDatabase(folder)
  const db = openLookConnection(databasePath(folder))
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
export function folderFacts(folder: string): DatabaseFacts {
  requireDatabase(folder)
  const db = openLookConnection(databasePath(folder))
  try {
    return readFacts(db)
  } finally {
    db.close()
  }
}

/** One snapshot of the database. Tables that its schema lacks count as empty. */
export function readFacts(db: Database): DatabaseFacts {
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
function liveEvents(db: Database): number {
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

export function hasTable(db: Database, name: string): boolean {
  const found = db.query<{ n: number }, [string]>(
    "SELECT count(*) AS n FROM sqlite_schema WHERE type = 'table' AND name = ?",
  )
  return found.get(name)?.n === 1
}

function number(db: Database, sql: string): number {
  return db.query<{ n: number }, []>(sql).get()?.n ?? 0
}
