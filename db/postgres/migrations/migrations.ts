/** Every migration of the PostgreSQL engine in order, and how a database is brought to this release's schema. */
import identity from './0001_identity.sql' with { type: 'text' }
import events from './0002_events.sql' with { type: 'text' }
import webhooks from './0003_webhooks.sql' with { type: 'text' }
import append from './0004_append.sql' with { type: 'text' }
import nodeReport from './0005_node_report.sql' with { type: 'text' }
import sharedRecords from './0006_shared_records.sql' with { type: 'text' }
import upgrade from './0007_upgrade.sql' with { type: 'text' }
import accessLogs from './0008_access_logs.sql' with { type: 'text' }
import evidencePack from './0009_evidence_pack.sql' with { type: 'text' }
import robots from './0010_robots.sql' with { type: 'text' }
import ingestScope from './0011_ingest_scope.sql' with { type: 'text' }
import shareLinks from './0012_share_links.sql' with { type: 'text' }
import alertRules from './0013_alert_rules.sql' with { type: 'text' }
import eventPath from './0014_event_path.sql' with { type: 'text' }
import eventId from './0015_event_id.sql' with { type: 'text' }
import overviewVisit from './0016_overview_visit.sql' with { type: 'text' }
import textColumns from './0017_text_columns.sql' with { type: 'text' }
import denseColumns from './0018_dense_columns.sql' with { type: 'text' }
import rollupDay from './0019_rollup_day.sql' with { type: 'text' }
import daysAndSpans from './0020_days_and_spans.sql' with { type: 'text' }
import provenance from './0021_provenance.sql' with { type: 'text' }
import { StoreError } from '../../contract/errors.ts'
import { olderSchema, pendingMigrations, withVersions, type Migration } from '../../rules/migrations.ts'
import { inTransaction, type Database } from '../../sql/database.ts'

export interface ServerMigration extends Migration {
  /** What nodes of a release without this migration may do after it: write, because they never notice it, or end. */
  olderNodes: 'write' | 'end'
}

export const migrations: readonly ServerMigration[] = withVersions<Omit<ServerMigration, 'version'>>([
  { name: '0001_identity', sql: identity, olderNodes: 'end' },
  { name: '0002_events', sql: events, olderNodes: 'end' },
  { name: '0003_webhooks', sql: webhooks, olderNodes: 'end' },
  { name: '0004_append', sql: append, olderNodes: 'end' },
  { name: '0005_node_report', sql: nodeReport, olderNodes: 'end' },
  { name: '0006_shared_records', sql: sharedRecords, olderNodes: 'end' },
  { name: '0007_upgrade', sql: upgrade, olderNodes: 'end' },
  { name: '0008_access_logs', sql: accessLogs, olderNodes: 'write' },
  // Older nodes would merge blocks without the verdicts in them.
  { name: '0009_evidence_pack', sql: evidencePack, olderNodes: 'end' },
  // Older nodes would merge blocks without the verdicts in them.
  { name: '0010_robots', sql: robots, olderNodes: 'end' },
  { name: '0011_ingest_scope', sql: ingestScope, olderNodes: 'write' },
  { name: '0012_share_links', sql: shareLinks, olderNodes: 'write' },
  // Older nodes would evaluate pending alerts and rules of a kind that they do not know.
  { name: '0013_alert_rules', sql: alertRules, olderNodes: 'end' },
  // Older nodes would delete events and leave their values in the path columns.
  { name: '0014_event_path', sql: eventPath, olderNodes: 'end' },
  // Older nodes look for ids in a column that is gone.
  { name: '0015_event_id', sql: eventId, olderNodes: 'end' },
  { name: '0016_overview_visit', sql: overviewVisit, olderNodes: 'write' },
  // Older nodes would not read the texts of blocks that were copied from a data folder.
  { name: '0017_text_columns', sql: textColumns, olderNodes: 'end' },
  // Older nodes would not read the numbers of such blocks.
  { name: '0018_dense_columns', sql: denseColumns, olderNodes: 'end' },
  { name: '0019_rollup_day', sql: rollupDay, olderNodes: 'end' },
  { name: '0020_days_and_spans', sql: daysAndSpans, olderNodes: 'end' },
  // Older nodes would merge blocks without the records in them.
  { name: '0021_provenance', sql: provenance, olderNodes: 'end' },
])

/** Of the tables, unless the URL names another. */
export const schema = 'sightglass'

/** What nodes of this release pass to `begin_write`. */
export const writerSchema = migrations.length

/** "SGLS" as a number. Writing transactions share this lock (0007_upgrade.sql). */
const lockKey = 0x53474c53

/** A node that was not seen for longer has ended, or is suspended and will find that it may not write. */
const seenWithinMs = 15_000

/** Readers may hold a table for longer, and every writer would wait behind the migration. */
const tableWaitMs = 3_000

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

