/** A PostgreSQL that is killed and started again: calls fail as `unavailable`, and the store works on afterwards. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { openPostgresStore } from '../../db/postgres/store.ts'
import { database, startPostgres, type Cluster } from '../support/postgres.ts'
import { until } from '../support/until.ts'
import { makeAudit, makeKey, makeOrg, noon } from './make.ts'
import { openRecords, type RecordsStore } from './postgres-records.ts'
import { auditOf, failure } from './subject.ts'

setDefaultTimeout(90_000)

let cluster: Cluster
let stores: RecordsStore[] = []
const org = makeOrg()
const key = makeKey(org.id)

beforeAll(async () => {
  cluster = await startPostgres({ fsync: true })
  stores = await Promise.all([1, 2].map(() => openRecords({ url: cluster.url })))
  await stores[0]!.orgs.create({ org, audit: makeAudit(org.id) })
  await stores[0]!.keys.create({ key, audit: makeAudit(org.id) })
})
afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()))
  await cluster.stop()
})

/** The first answer of `work` that is not `unavailable`, within a generous time for a restart. */
async function afterOutage<T>(work: () => Promise<T>): Promise<T> {
  for (const endMs = performance.now() + 20_000; ;) {
    try {
      return await work()
    } catch (error) {
      if ((error as { kind?: string }).kind !== 'unavailable' || performance.now() > endMs) throw error
      await Bun.sleep(50)
    }
  }
}

for (const fault of ['kill', 'restart'] as const) {
  test(`after a ${fault} of the database nothing acknowledged is missing, and every store works`, async () => {
    let broken = false
    for (const store of stores) void store.broken.then(() => (broken = true))
    const acknowledged: string[] = []
    let isOver = false
    const writing = stores.map(async (store) => {
      while (!isOver) {
        const audit = makeAudit(org.id)
        const outcome = await store.audit.append(audit).then(
          () => 'stored',
          (error: { kind: string }) => error.kind,
        )
        if (outcome === 'stored') acknowledged.push(audit.id)
        else expect(outcome).toBe('unavailable')
        await Bun.sleep(5)
      }
    })
    await until(() => acknowledged.length > 20)
    if (fault === 'kill') {
      await cluster.kill()
      for (const store of stores) {
        expect((await failure(store.orgs.list())).kind).toBe('unavailable')
        const revoking = { orgId: org.id, keyId: key.id, now: noon, audit: makeAudit(org.id) }
        expect((await failure(store.keys.revoke(revoking))).kind).toBe('unavailable')
      }
      await Bun.sleep(1_000)
      // Older than a second: another node may have revoked the key.
      for (const store of stores)
        expect((await failure(Promise.resolve(store.keys.findByHash(key.hash)))).kind).toBe('unavailable')
    }
    await cluster.restart()
    for (const store of stores) {
      expect(await afterOutage(() => store.orgs.find(org.id))).toEqual(org)
      expect(await afterOutage(async () => store.keys.findByHash(key.hash))).toEqual(key)
      const audit = makeAudit(org.id)
      await afterOutage(() => store.audit.append(audit))
      acknowledged.push(audit.id)
    }
    isOver = true
    await Promise.all(writing)
    const stored = (await auditOf(stores[0]!, org.id)).map(({ id }) => id)
    expect(acknowledged.filter((id) => !stored.includes(id))).toEqual([])
    expect((await stores[1]!.audit.verify([])).faults).toEqual([])
    expect(broken).toBe(false)
  })
}

test('background work fails while its connection is refused, and succeeds once it is accepted', async () => {
  const { url, name, cluster: sharedCluster, drop } = await database('migrated')
  const opening = { url, node: 'test', now: noon, readers: 1, readDeadlineMs: 10_000 }
  const store = await openPostgresStore(opening)
  await sharedCluster.sql(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`)
  const upkeep = () => store.behind()?.upkeep
  await until(() => (upkeep()?.failures ?? 0) >= 2)
  expect(upkeep()).toMatchObject({
    lastFailure: { message: expect.stringContaining('not currently accepting') },
  })
  expect(upkeep()?.failingMs).toBeGreaterThan(0)
  await sharedCluster.sql(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`)
  await until(() => upkeep()?.failingMs === null)
  await store.close()
  await drop()
})
