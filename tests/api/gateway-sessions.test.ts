/** GET /v1/sessions and /v1/sessions/{id} against a naive model, paged to the end while new events arrive. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { event, type TestEvent } from '../support/events.ts'
import { testServer, type TestServer } from '../support/server.ts'

interface Session {
  id: string
  siteIds: string[]
  firstSeenAt: string
  lastSeenAt: string
  events: number
  agent: { class: string | null; vendor: string | null; trust: string | null }
  byPillar: { [pillar: string]: number }
  byOutcome: { [outcome: string]: number }
}

let server: TestServer
let ingest: string
let secret: string

const startMs = Date.UTC(2026, 5, 1)
const trusts = ['detected', 'declared', null, 'verified', 'odd']

/** 90 sessions whose events interleave, some with equal times, and arrive out of order. */
const sentEvents: TestEvent[] = Array.from({ length: 1_350 }, (_, n) => {
  const session = (n * 7) % 90
  return event(`s_${n}`, {
    sessionId: `session/${session}`,
    siteId: n % 5 === 0 ? 'blog' : 'shop',
    occurredAt: new Date(startMs + ((n * 613) % 1_350) * 500).toISOString(),
    type: ['agent.detected', 'authz.evaluated', 'tool.executed'][n % 3]!,
    outcome: ['success', 'blocked'][n % 2]!,
    agent: { class: `class${n % 4}`, vendor: `vendor${n % 7}`, trust: trusts[(n + session) % 5] },
  })
})

beforeAll(async () => {
  server = await testServer()
  ingest = await server.key('ingest')
  secret = await server.key('secret')
  for (let offset = 0; offset < sentEvents.length; offset += 500)
    await send(sentEvents.slice(offset, offset + 500))
})
afterAll(() => server[Symbol.asyncDispose]())

async function send(events: TestEvent[]): Promise<void> {
  expect((await server.call('/v1/sdk/events', { key: ingest, body: { events } })).status).toBe(202)
}

async function read<T>(path: string): Promise<T> {
  const response = await server.call(path, { key: secret })
  expect([path, response.status]).toEqual([path, 200])
  return (await response.json()) as T
}

async function walk(query = '', onPage = async () => {}): Promise<Session[]> {
  const sessions: Session[] = []
  let address = `/v1/sessions?limit=7&${query}`
  for (;;) {
    const page = await read<{ sessions: Session[]; nextCursor: string | null }>(address)
    sessions.push(...page.sessions)
    if (page.nextCursor === null) return sessions
    await onPage()
    address = `/v1/sessions?limit=7&cursor=${page.nextCursor}`
  }
}

type Timed = TestEvent & { at: number; arrival: number }
const timed = (events: TestEvent[]): Timed[] =>
  events
    .map((sentEvent, arrival) => ({ ...sentEvent, at: Date.parse(sentEvent.occurredAt), arrival }))
    .sort((a, b) => a.at - b.at || a.arrival - b.arrival)

function modelOf(id: string): Session {
  const sessionEvents = timed(sentEvents).filter((timedEvent) => timedEvent.sessionId === id)
  const countBy = (readKey: (timedEvent: Timed) => string) => {
    const counts: { [key: string]: number } = {}
    for (const timedEvent of sessionEvents)
      counts[readKey(timedEvent)] = (counts[readKey(timedEvent)] ?? 0) + 1
    return counts
  }
  const height = (timedEvent: Timed) =>
    ['detected', 'declared', 'verified', 'linked'].indexOf(timedEvent.agent.trust ?? '')
  const best = sessionEvents.reduce((bestEvent, timedEvent) =>
    height(timedEvent) >= height(bestEvent) ? timedEvent : bestEvent,
  )
  return {
    id,
    siteIds: [...new Set(sessionEvents.map((timedEvent) => timedEvent.siteId))],
    firstSeenAt: sessionEvents[0]!.occurredAt,
    lastSeenAt: sessionEvents.at(-1)!.occurredAt,
    events: sessionEvents.length,
    agent: { class: best.agent.class, vendor: best.agent.vendor, trust: best.agent.trust },
    byPillar: countBy((timedEvent) => timedEvent.type.split('.')[0]!),
    byOutcome: countBy((timedEvent) => timedEvent.outcome),
  }
}

