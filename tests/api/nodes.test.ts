/** The nodes of a shared database: what operators, Prometheus and load balancers see of each. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { openPostgresStore } from '../../db/postgres/store.ts'
import { makeUpkeepWatch } from '../../server/operations/health/upkeep.ts'
import { readKeyRing } from '../../server/system/key-ring.ts'
import { event } from '../support/events.ts'
import { person } from '../support/people.ts'
import { startPostgres, type Cluster } from '../support/postgres.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { makeAudit, makeBatch, makeEvent, makeOrg } from '../store/make.ts'
import type { ServeConfig } from '../../server/runtime/make-services.ts'
import type { Check } from '../../server/operations/health/readiness.ts'
import type { NodesView } from '../../server/operations/health/nodes.ts'

setDefaultTimeout(60_000)

const keyRing = readKeyRing('ab'.repeat(32))
const hostile = 'edge "2\\<img src=x>\n'
let cluster: Cluster
let url = ''
let a: TestServer
let b: TestServer
let cookie = ''

async function openNode(name: string, overrides: Partial<ServeConfig> = {}): Promise<TestServer> {
  const open = async () => {
    const store = await openPostgresStore({
      url,
      node: 'n',
      now: Date.now(),
      readers: 2,
      readDeadlineMs: 10_000,
    })
    await store.call('orgs.bootstrap', { org: makeOrg({ slug: 'default' }), audit: makeAudit('org_system') })
    return store
  }
  const node = { name, version: '1.0.0', role: 'all' as const }
  return testServer({ keyRing, metricsToken: 'token', ...overrides }, 'quick', { open, node })
}

beforeAll(async () => {
  cluster = await startPostgres()
  await cluster.sql('CREATE ROLE app LOGIN')
  await cluster.sql('CREATE DATABASE app OWNER app')
  url = cluster.url.replace(/postgres@(.*)\/postgres$/, 'app@$1/app')
  a = await openNode('a')
  b = await openNode(hostile)
  cookie = (await person(a, a.org, 'owner', { operator: true })).cookie
})
afterAll(async () => {
  await Promise.all([a, b].map((server) => server[Symbol.asyncDispose]()))
  await cluster.stop()
})

/** The failing checks of /readyz, without the jobs that fail when they are due while the app must not write. */
async function notReady(server: TestServer): Promise<string[]> {
  const answer = await server.call('/readyz')
  if (answer.status === 200) return []
  const { checks } = (await answer.json()) as { checks: Check[] }
  const failing = checks.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`)
  return failing.filter(
    (failure) => !['jobs: late: retention', 'jobs: late: rollup-recount'].includes(failure),
  )
}

const sql = (text: string) => cluster.sql(`SET search_path = sightglass; ${text}`, 'app')
const nodesOf = async (server: TestServer): Promise<NodesView> =>
  (await server.call('/api/nodes', { headers: { cookie } })).json() as Promise<NodesView>

test('operators see every node with its state, and a missing one for a day', async () => {
  const member = await a.signIn('owner')
  expect((await a.call('/api/nodes', { headers: { cookie: member } })).status).toBe(403)
  await until(async () => (await nodesOf(a)).nodes.every(({ aheadMs }) => aheadMs !== null), 15_000)
  const { nodes, isShared, versions, backlog } = await nodesOf(a)
  expect([isShared, versions]).toEqual([true, ['1.0.0']])
  expect(
    nodes.map(({ name, state, isThis, isClockOff, problem }) => [name, state, isThis, isClockOff, problem]),
  ).toEqual([
    ['a', 'running', true, false, null],
    [hostile, 'running', false, false, null],
  ])
  expect((await nodesOf(b)).nodes.map(({ isThis }) => isThis)).toEqual([false, true])
  expect(backlog).toMatchObject({ undispatched: 0, deliveriesDue: 0, oldestDueMs: null })

  const older = { name: 'core', version: '0.9.0', role: 'jobs' as const }
  await a.store.nodes.register({ node: older, now: Date.now() })
  const report = {
    queuedBytes: 7,
    queuedMs: 8,
    viewMs: 9,
    isEnding: true,
    aheadMs: -6_000,
    problem: 'disk',
  }
  await a.store.nodes.heartbeat({ name: 'core', report, now: Date.now() })
  const core = async () => (await nodesOf(b)).nodes.find(({ name }) => name === 'core')
  const { isEnding: _, ...shown } = report
  expect(await core()).toMatchObject({ ...shown, isClockOff: true, state: 'ending', role: 'jobs' })
  expect((await nodesOf(b)).versions).toEqual(['0.9.0', '1.0.0'])
  await sql(`UPDATE node SET seen_at_ms = seen_at_ms - 21000 WHERE name = 'core'`)
  expect((await core())?.state).toBe('missing')
  expect((await nodesOf(b)).versions).toEqual(['1.0.0'])
  await sql(`UPDATE node SET seen_at_ms = seen_at_ms - 86400000 WHERE name = 'core'`)
  expect(await core()).toBeUndefined()
})

test('a data folder has no nodes, and its metrics no label of one', async () => {
  await using alone = await testServer({ metricsToken: 'token' })
  const { cookie: ownCookie } = await person(alone, alone.org, 'owner', { operator: true })
  const answer = await alone.call('/api/nodes', { headers: { cookie: ownCookie } })
  expect(await answer.json()).toEqual({ isShared: false, nodes: [], versions: [], backlog: null })
  const text = await (await alone.call('/metrics', { key: 'token' })).text()
  expect(text).not.toMatch(/node=|_nodes_|_upkeep_|take the maximum/)
  expect(text).toContain('# HELP sightglass_wal_bytes')
})

test('metrics of a node carry its name; those of the database are equal on all nodes, and say so', async () => {
  const key = await a.key('ingest')
  const post = (server: TestServer, id: string) =>
    server.call('/v1/sdk/events', { key, body: { events: [event(id)] } })
  await until(async () => (await post(b, 'evt_b')).status === 202)
  await post(a, 'evt_a1')
  await post(a, 'evt_a2')
  const scrape = async (server: TestServer) => (await server.call('/metrics', { key: 'token' })).text()
  for (const server of [a, b]) await scrape(server)
  await Bun.sleep(50)
  const texts = await Promise.all([a, b].map(scrape))
  const accepted = texts.map((text) =>
    Number(
      /^sightglass_ingest_events_total\{node="(?:[^"\\]|\\.)*",outcome="accepted"\} (\d+)$/m.exec(text)?.[1],
    ),
  )
  expect(accepted).toEqual([2, 1])
  for (const [n, text] of texts.entries()) {
    const help = new Map(
      [...text.matchAll(/^# HELP (\w+) (.*)$/gm)].map(([, name, helpText]) => [name!, helpText!]),
    )
    const label = `node="${n === 0 ? 'a' : 'edge \\"2\\\\<img src=x>\\n'}"`
    for (const line of text
      .split('\n')
      .filter((candidate) => candidate !== '' && !candidate.startsWith('#'))) {
      const name = /^\w+/.exec(line)![0]
      const helpText = help.get(name) ?? help.get(name.replace(/_(bucket|sum|count)$/, ''))
      expect([line, line.includes(label)]).toEqual([line, !helpText!.includes('every node reports the same')])
    }
    expect(text).toMatch(/^sightglass_nodes_running 2$/m)
    expect(text).toMatch(/^sightglass_upkeep_failing\{node=.*\} 0$/m)
    expect(text).toMatch(/^sightglass_store_bytes \d+$/m)
  }
})

