/**
 * The engine on which tests run their servers: a data folder each, or a database of PostgreSQL for each data folder
 * when `SIGHTGLASS_TEST_ENGINE=postgres` asks for it.
 */
import { Database } from 'bun:sqlite'
import { test } from 'bun:test'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { applianceOrgId } from '../../db/contract/audit.ts'
import type { Org, SharedDatabase, Store } from '../../db/contract/store.ts'
import { openStore } from '../../db/open.ts'
import type { Clock } from '../../server/clock.ts'
import { newId } from '../../server/ids.ts'
import { openConnection } from '../../db/postgres/connection/connection.ts'
import { schema } from '../../db/postgres/migrations/migrations.ts'
import { openDataFolder } from '../../server/runtime/open-data-folder.ts'
import { database, startPooler, type Pooler, type TestDatabase } from './postgres.ts'

export const isOnPostgres = process.env['SIGHTGLASS_TEST_ENGINE'] === 'postgres'

/** The key ring of nodes that tests start. */
export const testRing = '11'.repeat(32)

/** A test about what only a data folder has. `sqlite-only.ts` lists each with the reason. */
export const folderTest = test.if(!isOnPostgres)

const databases = new Map<string, Promise<TestDatabase>>()

/** Whether tests reach the cluster through pgbouncer, and with how many connections to each database. */
const isPooled = process.env['SIGHTGLASS_TEST_POOLER'] === '1'
const pooledConnections = 8
let pooler: Promise<Pooler> | null = null

async function madeDatabase(contents: 'empty' | 'migrated'): Promise<TestDatabase> {
  const freshDatabase = await database(contents)
  if (!isPooled) return freshDatabase
  const { url } = await (pooler ??= startPooler(freshDatabase.cluster, pooledConnections))
  return { ...freshDatabase, url: url(freshDatabase.name) }
}

/** Made with the first use. */
async function databaseOf(
  folder: string,
  contents: 'empty' | 'migrated' = 'migrated',
): Promise<TestDatabase> {
  const databasePromise = databases.get(folder) ?? madeDatabase(contents)
  databases.set(folder, databasePromise)
  return databasePromise
}

/** Deletes the database in place of a folder that is gone. */
export async function dropDatabaseOf(folder: string): Promise<void> {
  const databasePromise = databases.get(folder)
  databases.delete(folder)
  await (await databasePromise)?.drop()
}

/** What the server's option `--database` says. */
export async function testDatabase(folder: string): Promise<SharedDatabase | null> {
  return isOnPostgres ? { url: (await databaseOf(folder)).url, node: 'test' } : null
}

/** Where `verify` and the like open the database. */
export async function locationOf(folder: string): Promise<string> {
  return (await testDatabase(folder))?.url ?? folder
}

/** Opens a data folder as the server does, on the engine of this run. */
export async function openTestFolder(folder: string, clock: Clock): Promise<Store> {
  const shared = await testDatabase(folder)
  if (shared === null) return openDataFolder(folder, clock)
  mkdirSync(folder, { recursive: true })
  const now = clock.now()
  const org: Org = { id: newId('org'), slug: 'default', name: 'Default', createdAtMs: now }
  const audit = {
    id: newId('aud'),
    orgId: applianceOrgId,
    actor: 'system',
    action: 'org.created',
    target: org.id,
    metadata: { name: org.name, slug: org.slug },
    occurredAtMs: now,
  }
  return openStore({ folder, now, bootstrap: { org, audit }, shared })
}

/**
 * Adds to a program's environment what makes it use the database in place of its data folder. A server's has the
 * newest schema, which opens sooner; a verb's first one is empty, as a folder would be.
 */
export async function withEngine(
  dataDir: string | undefined,
  variables: Record<string, string> = {},
  contents: 'empty' | 'migrated' = 'empty',
): Promise<Record<string, string>> {
  if (!isOnPostgres || dataDir === undefined) return variables
  const { url } = await databaseOf(dataDir, contents)
  const ring = variables['SIGHTGLASS_KEY_FILE'] === undefined ? { SIGHTGLASS_KEY_RING: testRing } : {}
  return { SIGHTGLASS_DATABASE: url, ...ring, ...variables }
}

/** Runs SQL behind the server's back and returns the rows. Names with capitals need no quotes. */
export async function rawSql<T>(folder: string, sql: string): Promise<T[]> {
  if (isOnPostgres) {
    const { url } = await databaseOf(folder)
    const db = openConnection({ url, node: 'test', schema, statementTimeoutMs: 60_000 })
    try {
      return db.query<T, []>(sql).all()
    } finally {
      db.close()
    }
  }
  using db = new Database(join(folder, 'sightglass.db'))
  db.run('PRAGMA busy_timeout = 5000')
  return db.query<T, []>(sql).all()
}

/** The tables that have a column. */
export async function tablesWith(folder: string, column: string): Promise<string[]> {
  const sql = isOnPostgres
    ? `SELECT table_name::text AS name FROM information_schema.columns
       WHERE table_schema = '${schema}' AND column_name = '${column}' ORDER BY 1`
    : `SELECT t.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
       WHERE t.type = 'table' AND c.name = '${column}' ORDER BY t.name`
  return (await rawSql<{ name: string }>(folder, sql)).map(({ name }) => name)
}

/** Whether the files of the database, or any of its rows, contain these bytes. */
export async function databaseContains(folder: string, bytes: Buffer): Promise<boolean> {
  if (!isOnPostgres)
    return ['sightglass.db', 'sightglass.db-wal'].some((name) =>
      readFileSync(join(folder, name)).includes(bytes),
    )
  const sql = `SELECT table_name::text AS name FROM information_schema.tables WHERE table_schema = '${schema}'`
  const tables = await rawSql<{ name: string }>(folder, sql)
  // A row as text shows bytea in hexadecimal.
  const hex = bytes.toString('hex')
  const isShown = `position('${hex}' IN t::text) + position('${hex}' IN encode(convert_to(t::text, 'UTF8'), 'hex')) > 0`
  const queryFor = ({ name }: { name: string }) => `SELECT 1 AS found FROM "${name}" AS t WHERE ${isShown}`
  return (await rawSql(folder, tables.map(queryFor).join(' UNION ALL '))).length > 0
}
