/** PostgreSQL databases of every earlier schema are upgraded, by one of several nodes, with all that they hold. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import type { Store } from '../../db/contract/store.ts'
import { openDatabaseAdmin, openStore } from '../../db/open.ts'
import { openConnection } from '../../db/postgres/connection/connection.ts'
import { migrate, migrations, schema as schemaName } from '../../db/postgres/migrations/migrations.ts'
import { database } from '../support/postgres.ts'
import { isFull } from '../support/runs.ts'
import { contentOf } from './fixture.ts'
import { makeBatch, makeEvent, noon } from './make.ts'
import { serverFixtures } from './postgres-fixture.ts'

setDefaultTimeout(60_000)

const open = (url: string, node: string): Promise<Store> =>
  openStore({ folder: '', now: noon, shared: { url, node } })

async function expectSound(url: string, auditFaults: string[] = []): Promise<void> {
  const admin = openDatabaseAdmin(url)
  expect(await admin.schema()).toMatchObject({ version: migrations.length, pending: [], isNewer: false })
  expect((await admin.verifyAudit()).faults.map(({ message }) => message)).toEqual(auditFaults)
  expect((await admin.verifyEvents()).faults).toEqual([])
}

test('every schema since the first with events has a fixture', () => {
  const schemas = serverFixtures().map(({ schema }) => schema)
  expect(schemas).toEqual(Array.from({ length: schemas.length }, (_, index) => 4 + index))
  // That of this release is saved before the next migration.
  expect(schemas.length).toBeGreaterThanOrEqual(migrations.length - 4)
})

/**
 * Two nodes start at once from the oldest schema, the newest, and one of the others, and one node from every third of
 * the rest; two from every one in a full run.
 */
const names = serverFixtures().map(({ name }) => name)
const otherNames = names.slice(1, -1)
const third = Math.floor(Math.random() * 3)
const paired = new Set([names[0], names.at(-1), otherNames[Math.floor(Math.random() * otherNames.length)]])
const upgradedToday = serverFixtures().filter(
  ({ name }, index) => isFull || paired.has(name) || index % 3 === third,
)

test.each(upgradedToday.map((fixture) => [fixture.name, fixture] as const))(
  'from %s: nodes keep all data, and go on',
  async (fixtureName, { schema, content, sql }) => {
    const { url, cluster, name } = await database()
    await cluster.sql(sql(), name)
    expect((await openDatabaseAdmin(url).schema()).version).toBe(schema)
    const started = isFull || paired.has(fixtureName) ? ['one', 'two'] : ['one']
    const nodes = await Promise.all(started.map((node) => open(url, node)))
    const one = nodes[0]!
    const two = nodes.at(-1)!
    expect(await contentOf(one)).toMatchObject({ ...content })
    const [orgId = ''] = content.orgs
    const total = content.events[orgId]!.total
    // A known id, and a new one.
    const events = [makeEvent('evt_7'), makeEvent('evt_new')]
    expect(await two.events.append(makeBatch(orgId, events))).toMatchObject({ accepted: 1, deduped: 1 })
    expect((await one.events.overview(orgId)).total).toBe(total + 1)
    await Promise.all(nodes.map((node) => node.close()))
    await expectSound(url)
  },
)

test.each([1, 2, 3])('from schema %i, which no node ever served', async (schema) => {
  const { url } = await database()
  const db = openConnection({ url, node: 'old', schema: schemaName, statementTimeoutMs: 60_000 })
  migrate(db, schemaName, migrations.slice(0, schema), noon)
  db.query("INSERT INTO org (id, slug, name, created_at_ms) VALUES ('org_old', 'old', 'Old', 1)").run()
  db.close()
  const store = await open(url, 'one')
  expect((await store.orgs.list()).map(({ id }) => id)).toEqual(['org_old'])
  expect(await store.events.append(makeBatch('org_old', [makeEvent('evt_1')]))).toMatchObject({ accepted: 1 })
  await store.close()
  // Its organization was inserted without an audit entry, which no release does.
  await expectSound(url, ['there are organizations, but not one audit entry'])
})
