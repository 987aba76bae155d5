/** Two servers on one PostgreSQL are one appliance: what one answers is true on the other, also across an outage. */
import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { openPostgresStore } from '../../db/postgres/store.ts'
import { readKeyRing } from '../../server/system/key-ring.ts'
import { startReceiver } from '../support/receiver.ts'
import { startPostgres, type Cluster } from '../support/postgres.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { removeMember } from '../../server/identity/people/members.ts'
import { person } from '../support/people.ts'
import { makeAudit, makeOrg } from '../store/make.ts'

setDefaultTimeout(90_000)

const keyRing = readKeyRing('ab'.repeat(32))
let cluster: Cluster
let a: TestServer
let b: TestServer
const keys = { ingest: '', secret: '' }
let failures = 0

async function openNode(name: string): Promise<TestServer> {
  const open = async () => {
    const opening = { url: cluster.url, node: name, now: Date.now(), readers: 2, readDeadlineMs: 10_000 }
    const store = await openPostgresStore(opening)
    await store.call('orgs.bootstrap', { org: makeOrg({ slug: 'default' }), audit: makeAudit('org_system') })
    return store
  }
  const node = { name, version: 'test', role: 'all' as const }
  const everySecond = { cron: '* * * * * *', backoffMs: [1_000, 1_000, 1_000], sinkDir: null }
  const webhooks = { ...everySecond, allow: ['127.0.0.0/8'], caFile: null, proxy: null }
  const server = await testServer({ keyRing, webhooks }, 'quick', { open, node })
  void server.failed.then(() => failures++)
  return server
}

beforeAll(async () => {
  cluster = await startPostgres({ fsync: true })
  ;[a, b] = await Promise.all([openNode('a'), openNode('b')])
  keys.ingest = await a.key('ingest')
  keys.secret = await a.key('secret')
})
afterAll(async () => {
  await Promise.all([a, b].map((server) => server[Symbol.asyncDispose]()))
  await cluster.stop()
})

const newEventId = () => `evt_${crypto.randomUUID()}`

const eventOf = (id: string) => ({
  id,
  siteId: 's',
  sessionId: 'x',
  type: 'agent.detected',
  outcome: 'success',
  occurredAt: new Date().toISOString(),
  agent: { class: 'crawler', vendor: 'OpenAI' },
})

const post = (server: TestServer, ids: string[]) =>
  server.call('/v1/sdk/events', { key: keys.ingest, body: { events: ids.map(eventOf) } })

async function read<T>(server: TestServer, path: string): Promise<T> {
  const response = await server.call(path, { key: keys.secret })
  expect([path, response.status]).toEqual([path, 200])
  return (await response.json()) as T
}

const totalOf = async (server: TestServer) => (await read<{ total: number }>(server, '/v1/metrics')).total

async function soon(holds: () => Promise<boolean>, withinMs = 1_500): Promise<void> {
  for (const endMs = performance.now() + withinMs; !(await holds());) {
    if (performance.now() > endMs) throw new Error('it did not happen in time')
    await Bun.sleep(10)
  }
}

test('nodes that start at once on an empty database share one organization, and both are listed', async () => {
  expect((await b.store.orgs.list()).map(({ slug }) => slug)).toEqual(['default'])
  expect(a.org).toEqual(b.org)
  expect((await a.store.nodes.list({ now: Date.now() })).map(({ name }) => name)).toEqual(['a', 'b'])
})

test('a key created on one node works on the other, and is refused within a second after it was revoked', async () => {
  await soon(async () => (await post(b, [newEventId()])).status === 202)
  const spare = await a.key('secret')
  const call = async (server: TestServer) => (await server.call('/v1/metrics', { key: spare })).status
  await soon(async () => (await call(b)) === 200)
  const [key] = (await b.store.keys.list({ orgId: b.org.id, kind: 'secret' })).slice(-1)
  const revoking = { orgId: b.org.id, keyId: key!.id, now: Date.now(), audit: makeAudit(b.org.id) }
  await b.store.keys.revoke(revoking)
  expect(await call(b)).toBe(401)
  await soon(async () => (await call(a)) === 401)
})

