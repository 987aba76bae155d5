/** A database reaches this release's schema once and completely, and the audit trail is append-only in it. */
import { expect, test } from 'bun:test'
import { database } from '../../../tests/support/postgres.ts'
import { StoreError } from '../../contract/errors.ts'
import type { Database } from '../../sql/database.ts'
import { appendAudit } from '../../sql/audit/append.ts'
import { openConnection } from '../connection/connection.ts'
import { migrate, migrations, requireKnownSchema, schemaVersion } from './migrations.ts'

const schema = 'sightglass'

async function empty(): Promise<{ db: Database; url: string } & Disposable> {
  const { url } = await database()
  const db = openConnection({ url, node: 'test', statementTimeoutMs: 60_000 })
  return { db, url, [Symbol.dispose]: () => db.close() }
}

async function migrated(): Promise<{ db: Database } & Disposable> {
  const opened = await empty()
  migrate(opened.db, schema, migrations, 1)
  return opened
}

function failure(work: () => unknown): StoreError {
  try {
    work()
  } catch (error) {
    if (error instanceof StoreError) return error
    throw error
  }
  throw new Error('expected a StoreError')
}

test('migrating twice applies each migration once', async () => {
  using opened = await empty()
  const { db } = opened
  expect(schemaVersion(db, schema)).toBe(0)
  expect(failure(() => requireKnownSchema(db, schema, migrations)).kind).toBe('older_schema')
  expect(migrate(db, schema, migrations, 1)).toEqual(migrations.map(({ version }) => version))
  const applied = db.query('SELECT * FROM schema_migration ORDER BY version').all()
  expect(migrate(db, schema, migrations, 2)).toEqual([])
  expect(db.query('SELECT * FROM schema_migration ORDER BY version').all()).toEqual(applied)
  expect(schemaVersion(db, schema)).toBe(migrations.length)
  requireKnownSchema(db, schema, migrations)
})

test('a migration that fails leaves no change, not even those of earlier ones', async () => {
  using opened = await empty()
  const { db } = opened
  const next = migrations.length + 1
  const knownMigrations = [
    ...migrations,
    { version: next, name: 'good', sql: 'CREATE TABLE half (x bigint)', olderNodes: 'end' as const },
    {
      version: next + 1,
      name: 'bad',
      sql: 'CREATE TABLE other (x bigint); SELECT broken',
      olderNodes: 'end' as const,
    },
  ]
  expect(() => migrate(db, schema, knownMigrations, 1)).toThrow('broken')
  expect(schemaVersion(db, schema)).toBe(0)
  expect(db.query('SELECT 1 FROM pg_namespace WHERE nspname = ?').get(schema)).toBeNull()
  expect(migrate(db, schema, knownMigrations.slice(0, -1), 1).at(-1)).toBe(next)
})

test('a newer schema is rejected', async () => {
  using opened = await migrated()
  const { db } = opened
  const version = migrations.length + 1
  db.query('INSERT INTO schema_migration (version, name, applied_at_ms) VALUES (?, ?, 1)').run(
    version,
    'next',
  )
  // A newer release's migration that nodes of this one tolerate is no reason to refuse.
  expect(migrate(db, schema, migrations, 2)).toEqual([])
  requireKnownSchema(db, schema, migrations)
  db.query('UPDATE store_lock SET writer_schema = ?').run(version)
  expect(failure(() => migrate(db, schema, migrations, 2)).kind).toBe('newer_schema')
  expect(failure(() => requireKnownSchema(db, schema, migrations)).kind).toBe('newer_schema')
})

test('the schema of another program stays as it is', async () => {
  using opened = await empty()
  const { db } = opened
  db.run('CREATE SCHEMA sightglass; CREATE TABLE sightglass.theirs (x bigint)')
  expect(failure(() => migrate(db, schema, migrations, 1)).kind).toBe('corrupt')
  const tables = db.query(
    'SELECT table_name::text AS name FROM information_schema.tables WHERE table_schema = ?',
  )
  expect(tables.all(schema)).toEqual([{ name: 'theirs' }])
})

test('a role that cannot create schemas uses one that was created for it', async () => {
  using opened = await empty()
  const { db, url } = opened
  const role = `guest_${process.pid}`
  db.run(`CREATE ROLE ${role} LOGIN; CREATE SCHEMA sightglass AUTHORIZATION ${role}`)
  const guest = openConnection({
    url: url.replace('postgres@', `${role}@`),
    node: 'test',
    statementTimeoutMs: 60_000,
  })
  expect(migrate(guest, schema, migrations, 1).length).toBe(migrations.length)
  guest.close()
})

test('audit entries, checkpoints and trims are never changed or deleted, except what a trim covers', async () => {
  using opened = await migrated()
  const { db } = opened
  const entry = { orgId: 'org', actor: 'a', action: 'b', target: 'c', metadata: {}, occurredAtMs: 1 }
  for (const id of ['1', '2', '3']) appendAudit(db, { ...entry, id })
  const rejected = (sql: string) => {
    const error = failure(() => db.run(sql))
    expect(error.kind).toBe('conflict')
    return error.message
  }
  expect(rejected("UPDATE audit_entry SET actor = 'x'")).toContain('never changed')
  expect(rejected("DELETE FROM audit_entry WHERE id = '1'")).toContain('never deleted')
  expect(rejected('TRUNCATE audit_entry')).toContain('never deleted')
  expect(rejected("INSERT INTO audit_entry SELECT * FROM audit_entry WHERE id = '1'")).toContain('duplicate')
  db.run(
    "INSERT INTO audit_trim (org_id, count, hash, at, key, signature) VALUES ('org', 2, 'h', 'a', 'k', 's')",
  )
  db.run("DELETE FROM audit_entry WHERE id IN ('1', '2')")
  expect(rejected("DELETE FROM audit_entry WHERE id = '3'")).toContain('never deleted')
  expect(rejected('UPDATE audit_trim SET count = 1')).toContain('never go back')
  expect(rejected('DELETE FROM audit_trim')).toContain('never deleted')
  expect(rejected('TRUNCATE audit_trim')).toContain('never deleted')
  db.run("INSERT INTO audit_checkpoint VALUES (1, 'org', 3, 'h', 'a', 'k', 's')")
  expect(rejected("UPDATE audit_checkpoint SET hash = 'x'")).toContain('never changed')
  expect(rejected('DELETE FROM audit_checkpoint')).toContain('never changed')
  expect(rejected('TRUNCATE audit_checkpoint')).toContain('never changed')
  // A temporary table of the session does not stand for the trims.
  db.run("CREATE TEMPORARY TABLE audit_trim AS SELECT 'org' AS org_id, 9 AS count")
  expect(rejected("DELETE FROM sightglass.audit_entry WHERE id = '3'")).toContain('never deleted')
})
