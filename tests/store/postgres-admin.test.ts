/** Whole-database operations by URL: the same answers as of a data folder, and other tools for backups. */
import { expect, test } from 'bun:test'
import { openDatabaseAdmin, openReadStore, openStore } from '../../db/open.ts'
import { copiesOf } from '../../server/operations/backup/check.ts'
import { database, startPostgres } from '../support/postgres.ts'
import { makeAccount, makeAudit, makeBatch, makeEvent, makeKey, makeOrg, noon } from './make.ts'
import { failure } from './subject.ts'
import { tempDir } from '../support/temp-dir.ts'

const node = { name: 'one', version: '0.0.0', role: 'all' as const }

/** Events, an account, a key and audit entries, read through the operations of a database. */
async function filled(folder: string, url: string | null) {
  const shared = url === null ? null : { url, node: node.name }
  const store = await openStore({ folder, now: noon, shared })
  const org = makeOrg()
  await store.orgs.create({ org, audit: makeAudit(org.id) })
  const account = makeAccount()
  await store.accounts.create({ account, orgId: org.id, role: 'owner', audit: makeAudit(org.id) })
  await store.keys.create({ key: makeKey(org.id), audit: makeAudit(org.id) })
  const events = Array.from({ length: 300 }, (_, index) => makeEvent(`evt_${index}`))
  await store.events.append(makeBatch(org.id, events))
  await store.close()
  const admin = openDatabaseAdmin(url ?? folder)
  const { eventsLastWeek, keys, facts } = await admin.checkUp(noon)
  const { auditHeads, schema: _schema, ...counts } = await admin.facts()
  const { chains, faults } = await admin.verifyAudit()
  const { orgs, faults: eventFaults } = await admin.verifyEvents()
  expect(facts).toEqual({ ...counts, auditHeads, schema: (await admin.schema()).version })
  const heads = Object.values(auditHeads).map(({ count }) => count)
  const contents = { eventsLastWeek, keys, counts, heads, chains: chains.map(({ count }) => count) }
  return { ...contents, faults, eventFaults, events: orgs.map((orgEvents) => orgEvents.events) }
}

test('facts, checks and verification match those of a data folder', async () => {
  using dir = tempDir('admin')
  const { url } = await database()
  const expected = await filled(dir.join('folder'), null)
  expect(await filled('', url)).toEqual(expected)
  expect(expected).toMatchObject({ counts: { events: 300, orgs: 1, accounts: 1, keys: 1 }, faults: [] })
}, 60_000)

test('a database is empty before it is migrated, and in use while a node runs', async () => {
  const { url } = await database()
  const admin = openDatabaseAdmin(url)
  expect(await admin.hasData()).toBe(false)
  await admin.requireUnused()
  expect(await failure(openReadStore('', { url, node: 'reader' }))).toMatchObject({ kind: 'older_schema' })
  await admin.migrate(noon)
  const { version, newest, pending, applied } = await admin.schema()
  expect([version, pending, applied.length]).toEqual([newest, [], newest])
  expect([await admin.hasData(), admin.newestSchema]).toEqual([true, newest])
  const store = await openStore({ folder: '', now: noon, shared: { url, node: node.name } })
  await store.nodes.register({ node, now: noon })
  const refused = await failure(admin.requireUnused())
  expect([refused.kind, refused.message]).toEqual(['locked', 'the node one uses the database'])
  await store.close()
}, 60_000)

test('a store for reading has one connection, rejects writes and an older schema', async () => {
  const { url, cluster, name } = await database('migrated')
  const shared = { url, node: 'reader' }
  const store = await openReadStore('', shared)
  expect(await store.orgs.list()).toEqual([])
  const sessions = `SELECT count(*) FROM pg_stat_activity WHERE datname = '${name}' AND backend_type = 'client backend'`
  expect(await cluster.sql(sessions)).toBe('1')
  expect(await failure(store.audit.append(makeAudit('org_a')))).toMatchObject({ kind: 'read_only' })
  await store.close()
  await cluster.sql('DELETE FROM sightglass.schema_migration WHERE version > 20', name)
  expect(await failure(openReadStore('', shared))).toMatchObject({
    kind: 'older_schema',
    message: 'the data has schema 20, this release works with 21',
  })
}, 60_000)

test('backups name other tools; a database that does not answer is unavailable', async () => {
  const cluster = await startPostgres()
  const admin = openDatabaseAdmin(cluster.url)
  const refuse = () => copiesOf(admin)
  expect(refuse).toThrow('Other tools back up and restore this database.')
  expect([await admin.missingEvidence(), await admin.lastWriteMs()]).toEqual([[], null])
  await cluster.stop()
  expect((await failure(admin.schema())).kind).toBe('unavailable')
}, 60_000)