test('a live stream of one node ends soon after the other node removed the person', async () => {
  const viewer = await person(a, a.org, 'viewer')
  const stream = await a.call('/api/live', { headers: { cookie: viewer.cookie } })
  expect(stream.status).toBe(200)
  const reader = stream.body!.getReader()
  await reader.read()
  await removeMember(b, { orgId: b.org.id, actor: 'cli', role: 'machine' }, viewer.id)
  const streamEnd = (async () => {
    for (;;) if ((await reader.read()).done) return 'ended'
  })()
  expect(await Promise.race([streamEnd, Bun.sleep(5_000)])).toBe('ended')
})

test('events of one node are counted and listed by the other at once, and a cursor continues there', async () => {
  const totalBefore = await totalOf(a)
  const ids = Array.from({ length: 30 }, () => newEventId())
  for (let n = 0; n < 10; n++) {
    const [writer, reader] = n % 2 === 0 ? [a, b] : [b, a]
    expect((await post(writer, ids.slice(n * 3, n * 3 + 3))).status).toBe(202)
    expect(await totalOf(reader)).toBe(totalBefore + (n + 1) * 3)
  }
  const foundIds: string[] = []
  let cursor = ''
  for (let n = 0; foundIds.length < 30; n++) {
    const query = cursor === '' ? 'limit=7' : `cursor=${cursor}`
    type Page = { events: { id: string }[]; nextCursor: string }
    const page = await read<Page>(n % 2 === 0 ? a : b, `/v1/traces?${query}`)
    foundIds.push(...page.events.map(({ id }) => id))
    cursor = encodeURIComponent(page.nextCursor)
  }
  expect(foundIds.slice(0, 30).toSorted()).toEqual(ids.toSorted())
})

test('a signature counts once, whichever of the nodes gets it', async () => {
  const hash = (text: string): string => new Bun.CryptoHasher('sha256').update(text).digest('hex')
  const expiresAtMs = Date.now() + 60_000
  for (let round = 0; round < 10; round++) {
    // Several at once, in different orders, so that nodes would wait for each other in a circle.
    const names = Array.from({ length: 8 }, (_, index) => hash(`signature ${round} ${index}`))
    const use = (server: TestServer, owner: string, order: readonly string[]) =>
      server.store.signatures.use({
        uses: order.map((name) => ({ hash: name, owner: hash(owner + name), expiresAtMs })),
      })
    const reversed = names.toReversed()
    const [first, second] = await Promise.all([use(a, 'a', names), use(b, 'b', reversed)])
    expect(first).toEqual(second.toReversed().map((isNew) => !isNew))
    expect(await use(b, 'a', names)).toEqual(first) // sent again, to another node
  }
})

test('a delivery that one node sends says on the other node who delivers it', async () => {
  await using receiver = await startReceiver()
  interface DeliveryJson {
    waitingFor: { reason: string; node?: string; until?: string } | null
  }
  const sent = await a.call('/v1/webhooks/test', { key: keys.secret, body: { url: `${receiver.url}/hang` } })
  const { deliveryId } = (await sent.json()) as { deliveryId: string }
  await receiver.wait('/hang', 1)
  const seen = await Promise.all([a, b].map((node) => read<DeliveryJson>(node, `/v1/webhooks/${deliveryId}`)))
  const reasons = seen.map(({ waitingFor }) => waitingFor?.reason ?? null)
  expect(reasons.toSorted()).toEqual(['lease', 'response']) // either node may have claimed it
  const sender = reasons.indexOf('response') === 0 ? 'a' : 'b'
  expect(seen[reasons.indexOf('lease')]!.waitingFor).toEqual({
    reason: 'lease',
    node: sender,
    until: expect.stringMatching(/Z$/),
  })
})

test('a sign-in holds on both nodes, and a live stream gets the events of the other', async () => {
  const cookie = await a.signIn('owner')
  expect((await b.call('/api/overview', { headers: { cookie } })).status).toBe(200)
  const response = await fetch(`${b.url}/api/live`, { headers: { cookie } })
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  let text = ''
  const id = newEventId()
  const reading = (async () => {
    while (!text.includes(id)) text += decoder.decode((await reader.read()).value)
  })()
  expect((await post(a, [id])).status).toBe(202)
  await Promise.race([reading, Bun.sleep(5_000)])
  await reader.cancel()
  expect(text).toContain(id)
})

