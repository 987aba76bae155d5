/** Events with a time in the future: stored unchanged, and listed by their arrival (contract §1, §6, §7). */
import { expect, test } from 'bun:test'
import { event } from '../support/events.ts'
import { testServer } from '../support/server.ts'

interface Answer {
  events: { id: string; occurredAt: string }[]
  sessions: { id: string; firstSeenAt: string; lastSeenAt: string }[]
  nextCursor: string | null
  total: number
  byHour: { hour: string; count: number }[]
}

test('an event far in the future counts at its arrival everywhere, and is returned unchanged', async () => {
  await using server = await testServer()
  const ingest = await server.key('ingest')
  const secret = await server.key('secret')
  const nowMs = server.clock.now()
  const iso = (aheadMs: number) => new Date(nowMs + aheadMs).toISOString()
  const post = (...events: object[]) => server.call('/v1/sdk/events', { key: ingest, body: { events } })
  const response = await post(
    event('far', { occurredAt: '2200-12-31T23:59:59.999Z', sessionId: 'far' }),
    event('beyond', { occurredAt: '2201-01-01T00:00:00Z' }),
    event('past', { occurredAt: iso(-60_000), sessionId: 'past' }),
    event('slightly', { occurredAt: iso(4 * 60_000), sessionId: 'slightly' }),
    event('ahead', { occurredAt: iso(10 * 60_000), sessionId: 'far' }),
  )
  expect(await response.json()).toMatchObject({
    accepted: 4,
    rejected: 1,
    errors: [{ index: 1, path: 'occurredAt', code: 'wrong_format' }],
  })
  server.clock.move(30_000)
  await post(event('later', { occurredAt: iso(30_000), sessionId: 'later' }))

  const read = async (path: string) => (await (await server.call(path, { key: secret })).json()) as Answer
  const ids = async (path: string) => (await read(path)).events.map(({ id }) => id)
  const order = ['slightly', 'later', 'ahead', 'far', 'past']
  expect(await ids('/v1/traces')).toEqual(order)
  const walked: string[] = []
  for (let address = '/v1/traces?limit=1'; ;) {
    const page = await read(address)
    walked.push(...page.events.map(({ id }) => id))
    if (page.nextCursor === null) break
    address = `/v1/traces?limit=1&cursor=${page.nextCursor}`
  }
  expect(walked).toEqual(order)
  expect((await read('/v1/traces/far')) as unknown).toMatchObject({ occurredAt: '2200-12-31T23:59:59.999Z' })

  const until = encodeURIComponent(iso(60_000))
  expect(await ids(`/v1/traces?until=${until}`)).toEqual(['later', 'ahead', 'far', 'past'])
  expect(await ids(`/v1/traces?since=${until}`)).toEqual(['slightly'])
  const sessions = (await read('/v1/sessions')).sessions
  expect(sessions.map(({ id }) => id)).toEqual(['slightly', 'later', 'far', 'past'])
  const far = sessions.find(({ id }) => id === 'far')!
  expect(Date.parse(far.lastSeenAt)).toBeLessThan(nowMs + 60_000)
  const metrics = await read('/v1/metrics')
  expect(metrics.total).toBe(5)
  expect(metrics.byHour.every(({ hour }) => Date.parse(hour) <= nowMs + 4 * 60_000)).toBe(true)
  expect((await read(`/v1/metrics?until=${encodeURIComponent(iso(2 * 3_600_000))}`)).total).toBe(5)
}, 90_000)
