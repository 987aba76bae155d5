/** A node whose connections end, or whose server stops and returns: it lives on, and its events are exact. */
import { afterAll, expect, test } from 'bun:test'
import { openPostgresStore } from '../../db/postgres/store.ts'
import { StoreError } from '../../db/contract/errors.ts'
import { makeAudit, makeBatch, makeEvent, makeOrg, noon } from '../store/make.ts'
import { openConnection } from '../../db/postgres/connection/connection.ts'
import { hasPooler, startPooler, startPostgres } from '../support/postgres.ts'

const cluster = await startPostgres()
const store = await openPostgresStore({
  url: cluster.url,
  now: noon,
  node: 'crash',
  readers: 2,
  readDeadlineMs: 10_000,
})
afterAll(async () => {
  await store.close()
  await cluster.stop()
})

async function newOrg(): Promise<string> {
  const org = makeOrg()
  await store.orgs.create({ org, audit: makeAudit(org.id) })
  return org.id
}

/** Appends until one succeeds, again and again as a client does. Every failure must be `unavailable`. */
async function appendAsClient(orgId: string, id: string): Promise<number> {
  for (let tries = 1; ; tries++) {
    try {
      await store.events.append(makeBatch(orgId, [makeEvent(id)]))
      return tries
    } catch (error) {
      if (!(error instanceof StoreError) || error.kind !== 'unavailable') throw error
      await Bun.sleep(20)
    }
  }
}

async function idsOf(orgId: string): Promise<string[]> {
  const query = { orgId, filter: {}, limit: 1_000, before: null, ceilingSeq: null }
  return (await store.events.page(query)).events.map(({ json }) => (JSON.parse(json) as { id: string }).id)
}

test('connections that end while events are appended lose none and store none twice', async () => {
  const orgId = await newOrg()
  const operator = openConnection({ url: cluster.url, node: 'operator', statementTimeoutMs: 5_000 })
  const endConnections = operator.query(`SELECT count(pg_terminate_backend(pid)) AS n FROM pg_stat_activity
    WHERE application_name = 'sightglass/crash'`)
  const ids = Array.from({ length: 100 }, (_, index) => `event-${index}`)
  let tries = 0
  for (const [index, id] of ids.entries()) {
    endConnections.get()
    if (index % 3 === 1) await Bun.sleep(index % 7)
    tries += await appendAsClient(orgId, id)
  }
  operator.close()
  expect(tries).toBeGreaterThan(ids.length)
  const stored = await idsOf(orgId).catch(() => idsOf(orgId)) // the readers' connections ended too
  expect(stored.toSorted()).toEqual(ids.toSorted())
}, 60_000)

test('while the server is down, every verb fails as unavailable; afterwards all work again', async () => {
  const orgId = await newOrg()
  await appendAsClient(orgId, 'before')
  await cluster.kill()
  const kinds = async (verb: Promise<unknown>) =>
    verb.then(
      () => 'answered',
      (error: unknown) => (error instanceof StoreError ? error.kind : String(error)),
    )
  const started = performance.now()
  const append = store.events.append(makeBatch(orgId, [makeEvent('during')]))
  const org = makeOrg()
  const create = store.orgs.create({ org, audit: makeAudit(org.id) })
  const failures = await Promise.all([kinds(append), kinds(create), kinds(idsOf(orgId))])
  expect(failures.join()).toBe('unavailable,unavailable,unavailable')
  expect(performance.now() - started).toBeLessThan(20_000)
  await cluster.restart()
  await appendAsClient(orgId, 'after')
  await appendAsClient(orgId, 'during')
  await store.orgs.create({ org, audit: makeAudit(org.id) })
  expect((await idsOf(orgId)).toSorted()).toEqual(['after', 'before', 'during'])
}, 60_000)

test('a server process that hangs is abandoned, and the next statement connects again', () => {
  const db = openConnection({ url: cluster.url, node: 'still', statementTimeoutMs: 300 })
  const pidQuery = db.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
  const { pid } = pidQuery.get()!
  process.kill(pid, 'SIGSTOP')
  try {
    expect(() => pidQuery.get()).toThrow('the server does not answer')
    expect(pidQuery.get()!.pid).not.toBe(pid)
  } finally {
    process.kill(pid, 'SIGCONT')
    db.close()
  }
}, 60_000)

test('a node that stops in a transaction frees its locks within 5 s, and its transaction fails', () => {
  const options = { url: cluster.url, statementTimeoutMs: 20_000 }
  const stopped = openConnection({ ...options, node: 'stopped' })
  const otherConnection = openConnection({ ...options, node: 'other' })
  const lock = `SELECT name FROM store_lock WHERE name = 'records' FOR UPDATE`
  stopped.query('BEGIN').run()
  expect(stopped.query(lock).all().length).toBe(1)
  expect(otherConnection.query(lock).all().length).toBe(1)
  expect(() => stopped.query('SELECT 1').get()).toThrow(StoreError)
  expect(() => stopped.query('COMMIT').run()).toThrow('lost')
  expect(stopped.query('SELECT 1 AS one').get()).toEqual({ one: 1 })
  stopped.close()
  otherConnection.close()
}, 60_000)

test.if(hasPooler)(
  'two nodes through a pooler that changes connections append, write and read',
  async () => {
    const pooler = await startPooler(cluster, 6)
    const base = { url: pooler.url('postgres'), now: noon, readers: 1, readDeadlineMs: 10_000 }
    const nodes = [
      await openPostgresStore({ ...base, node: 'one' }),
      await openPostgresStore({ ...base, node: 'two' }),
    ]
    const org = makeOrg()
    await nodes[0]!.orgs.create({ org, audit: makeAudit(org.id) })
    const ids = Array.from({ length: 60 }, (_, index) => `event-${index}`)
    const appended = ids.map((id, index) =>
      nodes[index % 2]!.events.append(makeBatch(org.id, [makeEvent(id), makeEvent('shared')])),
    )
    const accepted = (await Promise.all(appended)).reduce((sum, result) => sum + result.accepted, 0)
    expect(accepted).toBe(ids.length + 1)
    const query = { orgId: org.id, filter: {}, limit: 1_000, before: null, ceilingSeq: null }
    for (const node of nodes) {
      const { events } = await node.events.page(query)
      expect(events.map(({ seq }) => seq)).toEqual(
        Array.from({ length: accepted }, (_, index) => accepted - index),
      )
    }
    await Promise.all(nodes.map((node) => node.close()))
    await pooler.stop()
  },
  60_000,
)
