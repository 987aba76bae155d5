/** Every migration of the PostgreSQL engine in order, and how a database is brought to this release's schema. */
import identity from './0001_identity.sql' with { type: 'text' }
import events from './0002_events.sql' with { type: 'text' }
import webhooks from './0003_webhooks.sql' with { type: 'text' }
import append from './0004_append.sql' with { type: 'text' }
import nodeReport from './0005_node_report.sql' with { type: 'text' }
import sharedRecords from './0006_shared_records.sql' with { type: 'text' }
import { StoreError } from '../../contract/errors.ts'
import { pendingMigrations, type Migration } from '../../rules/migrations.ts'
import { inTransaction, type Database } from '../../sql/database.ts'

export const migrations: readonly Migration[] = [
  { version: 1, name: '0001_identity', sql: identity },
  { version: 2, name: '0002_events', sql: events },
  { version: 3, name: '0003_webhooks', sql: webhooks },
  { version: 4, name: '0004_append', sql: append },
  { version: 5, name: '0005_node_report', sql: nodeReport },
  { version: 6, name: '0006_shared_records', sql: sharedRecords },
]

/** "SGLS" as a number: of any number of nodes that start at once, one migrates and the others wait. */
const lockKey = 0x53474c53

const migrationTable = `CREATE TABLE IF NOT EXISTS schema_migration (
  version bigint PRIMARY KEY NOT NULL,
  name text COLLATE "C" NOT NULL,
  applied_at_ms bigint NOT NULL
)`

/** The highest migration of `schema`, 0 when it is missing or empty. Rejects another program's tables. */
export function schemaVersion(db: Database, schema: string): number {
  const tables = db
    .query<{ name: string }, [string]>(
      'SELECT table_name::text AS name FROM information_schema.tables WHERE table_schema = ?',
    )
    .all(schema)
  if (tables.length === 0) return 0
  if (!tables.some(({ name }) => name === 'schema_migration')) {
    throw new StoreError('corrupt', `the schema ${schema} of the database belongs to another program`)
  }
  const newest = db.query<{ v: number | null }, []>(
    `SELECT max(version) AS v FROM "${schema}".schema_migration`,
  )
  return newest.get()?.v ?? 0
}

/** Throws when the schema is another program's, a newer release's, or older and must not be upgraded. Only reads. */
export function requireKnownSchema(db: Database, schema: string, known: readonly Migration[]): void {
  const version = schemaVersion(db, schema)
  if (pendingMigrations(version, known).length === 0) return
  throw new StoreError(
    'older_schema',
    `the data has schema ${version}, this release works with ${known.length}`,
  )
}

/**
 * Applies pending migrations and returns their versions; running it again does nothing. One transaction, so a failed
 * one leaves no change. `schema` must be the first of the connection's search_path.
 */
export function migrate(db: Database, schema: string, known: readonly Migration[], now: number): number[] {
  if (pendingMigrations(schemaVersion(db, schema), known).length === 0) return []
  return inTransaction(db, () => {
    // Another node may migrate for longer than a statement may take.
    db.run(`SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0`)
    db.query(`SELECT pg_advisory_xact_lock(${lockKey}) IS NULL`).get()
    const pending = pendingMigrations(schemaVersion(db, schema), known)
    // A role without the right to create schemas can use one that was created for it.
    const existing = db.query('SELECT 1 FROM pg_namespace WHERE nspname = ?').get(schema)
    if (existing === null) db.run(`CREATE SCHEMA "${schema}"`)
    db.run(migrationTable)
    const note = db.query('INSERT INTO schema_migration (version, name, applied_at_ms) VALUES (?, ?, ?)')
    for (const { version, name, sql } of pending) {
      db.run(sql)
      note.run(version, name, now)
    }
    return pending.map((migration) => migration.version)
  })
}
