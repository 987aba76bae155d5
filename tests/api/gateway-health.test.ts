/** GET /api/ingest/health after a storm of good and bad requests from several keys equals what was sent. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { event } from '../support/events.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { rawSql } from '../support/engine.ts'

interface Sums {
  requests: number
  refused: number
  accepted: number
  deduped: number
  rejected: number
}
interface Health {
  since: string
  totals: Sums
  keys: (Sums & {
    id: string
    label: string
    state: string
    neverUsed: boolean
    seenInBrowserAt: string | null
    clock: { state: string; offMs: number } | null
  })[]
  hours: (Sums & { hour: string; keyId: string })[]
  nearMisses: { keyId: string; path: string; known: string; events: number }[]
  rejected: { at: string; keyId: string; code: string; message: string; path: string; excerpt: string }[]
}

let server: TestServer
let cookie: string

beforeAll(async () => {
  server = await testServer()
  cookie = await server.signIn('analyst')
})
afterAll(() => server[Symbol.asyncDispose]())

async function health(query = ''): Promise<Health> {
  const response = await server.call(`/api/ingest/health${query}`, { headers: { cookie } })
  expect(response.status).toBe(200)
  return (await response.json()) as Health
}

const createSums = (): Sums => ({ requests: 0, refused: 0, accepted: 0, deduped: 0, rejected: 0 })
const add = (target: Sums, increments: Partial<Sums>) => {
  for (const name of Object.keys(increments) as (keyof Sums)[]) target[name] += increments[name] ?? 0
}

test('the counts of many requests with three keys equal what was sent', async () => {
  const keys = await Promise.all(
    ['one', 'two', 'idle'].map(async (label) => ({ label, key: await server.key('ingest', { label }) })),
  )
  const sums = new Map(keys.map(({ label }) => [label, createSums()]))
  const now = () => new Date().toISOString()
  const good = (id: string) => event(id, { occurredAt: now() })
  const bad = (id: string) => ({ ...event(id), type: 'NOT A TYPE' })
  const kinds: ((n: number) => [body: unknown, path: string, counts: Partial<Sums>])[] = [
    (n) => [{ events: [good(`a${n}`), good(`b${n}`)] }, 'events', { accepted: 2 }],
    (n) => [{ events: [good(`c${n}`), good(`c${n}`)] }, 'events', { accepted: 1, deduped: 1 }],
    (n) => [{ events: [good(`d${n}`), bad(`e${n}`)] }, 'events', { accepted: 1, rejected: 1 }],
    (n) => [{ events: [bad(`f${n}`), bad(`g${n}`)] }, 'events', { refused: 1, rejected: 2 }],
    () => ['{"events":', 'events', { refused: 1 }],
    () => [{ events: [] }, 'events', { refused: 1 }],
    (n) => [{ siteId: 'shop', tools: [{ name: `t${n}` }] }, 'tools', {}],
    () => [{ siteId: 'shop', tools: [{}] }, 'tools', { refused: 1 }],
    () => [{ siteId: 'shop', snapshot: {} }, 'memory', {}],
    () => [{ siteId: 'shop' }, 'memory', { refused: 1 }],
  ]
  const requests = Array.from({ length: 300 }, async (_, n) => {
    const { label, key } = keys[n % 2]!
    const [body, path, counts] = kinds[n % kinds.length]!(n)
    add(sums.get(label)!, { requests: 1, ...counts })
    await (await server.call(`/v1/sdk/${path}`, { key, body })).text()
  })
  await Promise.all(requests)
  const { totals, keys: views, hours, rejected } = await health()
  const allSums = createSums()
  for (const { label } of keys) {
    const keySums = sums.get(label)!
    add(allSums, keySums)
    expect(views.find((view) => view.label === label)).toMatchObject({ ...keySums, state: 'active' })
  }
  expect(totals).toEqual(allSums)
  const fromHours = createSums()
  for (const hour of hours) add(fromHours, { ...hour, hour: undefined, keyId: undefined } as Partial<Sums>)
  expect(fromHours).toMatchObject(allSums)
  expect(views.find(({ label }) => label === 'idle')).toMatchObject({ neverUsed: true, clock: null })
  expect(views.find(({ label }) => label === 'one')).toMatchObject({
    neverUsed: false,
    clock: { state: 'fine' },
  })
  const codes = new Set(rejected.map(({ code }) => code))
  expect([...codes].toSorted()).toEqual(['invalid_body', 'invalid_json', 'wrong_format'])
  expect(rejected.find(({ path }) => path === 'type')?.excerpt).toContain('NOT A TYPE')
})

test('senders with a wrong clock, and secret keys used in a browser', async () => {
  const send = async (label: string, offMs: number) => {
    const key = await server.key('ingest', { label })
    const occurredAt = new Date(server.clock.now() + offMs).toISOString()
    await server.call('/v1/sdk/events', { key, body: { events: [event(label, { occurredAt })] } })
    return key
  }
  await send('ahead', 10 * 60_000)
  await send('behind', -60 * 60_000)
  const leaked = await send('right', -500)
  const refused = await server.call('/v1/sdk/events', {
    key: leaked,
    body: { events: [event('x')] },
    headers: { origin: 'https://shop.example.com' },
  })
  expect(refused.status).toBe(403)
  const { keys } = await health()
  const findKey = (label: string) => keys.find((key) => key.label === label)
  expect(findKey('ahead')?.clock).toMatchObject({ state: 'ahead' })
  expect(findKey('behind')?.clock).toMatchObject({ state: 'behind' })
  expect(findKey('right')).toMatchObject({
    clock: { state: 'fine' },
    seenInBrowserAt: expect.any(String) as string,
  })
})

test('near misses of known fields are counted and named per key, and reject nothing', async () => {
  const { durationMs: _, ...plain } = event('near')
  const first = await server.key('ingest', { label: 'near' })
  const second = await server.key('ingest')
  const post = async (key: string, events: object[]) => {
    const answer = await server.call('/v1/sdk/events', { key, body: { events } })
    return ((await answer.json()) as { accepted?: number }).accepted
  }
  for (let n = 0; n < 3; n++) expect(await post(first, [{ ...plain, id: `n${n}`, latencyMs: 7 }])).toBe(1)
  expect(await post(second, [{ ...plain, id: 'n9', agent: { user_agent: 'x' }, mine: 1 }])).toBe(1)
  expect(await post(second, [{ ...plain, id: 'n10', sessionId: undefined, session_id: 's' }])).toBeUndefined()
  const { nearMisses, keys } = await health()
  const key = keys.find(({ label }) => label === 'near')!.id
  expect(nearMisses.filter(({ keyId }) => keyId === key)).toEqual([
    { keyId: key, path: 'latencyMs', known: 'durationMs', events: 3 },
  ])
  const otherMisses = nearMisses.filter(({ keyId }) => keyId !== key)
  expect(otherMisses.map(({ path, known: knownPath, events }) => [path, knownPath, events])).toEqual([
    ['agent.user_agent', 'agent.userAgent', 1],
    ['session_id', 'sessionId', 1],
  ])
})

test('counts belong to the hour of arrival and survive a restart', async () => {
  const acceptedBefore = (await health()).totals.accepted
  const key = await server.key('ingest', { label: 'later' })
  server.clock.move(3_600_000)
  await server.call('/v1/sdk/events', { key, body: { events: [event('later')] } })
  const { hours, totals } = await health()
  expect(totals.accepted).toBe(acceptedBefore + 1)
  expect(new Set(hours.map(({ hour }) => hour)).size).toBe(2)
  const stored = await server.store.ingestCounts.list({ orgId: server.org.id, sinceMs: 0 })
  expect(stored.reduce((sum, { accepted }) => sum + accepted, 0)).toBe(totals.accepted)
})

test('the counts of an acknowledged request are on disk with its events, before any flush', async () => {
  const key = await server.key('ingest', { label: 'durable' })
  const body = { events: [event('du1'), event('du1'), { ...event('du2'), type: 'NO' }] }
  expect((await server.call('/v1/sdk/events', { key, body })).status).toBe(202)
  const { id } = (await server.store.keys.list({ orgId: server.org.id })).find(
    ({ label }) => label === 'durable',
  )!
  const columns = 'requests, refused, accepted, deduped, rejected'
  const rows = await rawSql(server.dataDir, `SELECT ${columns} FROM ingest_hour WHERE key_id = '${id}'`)
  expect(rows).toEqual([{ requests: 1, refused: 0, accepted: 1, deduped: 1, rejected: 1 }])
})

test('another organization sees none of it; invalid queries are rejected', async () => {
  expect(await server.store.ingestCounts.list({ orgId: 'org_other', sinceMs: 0 })).toEqual([])
  const status = async (query: string, headers: Record<string, string> = { cookie }) =>
    (await server.call(`/api/ingest/health${query}`, { headers })).status
  expect(await status('?since=2020-01-01')).toBe(400)
  expect(await status('?nope=1')).toBe(400)
  expect(await status('', {})).toBe(401)
})
