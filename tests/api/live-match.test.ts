/** A tab that filters a shared stream gets what the server's filter would send; also after a break. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { matchesFilter } from '../../web/live/hub.ts'
import type { EventFilter, EventProvenance, ReceivedEvent, TraceEvent } from '../../web/api/event-shapes.ts'
import { event } from '../support/events.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let cookie: string
let sent: ReceivedEvent[]
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
  sent = (events as unknown as TraceEvent[])
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
const where = (...pairs: [string, string][]): EventFilter => ({
  types: [],
  outcomes: [],
  where: pairs.map(([name, value]) => ({ name, value })),
})
const filters: EventFilter[] = [
  where(),
  { types: ['tool.*'], outcomes: [] },
  { types: ['tool', 'authz.evaluated'], outcomes: ['error', 'blocked'] },
  where(['siteId', 'blog'], ['sessionId', 's1'], ['sessionId', 's3']),
  where(['vendor', '']),
  where(['vendor', 'OpenAI'], ['trust', '']),
  where(['name', 'GPTBot']),
  where(['name', ''], ['purpose', 'x']),
  where(['agentClass', 'dom']),
  where(['class', 'dom'], ['agentClass', '']),
  where(['tool', ''], ['tool', 'cart.add']),
  where(['tool', 'CART.ADD']),
  where(['protocol', 'bearer']),
  where(['protocol', ''], ['subject', '']),
  where(['subject', 'ann']),
  where(['verdict', 'verified'], ['judgedBy', 'sender']),
  where(['judgedBy', '']),
  where(['judgedBy', 'appliance'], ['judgedBy', 'unknown']),
  where(['door', 'events'], ['observedBy', '']),
  where(['door', 'syslog'], ['door', '']),
  where(['key', '']),
  where(['network', '192.0.2.0/24']),
  ...['allow', 'deny', 'review', ''].map((decision) => where(['decision', decision])),
  where(['since', '2026-06-01T01:00:00Z'], ['until', '2026-06-01T02:00:30Z']),
  where(['since', isoIn(-600_000)], ['until', isoIn(3_600_000)]),
  where(['since', isoIn(3_600_000)]),
]

test.each(filters)('%j', async (filter) => {
  const params = new URLSearchParams({ after: start, to: await position() })
  for (const type of filter.types) params.append('type', type)
  for (const outcome of filter.outcomes) params.append('outcome', outcome)
  for (const { name, value } of filter.where ?? []) params.append(name, value)
  const { events, more, ahead } = await ask<Missed>(`/api/live/missed?${params}`)
  const expected = sent.filter((one) => matchesFilter(filter, one)).map((one) => one.event.id)
  expect(events.map((one) => one.event.id)).toEqual(expected)
  expect([more, ahead]).toEqual([false, false])
})

test('a position beyond the end of the log returns nothing and reports it', async () => {
  const end = await position()
  const both = (after: string, to: string) => `/api/live/missed?${new URLSearchParams({ after, to })}`
  expect(await ask<Missed>(both(start, start))).toMatchObject({ events: [], more: false, ahead: false })
  expect(await ask<Missed>(both(end, start))).toMatchObject({ events: [], more: false, ahead: true })
  for (const query of ['', '?after=x&to=y', `?after=${encodeURIComponent(start)}`]) {
    const answer = await fetch(`${server.url}/api/live/missed${query}`, { headers: { cookie } })
    expect(answer.status).toBe(400)
  }
})
