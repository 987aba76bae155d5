/** A tab that filters a shared stream gets what the server's filter would send; also after a break. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { matchesFilter } from '../../web/live/hub.ts'
import type { EventFilter, EventProvenance, ReceivedEvent, TraceEvent } from '../../web/api/event-shapes.ts'
import { event } from '../support/events.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let cookie: string
let sentEvents: ReceivedEvent[]
let start = ''

const pick = <T>(list: readonly T[], n: number): T => list[n % list.length] as T

beforeAll(async () => {
  server = await testServer()
  const key = await server.key('ingest')
  cookie = await server.signIn('viewer')
  start = await position()
  const ahead = server.clock.now() + 2 * 3_600_000
  const events = Array.from({ length: 240 }, (_, n) =>
    event(`m${n}`, {
      // Every fortieth has a clock two hours ahead, and counts at its arrival.
      occurredAt: new Date(n % 40 === 39 ? ahead : Date.UTC(2026, 5, 1) + n * 60_000).toISOString(),
      siteId: pick(['shop', 'blog'], n >> 2),
      sessionId: pick(['s1', 's2', 's3'], n),
      type: pick(['authz.evaluated', 'authz.policies_set', 'tool.executed', 'tool'], n >> 1),
      outcome: pick(['success', 'blocked', 'error'], n >> 3),
      tool: pick([null, '', 'cart.add'], n),
      agent: pick(
        [
          { verdict: 'verified', name: 'GPTBot' },
          null,
          { class: 'dom', vendor: '', trust: null },
          { vendor: 'OpenAI', name: 'GPTBot' },
          { purpose: 'x' },
        ],
        n >> 2,
      ),
      policy: pick([null, { decision: 'review' }, { decision: '' }, {}], n),
      metadata: pick([null, { protocol: 'bearer' }, { subject: 'ann', protocol: 5 }, {}], n >> 1),
    }),
  )
  const answer = await server.call('/v1/sdk/events', { key, body: { events } })
  const { errors = [] } = (await answer.json()) as { errors?: { id?: string }[] }
  const refused = new Set(errors.map(({ id }) => id))
  const receivedAt = new Date(server.clock.now()).toISOString()
  const newest = (await ask<{ events: ReceivedEvent[] }>('/api/events?limit=1')).events[0]
  const keyId = newest?.record?.key ?? null
  expect(keyId).toStartWith('key_')
  sentEvents = (events as unknown as TraceEvent[])
    .filter(({ id }) => !refused.has(id))
    .map((event) => ({ receivedAt, event, record: recordOf(event, keyId, receivedAt) }))
})
afterAll(() => server[Symbol.asyncDispose]())

/** What the appliance records of an event that a key sent with its own verdict, or without one. */
function recordOf({ agent }: TraceEvent, key: string | null, receivedAt: string): EventProvenance {
  const verdict = typeof agent?.verdict === 'string' ? agent.verdict : null
  const judgedBy = verdict === null ? null : ('sender' as const)
  return {
    door: 'events',
    key,
    receivedAt,
    verdict,
    judgedBy,
    observedBy: null,
    evidence: null,
    network: null,
  }
}

async function ask<T>(path: string): Promise<T> {
  const answer = await fetch(server.url + path, { headers: { cookie } })
  expect([path, answer.status]).toEqual([path, 200])
  return (await answer.json()) as T
}

const position = async (): Promise<string> => (await ask<{ live: string }>('/api/events?limit=1')).live

interface Missed {
  events: { event: TraceEvent }[]
  position: string
  more: boolean
  ahead: boolean
}

const isoIn = (ms: number) => new Date(Date.now() + ms).toISOString()
const createFilter = (...pairs: [string, string][]): EventFilter => ({
  types: [],
  outcomes: [],
  where: pairs.map(([name, value]) => ({ name, value })),
})
const filters: EventFilter[] = [
  createFilter(),
  { types: ['tool.*'], outcomes: [] },
  { types: ['tool', 'authz.evaluated'], outcomes: ['error', 'blocked'] },
  createFilter(['siteId', 'blog'], ['sessionId', 's1'], ['sessionId', 's3']),
  createFilter(['vendor', '']),
  createFilter(['vendor', 'OpenAI'], ['trust', '']),
  createFilter(['name', 'GPTBot']),
  createFilter(['name', ''], ['purpose', 'x']),
  createFilter(['agentClass', 'dom']),
  createFilter(['class', 'dom'], ['agentClass', '']),
  createFilter(['tool', ''], ['tool', 'cart.add']),
  createFilter(['tool', 'CART.ADD']),
  createFilter(['protocol', 'bearer']),
  createFilter(['protocol', ''], ['subject', '']),
  createFilter(['subject', 'ann']),
  createFilter(['verdict', 'verified'], ['judgedBy', 'sender']),
  createFilter(['judgedBy', '']),
  createFilter(['judgedBy', 'appliance'], ['judgedBy', 'unknown']),
  createFilter(['door', 'events'], ['observedBy', '']),
  createFilter(['door', 'syslog'], ['door', '']),
  createFilter(['key', '']),
  createFilter(['network', '192.0.2.0/24']),
  ...['allow', 'deny', 'review', ''].map((decision) => createFilter(['decision', decision])),
  createFilter(['since', '2026-06-01T01:00:00Z'], ['until', '2026-06-01T02:00:30Z']),
  createFilter(['since', isoIn(-600_000)], ['until', isoIn(3_600_000)]),
  createFilter(['since', isoIn(3_600_000)]),
]

test.each(filters)('%j', async (filter) => {
  const params = new URLSearchParams({ after: start, to: await position() })
  for (const type of filter.types) params.append('type', type)
  for (const outcome of filter.outcomes) params.append('outcome', outcome)
  for (const { name, value } of filter.where ?? []) params.append(name, value)
  const { events, more: hasMore, ahead } = await ask<Missed>(`/api/live/missed?${params}`)
  const expected = sentEvents
    .filter((sentEvent) => matchesFilter(filter, sentEvent))
    .map((sentEvent) => sentEvent.event.id)
  expect(events.map((missedEvent) => missedEvent.event.id)).toEqual(expected)
  expect([hasMore, ahead]).toEqual([false, false])
})

test('a position beyond the end of the log returns nothing and reports it', async () => {
  const end = await position()
  const missedUrl = (afterCursor: string, to: string) =>
    `/api/live/missed?${new URLSearchParams({ after: afterCursor, to })}`
  expect(await ask<Missed>(missedUrl(start, start))).toMatchObject({ events: [], more: false, ahead: false })
  expect(await ask<Missed>(missedUrl(end, start))).toMatchObject({ events: [], more: false, ahead: true })
  for (const query of ['', '?after=x&to=y', `?after=${encodeURIComponent(start)}`]) {
    const answer = await fetch(`${server.url}/api/live/missed${query}`, { headers: { cookie } })
    expect(answer.status).toBe(400)
  }
})