test('an endpoint of one node gets the events of both once, in batches without a gap, signed by either', async () => {
  await using receiver = await startReceiver()
  const endpointResponse = await a.call('/v1/webhooks/endpoints', {
    key: keys.secret,
    body: { url: `${receiver.url}/ok/pair` },
  })
  expect(endpointResponse.status).toBe(201)
  const { secret } = (await endpointResponse.json()) as { secret: string }
  const ids = Array.from({ length: 400 }, newEventId)
  for (let offset = 0; offset < ids.length; offset += 20) {
    expect((await post(offset % 40 === 0 ? a : b, ids.slice(offset, offset + 20))).status).toBe(202)
    await Bun.sleep(offset % 100 === 0 ? 400 : 0) // fan-outs of both nodes begin in between
  }
  const batches = () => receiver.received('/ok/pair').filter(({ body }) => body.includes('"trace.batch"'))
  const batchOf = (body: string) =>
    (JSON.parse(body) as { data: { sequence: number; events: { id: string }[] } }).data
  const idsOf = () => batches().flatMap(({ body }) => batchOf(body).events.map(({ id }) => id))
  await soon(async () => idsOf().length >= ids.length, 20_000)
  await Bun.sleep(1_500) // a second delivery would come by then
  expect(idsOf().toSorted()).toEqual(ids.toSorted())
  const sequences = batches().map(({ body }) => batchOf(body).sequence)
  expect(sequences.toSorted((x, y) => x - y)).toEqual(sequences.map((_, index) => index + 1))
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  for (const { headers, body } of batches()) {
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
    const signature = createHmac('sha256', key).update(signed).digest('base64')
    expect(headers['webhook-signature']).toContain(`v1,${signature}`)
  }
})

test('events of a node whose clock is two hours ahead arrive at the time of the database', async () => {
  b.jump(2 * 3_600_000)
  const ids = [newEventId(), newEventId()]
  for (const [server, id] of [
    [b, ids[0]!],
    [a, ids[1]!],
  ] as const)
    expect((await post(server, [id])).status).toBe(202)
  const { events } = await a.store.events.page({
    orgId: a.org.id,
    filter: {},
    limit: 2,
    before: null,
    ceilingSeq: null,
  })
  for (const { receivedAtMs } of events) expect(Math.abs(receivedAtMs - Date.now())).toBeLessThan(60_000)
  b.jump(-2 * 3_600_000)
})

test('while the database is killed both answer 503; afterwards every acknowledged event is counted once', async () => {
  const totalBefore = await totalOf(a)
  const acknowledged = new Set<string>()
  const statuses = new Set<number>()
  let isOver = false
  const senders = [a, b, a, b].map(async (server) => {
    for (let pending: string[] = []; !isOver || pending.length > 0;) {
      if (pending.length === 0) pending = Array.from({ length: 20 }, () => newEventId())
      const response = await post(server, pending)
      statuses.add(response.status)
      if (response.status === 202) {
        for (const id of pending) acknowledged.add(id)
        pending = []
        await Bun.sleep(10)
      } else {
        expect(await response.json()).toMatchObject({ error: 'unavailable' })
        expect(response.headers.get('retry-after')).toBe('1')
        await Bun.sleep(50) // then the same batch again: dedupe answers for what was stored
      }
    }
  })
  await Bun.sleep(500)
  await cluster.kill()
  await soon(async () => statuses.has(503), 10_000)
  for (const server of [a, b]) {
    expect((await server.call('/healthz')).status).toBe(200)
    expect((await server.call('/readyz')).status).toBe(503)
    const response = await server.call('/v1/traces', { key: keys.secret })
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '1'])
  }
  await cluster.restart()
  await soon(async () => (await post(a, [])).status === 400, 20_000)
  await Bun.sleep(1_000)
  isOver = true
  await Promise.all(senders)
  expect([...statuses].toSorted()).toEqual([202, 503])
  expect(acknowledged.size).toBeGreaterThan(100)
  for (const server of [a, b]) {
    expect(await totalOf(server)).toBe(totalBefore + acknowledged.size)
    await soon(async () => (await server.call('/readyz')).status === 200) // jobs that waited for the database run
  }
  const lastSeq = await a.store.events.lastSeq(a.org.id)
  expect(lastSeq).toBe(await totalOf(a))
  expect(failures).toBe(0)
})