/** Ids by their newest matching event, newest first. */
function order(matches: (sentEvent: TestEvent) => boolean): string[] {
  return [
    ...new Set(
      timed(sentEvents)
        .filter(matches)
        .toReversed()
        .map((timedEvent) => timedEvent.sessionId),
    ),
  ]
}

test('every session exactly once, newest first, with its summary, while new ones arrive', async () => {
  let round = 0
  const arrive = () =>
    send([
      event(`late_${round++}`, {
        sessionId: 'session/89',
        siteId: 'late',
        occurredAt: '2027-01-01T00:00:00Z',
      }),
    ])
  const sessions = await walk('siteId=shop&siteId=blog', arrive)
  expect(sessions.map((session) => session.id)).toEqual(order(() => true))
  for (const session of sessions) {
    if (session.id === 'session/89') continue // it was on an earlier page
    expect(session).toEqual(modelOf(session.id))
  }
})

test('filters match sessions by any of their events; the counts cover all their events', async () => {
  const blogSessions = await walk('siteId=blog&type=tool.*&outcome=blocked')
  expect(blogSessions.map((session) => session.id)).toEqual(
    order(
      (sentEvent) =>
        sentEvent.siteId === 'blog' && sentEvent.type === 'tool.executed' && sentEvent.outcome === 'blocked',
    ),
  )
  expect(blogSessions.find((session) => session.id !== 'session/89')).toEqual(
    modelOf(blogSessions.find((session) => session.id !== 'session/89')!.id),
  )
  expect(await walk('vendor=nobody')).toEqual([])
})

test('one session: its events from the first to the last, page by page', async () => {
  const sessionEvents = timed(sentEvents).filter((timedEvent) => timedEvent.sessionId === 'session/3')
  const ids: string[] = []
  let address = `/v1/sessions/${encodeURIComponent('session/3')}?limit=4`
  for (;;) {
    const page = await read<{ session: Session; events: TestEvent[]; nextCursor: string | null }>(address)
    expect(page.session).toEqual(modelOf('session/3'))
    ids.push(...page.events.map((pageEvent) => pageEvent.id))
    if (page.nextCursor === null) break
    await send([event(`after_${ids.length}`, { sessionId: 'session/3', occurredAt: '2027-01-01T00:00:00Z' })])
    address = `/v1/sessions/${encodeURIComponent('session/3')}?limit=4&cursor=${page.nextCursor}`
  }
  expect(ids).toEqual(sessionEvents.map((timedEvent) => timedEvent.id))
})

test('invalid requests are rejected', async () => {
  const statusOf = async (path: string, key = secret) => (await server.call(path, { key })).status
  expect(await statusOf('/v1/sessions/nobody')).toBe(404)
  const { nextCursor } = await read<{ nextCursor: string }>('/v1/sessions?limit=1&siteId=shop')
  const story = await read<{ nextCursor: string }>('/v1/sessions/session%2F5?limit=1')
  for (const path of [
    `/v1/sessions?cursor=${nextCursor}&siteId=blog`,
    `/v1/sessions/session%2F5?cursor=${nextCursor}`,
    `/v1/sessions/session%2F6?cursor=${story.nextCursor}`,
    `/v1/traces?cursor=${nextCursor}`,
    '/v1/sessions?q=x&since=2026-01-01',
    '/v1/sessions?sessionId=x',
    '/v1/sessions?limit=0',
  ])
    expect([path, await statusOf(path)]).toEqual([path, 400])
  expect(await statusOf('/v1/sessions', ingest)).toBe(403)
})
