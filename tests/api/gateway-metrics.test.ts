/** GET /v1/metrics equals a recount of the accepted events, in the running hour and after resends and late events. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { MetricsAnswer } from '../../server/api/metrics/routes.ts'
import { event, type TestEvent } from '../support/events.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let ingest: string
let secret: string
const accepted = new Map<string, TestEvent>()

beforeAll(async () => {
  server = await testServer()
  ingest = await server.key('ingest')
  secret = await server.key('secret')
})
afterAll(() => server[Symbol.asyncDispose]())

/** The first event with an id wins. One more than 5 minutes ahead counts at its arrival (contract §6). */
async function send(events: TestEvent[]): Promise<void> {
  const now = Date.now()
  const response = await server.call('/v1/sdk/events', { key: ingest, body: { events } })
  expect(response.status).toBe(202)
  for (const sentEvent of events) {
    const isAhead = Date.parse(sentEvent.occurredAt) > now + 5 * 60_000
    const counted = isAhead ? { ...sentEvent, occurredAt: new Date(now).toISOString() } : sentEvent
    if (!accepted.has(sentEvent.id)) accepted.set(sentEvent.id, counted)
  }
}

async function metrics(query = ''): Promise<MetricsAnswer> {
  const response = await server.call(`/v1/metrics${query}`, { key: secret })
  expect([query, response.status]).toEqual([query, 200])
  return (await response.json()) as MetricsAnswer
}

const hourOf = (time: string) => `${new Date(time).toISOString().slice(0, 13)}:00:00.000Z`

/** The same response, counted event by event. */
function recount(
  since: string,
  until: string | null,
  siteIds: string[] | null,
): Omit<MetricsAnswer, 'truncated'> {
  const counted = [...accepted.values()].filter((sentEvent) => {
    const hour = hourOf(sentEvent.occurredAt)
    return hour >= since && (until === null || hour < until) && (siteIds?.includes(sentEvent.siteId) ?? true)
  })
  const countBy = (readKey: (sentEvent: TestEvent) => string) => {
    const counts: { [key: string]: number } = {}
    for (const sentEvent of counted) counts[readKey(sentEvent)] = (counts[readKey(sentEvent)] ?? 0) + 1
    return counts
  }
  const orgId = server.org.id
  const rows = Object.entries(
    countBy(({ occurredAt, siteId, type, outcome }) =>
      JSON.stringify([hourOf(occurredAt), siteId, type, outcome]),
    ),
  )
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, count]) => {
      const [bucketStart, siteId, type, outcome] = JSON.parse(key) as [string, string, string, string]
      return { orgId, siteId, bucketStart, type, outcome, count }
    })
  return {
    since,
    until,
    total: counted.length,
    byType: countBy((sentEvent) => sentEvent.type),
    byOutcome: countBy((sentEvent) => sentEvent.outcome),
    byHour: Object.entries(countBy((sentEvent) => hourOf(sentEvent.occurredAt)))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([hour, count]) => ({ hour, count })),
    rows,
  }
}

const types = ['agent.detected', 'tool.executed', 'authz.evaluated']
const outcomes = ['success', 'blocked']
const batch = (prefix: string, count: number, startMs: number, stepMs: number) =>
  Array.from({ length: count }, (_, n) =>
    event(`${prefix}${n}`, {
      occurredAt: new Date(startMs + n * stepMs).toISOString(),
      type: types[n % 3]!,
      outcome: outcomes[n % 2]!,
      siteId: `site-${n % 4}`,
    }),
  )

test('an empty organization has counts of zero', async () => {
  expect(await metrics()).toMatchObject({ until: null, total: 0, byType: {}, byHour: [], rows: [] })
})

test('equal to a recount: running hour, resends, late and future events, every range and site', async () => {
  const now = Date.now()
  await send(batch('now_', 300, now - 60_000, 100))
  await send(batch('old_', 500, now - 20 * 86_400_000, 3_000_000))
  await send(batch('now_', 300, now - 40_000_000, 100)) // resent with other times: the first wins
  await send(batch('future_', 50, now + 86_400_000, 60_000))
  await send([...batch('twice_', 10, now, 1), ...batch('twice_', 10, now - 9_000_000, 1)])
  const start = hourOf(new Date(now - 30 * 86_400_000).toISOString())
  const { since, ...otherFields } = await metrics()
  expect(Math.abs(Date.parse(since) - Date.parse(start))).toBeLessThanOrEqual(3_600_000)
  expect({ since, ...otherFields }).toEqual(recount(since, null, null))
  const [from, to] = [now - 3 * 86_400_000 + 1_234_567, now - 3_600_000].map((ms) =>
    new Date(ms).toISOString(),
  ) as [string, string]
  expect(await metrics(`?since=${from}&until=${to}`)).toEqual(recount(hourOf(from), hourOf(to), null))
  expect(await metrics(`?since=${from}&siteId=site-1&siteId=site-3&siteId=nobody`)).toEqual(
    recount(hourOf(from), null, ['site-1', 'site-3']),
  )
})

test('an accepted event counts in the next query', async () => {
  const { total } = await metrics()
  for (let round = 1; round <= 20; round++) {
    await send([event(`round_${round}`, { occurredAt: new Date().toISOString() })])
    expect((await metrics()).total).toBe(total + round)
  }
})

test('invalid parameters are named, other keys are rejected', async () => {
  for (const [query, path] of [
    ['?since=soon', 'since'],
    ['?until=2026-02-30', 'until'],
    ['?since=2026-01-01&since=2026-01-02', 'since'],
    ['?type=tool.executed', 'type'],
    ['?limit=5', 'limit'],
  ]) {
    const response = await server.call(`/v1/metrics${query}`, { key: secret })
    const body = (await response.json()) as { error: string; issues: { path: string }[] }
    expect([query, response.status, body.error, body.issues[0]?.path]).toEqual([
      query,
      400,
      'invalid_query',
      path,
    ])
  }
  expect((await server.call('/v1/metrics', { key: ingest })).status).toBe(403)
  const tracesOnly = await server.key('secret', { scopes: ['traces:read'] })
  expect((await server.call('/v1/metrics', { key: tracesOnly })).status).toBe(403)
})
