/** A migration waits until no node of an older release can write; such a node that returns writes nothing. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { makeAudit, makeBatch, makeEvent, makeOrg, noon } from '../../../tests/store/make.ts'
import { database } from '../../../tests/support/postgres.ts'
import { openStore } from '../../open.ts'
import type { Store } from '../../contract/store.ts'
import { inTransaction, type Database } from '../../sql/database.ts'
import { openConnection } from '../connection/connection.ts'
import { fenced } from '../locks.ts'
import { schema } from './migrations.ts'
import { upkeep } from '../upkeep/upkeep.ts'
import { migrate, migrations, type ServerMigration } from './migrations.ts'

const org = makeOrg()
let older: Store
let newer: Database
let otherNode: Database
beforeAll(async () => {
  const { url } = await database()
  older = await openStore({ folder: '', now: noon, shared: { url, node: 'older' } })
  const open = () => openConnection({ url, node: 'newer', schema, statementTimeoutMs: 60_000 })
  ;[newer, otherNode] = [open(), open()]
  await older.orgs.create({ org, audit: makeAudit(org.id) })
  const node = { name: 'older', version: '1.0.0', role: 'all' as const }
  await older.nodes.register({ node, now: noon })
})
afterAll(async () => {
  newer.close()
  otherNode.close()
  await older.close()
})

const failure = (work: () => unknown): string => {
  try {
    return `no failure: ${JSON.stringify(work())}`
  } catch (error) {
    return `${(error as { kind?: string }).kind}: ${(error as Error).message}`
  }
}

function withNext(olderNodes: ServerMigration['olderNodes'], sql: string): ServerMigration[] {
  const knownMigrations: ServerMigration[] = [...migrations]
  const { v } = newer.query<{ v: number }, []>('SELECT max(version) AS v FROM schema_migration').get()!
  for (let version = knownMigrations.length + 1; version <= v; version++)
    knownMigrations.push({ version, name: 'applied', sql: 'SELECT broken', olderNodes: 'write' })
  return [...knownMigrations, { version: v + 1, name: 'next', sql, olderNodes }]
}

const append = (id: string) => older.events.append(makeBatch(org.id, [makeEvent(id)]))

test('a migration that older nodes tolerate runs beside them, and they start again after it', async () => {
  expect(await append('evt_1')).toMatchObject({ accepted: 1 })
  const knownMigrations = withNext('write', 'ALTER TABLE org ADD COLUMN later bigint')
  expect(migrate(newer, schema, knownMigrations, noon)).toEqual([migrations.length + 1])
  expect(await append('evt_2')).toMatchObject({ accepted: 1 })
  await older.nodes.heartbeat({ name: 'older', report: null, now: noon })
  expect(migrate(newer, schema, migrations, noon)).toEqual([])
})

test('a migration that they do not tolerate names them, and runs once they have ended', async () => {
  const knownMigrations = withNext('end', 'ALTER TABLE org ADD COLUMN last bigint')
  const wait = /^locked: nodes of an older release must end first: older \(1\.0\.0, seen \d+ s ago\)$/
  expect(failure(() => migrate(newer, schema, knownMigrations, noon))).toMatch(wait)
  expect(await append('evt_3')).toMatchObject({ accepted: 1 })
  // As a node that was suspended, or whose process was killed.
  newer.query('UPDATE node SET seen_at_ms = seen_at_ms - 16000').run()
  expect(migrate(newer, schema, knownMigrations, noon)).toEqual([migrations.length + 2])
})

test('a node that was suspended meanwhile writes nothing, and its store ends', async () => {
  const kindOf = (work: Promise<unknown>) =>
    work.then(
      () => 'done',
      ({ kind, message }: { kind: string; message: string }) =>
        `${kind} ${message.includes('use a newer release')}`,
    )
  for (let twice = 0; twice < 2; twice++) {
    expect(await kindOf(append('evt_4'))).toBe('newer_schema true')
    const next = makeOrg()
    expect(await kindOf(older.orgs.create({ org: next, audit: makeAudit(next.id) }))).toBe(
      'newer_schema true',
    )
    expect(await kindOf(older.nodes.heartbeat({ name: 'older', report: null, now: noon }))).toBe(
      'newer_schema true',
    )
  }
  expect(failure(() => upkeep(fenced(newer)).run())).toStartWith('newer_schema: ')
  expect((await older.broken).kind).toBe('newer_schema')
  expect(await older.events.lastSeq(org.id)).toBe(3)
  expect(failure(() => migrate(newer, schema, migrations, noon))).toStartWith('newer_schema: ')
})

test('a migration waits for transactions that write, and later ones wait for it', async () => {
  await older.close() // its upkeep writes too, at any moment
  const isFree = () =>
    otherNode
      .query<{ free: number }, []>(
        'SELECT CASE WHEN pg_try_advisory_lock(1397181523) THEN 1 ELSE 0 END AS free',
      )
      .get()
  newer.query('UPDATE store_lock SET writer_schema = 0').run()
  inTransaction(fenced(newer), () => expect(isFree()).toEqual({ free: 0 }))
  expect(isFree()).toEqual({ free: 1 })
  newer.run("SET lock_timeout = '200ms'")
  expect(failure(() => inTransaction(fenced(newer), () => 1))).toStartWith('unavailable: ')
  otherNode.query('SELECT pg_advisory_unlock(1397181523) IS NULL').get()
  expect(inTransaction(fenced(newer), () => 1)).toBe(1)
})

test('a migration that finds a table in use gives up, and says so', () => {
  const knownMigrations = withNext('write', 'ALTER TABLE org ADD COLUMN busy bigint')
  otherNode.run('BEGIN; SELECT 1 FROM org')
  newer.run('SET lock_timeout = 0')
  expect(failure(() => migrate(newer, schema, knownMigrations, noon))).toStartWith(
    'locked: another session uses a table',
  )
  otherNode.run('ROLLBACK')
  expect(migrate(newer, schema, knownMigrations, noon)).toHaveLength(1)
})
