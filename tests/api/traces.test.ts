/** GET /v1/traces over HTTP: paging, cursors, filters, and rejected requests. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { event, eventsInOrder, type TestEvent } from '../support/events.ts'
import { testServer, type TestServer } from '../support/server.ts'

interface Page {
  events: TestEvent[]
  nextCursor: string | null
}

let server: TestServer
let ingest: string
let secret: string

beforeAll(async () => {
  server = await testServer()
  ingest = await server.key('ingest')
  secret = await server.key('secret')
})
afterAll(() => server[Symbol.asyncDispose]())

async function send(events: TestEvent[]): Promise<void> {
  const response = await server.call('/v1/sdk/events', { key: ingest, body: { events } })
  expect(response.status).toBe(202)
}

const get = (query: string, key = secret) => server.call(`/v1/traces${query}`, { key })

async function page(query: string): Promise<Page> {
  const response = await get(query)
  expect(response.status).toBe(200)
  return (await response.json()) as Page
}

/** Pages to the end and returns the ids, newest first. */
async function walk(
  query: string,
  onStep: (step: number) => Promise<void> = async () => undefined,
): Promise<string[]> {
  const ids: string[] = []
  let next = await page(query)
  for (let step = 0; ; step++) {
    expect(next.events.length).toBeGreaterThan(0)
    ids.push(...next.events.map((pageEvent) => pageEvent.id))
    await onStep(step)
    if (next.nextCursor === null) return ids
    next = await page(`?cursor=${next.nextCursor}&limit=40`)
  }
}

test('empty: no events and no cursor', async () => {
  expect(await page('')).toEqual({ events: [], nextCursor: null })
})

test('pages newest first, to the end, exactly once, while new ones arrive', async () => {
  const sentEvents = eventsInOrder(230, 'walk_')
  await send(sentEvents)
  await send([
    event('same_a', { occurredAt: sentEvents[100]!.occurredAt }),
    event('same_b', { occurredAt: sentEvents[100]!.occurredAt }),
  ])
  const expected = [...sentEvents.map((sentEvent) => sentEvent.id)]
  expected.splice(101, 0, 'same_a', 'same_b')
  const late = (step: number) => send([event(`late_${step}`, { occurredAt: sentEvents[0]!.occurredAt })])
  expect(await walk('?limit=40', late)).toEqual(expected.reverse())
})

test('default 50, above 200 means 200', async () => {
  expect((await page('')).events.length).toBe(50)
  expect((await page('?limit=1000')).events.length).toBe(200)
  expect((await page('?limit=1')).events.length).toBe(1)
})

test('type filters exactly or by prefix, since is inclusive, until exclusive', async () => {
  const types = ['agent.detected', 'agent.missed', 'agentx.detected', 'tool.executed']
  const day = (n: number) => `2021-01-0${n}T00:00:00.000Z`
  await send(
    types.map((type, index) => event(`type_${index}`, { type, siteId: 'typed', occurredAt: day(index + 1) })),
  )
  const ids = async (query: string) =>
    (await page(`?siteId=typed&${query}`)).events.map((pageEvent) => pageEvent.id)
  expect(await ids('type=agent.detected')).toEqual(['type_0'])
  expect(await ids('type=agent.*')).toEqual(['type_1', 'type_0'])
  expect(await ids('type=tool.executed&type=agent.missed')).toEqual(['type_3', 'type_1'])
  expect(await ids('type=none.such')).toEqual([])
  expect(await ids('until=2021-01-03')).toEqual(['type_1', 'type_0'])
  expect(
    (await page(`?siteId=typed&since=${encodeURIComponent('2021-01-02T01:00:00+01:00')}&until=2021-01-03`))
      .events.length,
  ).toBe(1)
  expect((await page('?siteId=typed&since=2021-01-02T01:00:00+01:00&until=2021-01-03')).events.length).toBe(1)
})

test('a cursor works alone or with its own filters, and with no others', async () => {
  const first = await page('?limit=1&type=authz.*&since=2026-01-01')
  const cursor = first.nextCursor!
  const alone = await page(`?cursor=${cursor}`)
  expect(alone.events.length).toBe(50)
  expect(await page(`?cursor=${cursor}&since=2026-01-01&type=authz.*`)).toMatchObject({
    events: alone.events,
  })
  for (const query of [
    `?cursor=${cursor}&type=tool.executed`,
    `?cursor=${cursor.slice(0, -3)}AAA`,
    '?cursor=x',
  ]) {
    const response = await get(query)
    const body = (await response.json()) as { error: string; issues: { path: string }[] }
    expect([response.status, body.error, body.issues[0]?.path]).toEqual([400, 'invalid_query', 'cursor'])
  }
})

test('invalid parameters are named', async () => {
  const wrong: [string, string][] = [
    ['?limit=0', 'limit'],
    ['?limit=-1', 'limit'],
    ['?limit=1e2', 'limit'],
    ['?limit=1.5', 'limit'],
    ['?limit=1&limit=2', 'limit'],
    ['?since=yesterday', 'since'],
    ['?since=2026-02-30', 'since'],
    ['?since=2026-01-01&since=2026-01-02', 'since'],
    ['?type=Not%20A%20Type', 'type'],
    ['?type=*', 'type'],
    ['?nope=1', 'nope'],
  ]
  for (const [query, path] of wrong) {
    const response = await get(query)
    const body = (await response.json()) as { error: string; issues: { path: string }[] }
    expect([query, response.status, body.error, body.issues?.[0]?.path]).toEqual([
      query,
      400,
      'invalid_query',
      path,
    ])
  }
})

test('only a secret key with the scope reads', async () => {
  const refusals: [string, number, string][] = [
    [ingest, 403, 'wrong_key_kind'],
    [await server.key('publishable'), 403, 'wrong_key_kind'],
    [await server.key('secret', { scopes: ['metrics:read'] }), 403, 'wrong_scope'],
    [await server.key('secret', { expiresAtMs: server.clock.now() + 100 }), 401, 'expired_key'],
    ['agtx_sk_nobody', 401, 'invalid_key'],
  ]
  server.clock.move(100)
  for (const [key, status, reason] of refusals) {
    for (const path of ['', '/walk_1']) {
      const response = await get(path, key)
      expect([response.status, ((await response.json()) as { reason: string }).reason]).toEqual([
        status,
        reason,
      ])
    }
  }
  expect((await get('?limit=1', await server.key('secret', { scopes: ['traces:read'] }))).status).toBe(200)
})

test('an unknown event is 404, a wrong method 405 with Allow', async () => {
  expect((await get('/nobody')).status).toBe(404)
  expect((await get('/%zz')).status).toBe(404)
  const put = await server.call('/v1/traces', { method: 'PUT', key: secret })
  expect([put.status, put.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST'])
  const events = await server.call('/v1/sdk/events', { method: 'GET', key: ingest })
  expect([events.status, events.headers.get('allow')]).toEqual([405, 'POST'])
  const head = await server.call('/v1/traces?limit=1', { method: 'HEAD', key: secret })
  expect([head.status, await head.text()]).toEqual([200, ''])
})
