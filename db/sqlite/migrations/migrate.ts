/** Migrates a database to this release's schema in one transaction, or rejects it with the reason. */
import type { Database } from 'bun:sqlite'
import { StoreError } from '../../contract/errors.ts'
import { pendingMigrations, type Migration } from '../../rules/migrations.ts'
import { inTransaction } from '../file/transaction.ts'

/** "SGLS": marks the file as ours, so that another program's database is never migrated. */
const applicationId = 0x53474c53

/** `fill` adds what SQL alone cannot, in the same transaction. */
export interface SqliteMigration extends Migration {
  fill?(db: Database): void
}

const migrationTable = `CREATE TABLE IF NOT EXISTS schema_migration (
  version INTEGER PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  applied_at_ms INTEGER NOT NULL
) STRICT`

/** The highest migration of the database, 0 for an empty one. Rejects another program's database. */
export function schemaVersion(db: Database): number {
  const tables = db.query<{ n: number }, []>('SELECT count(*) AS n FROM sqlite_schema').get()?.n ?? 0
  if (tables === 0) return 0
  const mark = db.query<{ application_id: number }, []>('PRAGMA application_id').get()?.application_id
  if (mark !== applicationId) {
    throw new StoreError('corrupt', 'the database belongs to another program')
  }
  return db.query<{ v: number | null }, []>('SELECT max(version) AS v FROM schema_migration').get()?.v ?? 0
}

/** Throws when the database is another program's, a newer release's, or older and must not be upgraded. Only reads. */
export function requireKnownSchema(db: Database, known: readonly Migration[], mayBeOlder = true): void {
  const version = schemaVersion(db)
  const pending = pendingMigrations(version, known)
  if (mayBeOlder || version === 0 || pending.length === 0) return
  throw new StoreError(
    'older_schema',
    `the data has schema ${version}, this release works with ${known.length}`,
  )
}

/** Applies pending migrations and returns their versions. Running it again does nothing. */
export function migrate(db: Database, known: readonly SqliteMigration[], now: number): number[] {
  const pending = pendingMigrations(schemaVersion(db), known)
  if (pending.length === 0) return []
  return inTransaction(db, () => {
    db.run(`PRAGMA application_id = ${applicationId}`)
    db.run(migrationTable)
    const note = db.prepare('INSERT INTO schema_migration (version, name, applied_at_ms) VALUES (?, ?, ?)')
    try {
      for (const { version, name, sql, fill } of pending) {
        db.run(sql)
        fill?.(db)
        note.run(version, name, now)
      }
    } finally {
      note.finalize()
    }
    return pending.map((migration) => migration.version)
  })
}
