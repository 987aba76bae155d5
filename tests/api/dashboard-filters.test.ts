/** Filters and retention: hourly counts outlive their events; other counts report how much may be missing. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { sharedTypes } from '../../server/counts/period.ts'
import type { AnalyticsCounts } from '../../server/counts/shapes.ts'
import { event } from '../support/events.ts'
import { person, type Person } from '../support/people.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let viewer: Person
const events = 12

beforeAll(async () => {
  server = await testServer()
  viewer = await person(server, server.org, 'viewer')
  const occurredAt = new Date(server.clock.now() - 3 * 3_600_000).toISOString()
  const body = {
    events: Array.from({ length: events }, (_, n) =>
      event(`e${n}`, {
        occurredAt,
        outcome: n % 3 === 0 ? 'blocked' : 'success',
        type: n % 2 === 0 ? 'agent.detected' : 'tool.executed',
        agent: { class: 'dom', trust: 'detected', vendor: n < 4 ? 'Old' : 'Older' },
      }),
    ),
  }
  const key = await server.key('ingest')
  expect((await server.call('/v1/sdk/events', { key, body })).status).toBe(202)
})
afterAll(() => server[Symbol.asyncDispose]())

async function counted(filters: string) {
  const {
    all: allCounts,
    period,
    tools,
    vendors,
  } = (await (await viewer.call(`/api/analytics?range=24h${filters}`)).json()) as AnalyticsCounts
  const sum = (rows: { count: number }[]) => rows.reduce((total, { count }) => total + count, 0)
  return [allCounts.count, sum(vendors.rows), sum(tools.rows), period.expired, period.complete]
}

const outcome = '&filter=outcome:blocked'
const type = '&filter=type:tool.*'
const vendor = '&filter=vendor:Old'

test('type and outcome have complete counts after retention; a vendor reports how many may be missing', async () => {
  // Vendors are counted in visits, the unit of this site, or in the one type that the filter names.
  const expected = { outcome: [4, 2, 2, 0, true], type: [6, 6, 6, 0, true], both: [2, 2, 2, 0, true] }
  const expectedBefore = { ...expected, vendor: [4, 2, 2, 0, true] }
  const countAll = async () => ({
    outcome: await counted(outcome),
    type: await counted(type),
    both: await counted(outcome + type),
    vendor: await counted(vendor),
  })
  expect(await countAll()).toEqual(expectedBefore as never)
  const receivedBeforeMs = server.clock.now() + 1_000
  while (!(await server.store.events.expire({ orgId: server.org.id, receivedBeforeMs })).done);
  expect(await countAll()).toEqual({ ...expected, vendor: [0, 0, 0, 4, true] } as never)
  expect(await counted('&filter=vendor:nobody')).toEqual([0, 0, 0, 0, true])
})

test('types of a page and of a filter: the narrower of each pair', () => {
  expect(sharedTypes(undefined, undefined)).toBeNull()
  expect(sharedTypes(['a.b'], undefined)).toEqual(['a.b'])
  expect(sharedTypes(['a.b', 'c.d'], ['a.*'])).toEqual(['a.b'])
  expect(sharedTypes(['a.*'], ['a.b', 'a.b.*', 'b.*'])).toEqual(['a.b', 'a.b.*'])
  expect(sharedTypes(['a.b'], ['a.bc', 'ab.*'])).toEqual([])
})