test('/readyz refuses while the schema is an older one, or the database does not answer in time', async () => {
  const ready = async () => {
    const response = await a.call('/readyz')
    return [response.status, ((await response.json()) as { message?: string }).message]
  }
  expect((await ready())[0]).toBe(200)
  const { newestSchema } = await a.store.health()
  await sql(`UPDATE schema_migration SET version = -version WHERE version = ${newestSchema}`)
  expect(await ready()).toEqual([
    503,
    `store: the database has schema ${newestSchema - 1}, this release works with ${newestSchema}`,
  ])
  // A later migration that this release tolerates.
  await sql(`UPDATE schema_migration SET version = 999 WHERE version = -${newestSchema}`)
  expect((await ready())[0]).toBe(200)
  await sql(`UPDATE schema_migration SET version = ${newestSchema} WHERE version = 999`)
  expect((await ready())[0]).toBe(200)
  const locking = sql('BEGIN; LOCK TABLE schema_migration; SELECT pg_sleep(6); COMMIT')
  await Bun.sleep(200)
  expect(await ready()).toEqual([503, 'store: the store did not respond within 4 s'])
  await locking
  await until(async () => (await ready())[0] === 200)
})

test('a node that ends refuses /readyz first and serves requests for a while, then leaves the list', async () => {
  const c = await openNode('c', { drainMs: 1_500 })
  const key = await c.key('ingest')
  const names = async () => (await nodesOf(a)).nodes.map(({ name, state }) => `${name} ${state}`)
  expect(await names()).toContain('c running')
  const ended = c[Symbol.asyncDispose]()
  const ready = await c.call('/readyz')
  expect([ready.status, await ready.json()]).toMatchObject([
    503,
    { message: 'draining: the server is finishing its last requests before it exits' },
  ])
  expect((await c.call('/v1/sdk/events', { key, body: { events: [event('last')] } })).status).toBe(202)
  await until(async () => (await names()).includes('c ending'))
  await ended
  expect((await names()).some((nodeName) => nodeName.startsWith('c '))).toBe(false)
})

