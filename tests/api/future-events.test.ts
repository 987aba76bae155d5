/** Events whose clock stands in the future: kept and ordered as they say (contract §1, §6), and left out by `until`. */
import { expect, test } from 'bun:test'
import { event } from '../support/events.ts'
import { testServer } from '../support/server.ts'

interface Answer {
  events: { id: string }[]
  sessions: { id: string }[]
  total: number
}

test('an event of the year 2200 stands first, one of 2201 is refused, and `until` leaves the future out', async () => {
  await using server = await testServer()
  const ingest = await server.key('ingest')
  const secret = await server.key('secret')
  const now = new Date(server.clock.now()).toISOString()
  const events = [
    event('far', { occurredAt: '2200-12-31T23:59:59.999Z', sessionId: 'far' }),
    event('now', { occurredAt: now, sessionId: 'now' }),
    event('beyond', { occurredAt: '2201-01-01T00:00:00Z' }),
  ]
  const sent = await server.call('/v1/sdk/events', { key: ingest, body: { events } })
  expect(await sent.json()).toMatchObject({
    accepted: 2,
    rejected: 1,
    errors: [{ index: 2, path: 'occurredAt', code: 'wrong_format' }],
  })
  await server.call('/v1/sdk/events', { key: ingest, body: { events: [event('late', { occurredAt: now })] } })

  const read = async (path: string) => (await (await server.call(path, { key: secret })).json()) as Answer
  const ids = async (path: string) => (await read(path)).events.map(({ id }) => id)
  expect(await ids('/v1/traces')).toEqual(['far', 'late', 'now'])
  const until = new Date(Date.parse(now) + 3_600_000).toISOString()
  expect(await ids(`/v1/traces?until=${until}`)).toEqual(['late', 'now'])
  expect((await read('/v1/sessions')).sessions.map(({ id }) => id)).toEqual(['far', 'sess_1', 'now'])
  expect((await read(`/v1/sessions?until=${until}`)).sessions.map(({ id }) => id)).toEqual(['sess_1', 'now'])
  expect((await read('/v1/metrics')).total).toBe(3)
  expect((await read(`/v1/metrics?until=${until}`)).total).toBe(2)
}, 90_000)