/** The lowest schema whose nodes may write; 0 before the migration that records it. */
export function writerSchemaOf(db: Database, schema: string): number {
  const field = `(to_jsonb(l) ->> 'writer_schema')`
  return (
    db
      .query<{ v: number | null }, []>(
        `SELECT CAST(${field} AS bigint) AS v FROM "${schema}".store_lock AS l WHERE name = 'records'`,
      )
      .get()?.v ?? 0
  )
}

/** The migrations to run. A newer release's database has none to run, if this one may still write to it. */
function pendingIn(
  db: Database,
  schema: string,
  knownMigrations: readonly ServerMigration[],
): readonly ServerMigration[] {
  const version = schemaVersion(db, schema)
  if (version > knownMigrations.length && writerSchemaOf(db, schema) <= knownMigrations.length) return []
  return pendingMigrations(version, knownMigrations)
}

/** Throws when the schema is another program's, a newer release's, or older and must not be upgraded. Only reads. */
export function requireKnownSchema(
  db: Database,
  schema: string,
  knownMigrations: readonly ServerMigration[],
): void {
  if (pendingIn(db, schema, knownMigrations).length === 0) return
  throw olderSchema(schemaVersion(db, schema), knownMigrations.length)
}

/**
 * Applies pending migrations and returns their versions; running it again does nothing. One transaction, so a failed
 * one leaves no change. Rejects with `locked` while nodes run that may not write afterwards, or while somebody reads a
 * table for long. `schema` must be the first of the connection's search_path.
 */
export function migrate(
  db: Database,
  schema: string,
  knownMigrations: readonly ServerMigration[],
  now: number,
): number[] {
  const expected = pendingIn(db, schema, knownMigrations)
  if (expected.length === 0) return []
  requireEnded(db, schema, expected)
  return inTransaction(db, () => {
    // Another node may migrate for longer than a statement may take.
    db.run(`SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0`)
    awaitWriters(db)
    db.run(`SET LOCAL lock_timeout = ${tableWaitMs}`)
    const pending = pendingIn(db, schema, knownMigrations)
    requireEnded(db, schema, pending)
    // A role without the right to create schemas can use one that was created for it.
    const existing = db.query('SELECT 1 FROM pg_namespace WHERE nspname = ?').get(schema)
    if (existing === null) db.run(`CREATE SCHEMA "${schema}"`)
    db.run(migrationTable)
    const note = db.query('INSERT INTO schema_migration (version, name, applied_at_ms) VALUES (?, ?, ?)')
    for (const { version, name, sql } of pending) {
      runUnlessBusy(db, sql)
      note.run(version, name, now)
    }
    const last = lastWriter(pending)
    if (last >= upgradeVersion)
      db.query("UPDATE store_lock SET writer_schema = ? WHERE name = 'records'").run(last)
    return pending.map((migration) => migration.version)
  })
}

/**
 * In an open transaction: waits for the writes that have begun, and holds back others until the end. Whoever locks
 * tables needs it first, because a write holds one table while it waits for the next.
 */
export function awaitWriters(db: Database): void {
  db.query(`SELECT pg_advisory_xact_lock(${lockKey}) IS NULL`).get()
}

/** The migration with the table of nodes. */
const nodesVersion = 3

/** From this migration on the database records who may write. */
const upgradeVersion = 7

/** The lowest schema whose nodes may write after these migrations; 0: all of them. */
function lastWriter(pending: readonly ServerMigration[]): number {
  return pending.findLast(({ olderNodes }) => olderNodes === 'end')?.version ?? 0
}

/** Throws `locked` and names the nodes that must end before these migrations run. */
function requireEnded(db: Database, schema: string, pending: readonly ServerMigration[]): void {
  if (schemaVersion(db, schema) < nodesVersion) return
  const required = lastWriter(pending)
  const nodes = db
    .query<{ name: string; version: string; agoMs: number }, [number, number, number]>(
      `SELECT * FROM (SELECT name, version, COALESCE(CAST(to_jsonb(n) ->> 'schema' AS bigint), 0) AS known,
         CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint) - seen_at_ms AS "agoMs"
         FROM "${schema}".node AS n) AS seen
       WHERE known < ? AND "agoMs" < ? AND ? > 0 ORDER BY name`,
    )
    .all(required, seenWithinMs, required)
  if (nodes.length === 0) return
  const list = nodes.map(
    ({ name, version, agoMs }) => `${name} (${version}, seen ${Math.round(agoMs / 1_000)} s ago)`,
  )
  throw new StoreError('locked', `nodes of an older release must end first: ${list.join(', ')}`)
}

function runUnlessBusy(db: Database, sql: string): void {
  try {
    db.run(sql)
  } catch (error) {
    if (!(error instanceof StoreError) || !error.message.includes('(55P03)')) throw error
    throw new StoreError('locked', 'another session uses a table that a migration changes', {
      cause: error,
    })
  }
}