test('a failure of the background work is logged, shown and counted; other organizations are not held up', async () => {
  const logged: unknown[] = []
  let elapsed = 0
  const clock = { now: () => Date.now(), elapsed: () => elapsed }
  const watch = makeUpkeepWatch(a.store, clock, {
    error: (name, fields) => void logged.push([name, fields?.['kind']]),
  })
  const upkeep = () => a.store.behind()!.upkeep!
  const orgs = [makeOrg(), makeOrg()]
  for (const org of orgs) await a.store.orgs.create({ org, audit: makeAudit(org.id) })
  const unfolded = async () => (await a.store.nodes.backlog({ now: 0 })).unfolded
  await until(async () => (await unfolded()) === 0)

  await sql('REVOKE INSERT, UPDATE ON rollup_metric FROM app')
  for (const org of orgs) await a.store.events.append(makeBatch(org.id, [makeEvent('x')]))
  // A run between the two appends reports the other organization.
  const ofFirst = () => upkeep().lastFailure?.message.startsWith(`organization ${orgs[0]!.id}`) ?? false
  await until(() => upkeep().failures > 1 && ofFirst(), 10_000)
  // A copy, because Bun replaces what a matcher compares with the matcher.
  expect({ ...upkeep().lastFailure }).toMatchObject({
    kind: 'read_only',
    message: expect.stringContaining(`organization ${orgs[0]!.id}: permission denied`),
  })
  for (let n = 0; n < 3; n++) watch()
  expect(logged).toEqual([['upkeep_failed', 'read_only']])
  const failures = upkeep().failures
  await until(() => upkeep().failures > failures)
  watch()
  expect(logged).toHaveLength(1)
  elapsed += 61_000
  await until(() => upkeep().failures > failures + 1)
  watch()
  expect(logged).toHaveLength(2)
  expect(await (await a.call('/metrics', { key: 'token' })).text()).toMatch(
    /^sightglass_upkeep_failing\{node="a"\} 1$/m,
  )
  await until(
    async () => (await nodesOf(b)).nodes.some(({ problem }) => problem?.includes('permission denied')),
    20_000,
  )
  // All nodes would leave the load balancer together. On a busy machine the database is late now and then.
  await until(async () => (await notReady(a)).length === 0)
  expect((await a.call('/healthz')).status).toBe(200)

  // The first organization's block is damaged; the second is folded nevertheless.
  const num = `(SELECT num FROM event_org WHERE org_id = '${orgs[0]!.id}')`
  await sql(`UPDATE event_block SET columns = '\\x00' WHERE place / (1::bigint << 36) = ${num}`)
  // Still without the right to write: a run that has read the block before would fold it.
  await until(() => upkeep().lastFailure?.kind !== 'read_only', 10_000)
  expect(upkeep().lastFailure?.message).toContain(orgs[0]!.id)
  await sql('GRANT INSERT, UPDATE ON rollup_metric TO app')
  await until(async () => (await unfolded()) === 1)
  watch()
  expect(logged).toHaveLength(3)
  await sql(`DELETE FROM event_block WHERE columns = '\\x00'`)
  await until(() => upkeep().failingMs === null, 10_000)
})
