/** The gateway client: pages, retries and streams. */
import { afterEach, expect, test } from 'bun:test'
import {
  type FakeAppliance,
  problem,
  secretKey,
  startFakeAppliance,
} from '../../tests/support/fake-appliance.ts'
import type { IntelError } from '../wire/retry.ts'
import { createGateway } from './gateway.ts'

const running: FakeAppliance[] = []
afterEach(async () => {
  for (const appliance of running.splice(0)) await appliance.stop()
})

function setUp() {
  const appliance = startFakeAppliance()
  running.push(appliance)
  return { appliance, gateway: createGateway({ url: appliance.url, secretKey }) }
}

test('traces follow all pages, with filters first and the cursor after', async () => {
  const { appliance, gateway } = setUp()
  const pages: { [path: string]: unknown } = {
    '/v1/traces?limit=200&type=authz.*&outcome=blocked&outcome=error&since=1970-01-01T00%3A00%3A00.000Z': {
      events: [{ id: 'a' }, { id: 'b' }],
      nextCursor: 'c/1',
    },
    '/v1/traces?limit=200&cursor=c%2F1': { events: [], nextCursor: 'c2' },
    '/v1/traces?limit=200&cursor=c2': { events: [{ id: 'c' }], nextCursor: null },
  }
  appliance.fault = ({ path }) => Response.json(pages[path] ?? { unexpected: path })
  const ids: string[] = []
  const query = { type: 'authz.*', outcome: ['blocked', 'error'], since: new Date(0) }
  for await (const event of gateway.traces(query)) ids.push(event.id)
  expect(ids).toEqual(['a', 'b', 'c'])
  expect(appliance.requests.every(({ headers }) => headers['authorization'] === `Bearer ${secretKey}`)).toBe(
    true,
  )
})

test('breaking out of the loop requests no more pages', async () => {
  const { appliance, gateway } = setUp()
  appliance.fault = () => Response.json({ events: [{ id: 'a' }], nextCursor: 'more' })
  for await (const event of gateway.traces()) {
    expect(event.id).toBe('a')
    break
  }
  expect(appliance.requests.length).toBe(1)
})

test('a page is retried while the appliance is busy, so no event is skipped', async () => {
  const { appliance, gateway } = setUp()
  let calls = 0
  appliance.fault = () =>
    ++calls === 2
      ? problem(503, 'overloaded')
      : Response.json({ events: [{ id: calls }], nextCursor: calls > 2 ? null : 'x' })
  const ids: unknown[] = []
  for await (const event of gateway.traces()) ids.push(event.id)
  expect(ids).toEqual([1, 3])
})

test('metrics and the audit log', async () => {
  const { appliance, gateway } = setUp()
  appliance.fault = ({ path }) =>
    path.startsWith('/v1/metrics')
      ? Response.json({ total: 3 })
      : Response.json({ entries: [{ id: 'aud_1' }], count: 1 })
  expect((await gateway.metrics({ since: '2026-11-01', siteId: 'shop' })).total).toBe(3)
  expect(appliance.requests[0]?.path).toBe('/v1/metrics?since=2026-11-01&siteId=shop')
  expect(await gateway.exportAudit({ action: 'site.renamed' })).toMatchObject([{ id: 'aud_1' }])
  expect(appliance.requests[1]).toMatchObject({ path: '/v1/audit/export', body: { action: 'site.renamed' } })
})

test('request counts of access logs', async () => {
  const { appliance, gateway } = setUp()
  appliance.fault = () => Response.json({ byKind: { agent: { requests: 7, bytes: 9 } } })
  expect((await gateway.requests({ since: '2026-11-01' })).byKind.agent.requests).toBe(7)
  expect(appliance.requests[0]?.path).toBe('/v1/requests?since=2026-11-01')
})

test('Explore, with several filters', async () => {
  const { appliance, gateway } = setUp()
  const totals = { events: 3, total: 41.5, steps: [41.5], error: 0.02 }
  appliance.fault = () => Response.json({ measure: 'p95', rows: [{ value: 'pro', ...totals }], all: totals })
  const query = { measure: 'p95', by: 'metadata.plan', filter: ['tool:pay', 'outcome:'], rows: 5 } as const
  const exploration = await gateway.explore({
    ...query,
    filter: [...query.filter],
    since: new Date(0),
    step: 'day',
  })
  expect(exploration.rows[0]).toMatchObject({ value: 'pro', total: 41.5 })
  expect(appliance.requests[0]?.path).toBe(
    '/v1/explore?measure=p95&by=metadata.plan&filter=tool%3Apay&filter=outcome%3A&rows=5' +
      '&since=1970-01-01T00%3A00%3A00.000Z&step=day',
  )
})

test('CSV is streamed, and an error response rejects with its status', async () => {
  const { appliance, gateway } = setUp()
  appliance.fault = ({ body }) =>
    body['format'] === 'csv' && body['raw'] === true ? new Response('id,orgId\n') : problem(403, 'forbidden')
  expect(await new Response(await gateway.exportAuditCsv({ raw: true })).text()).toBe('id,orgId\n')
  const error = await gateway.exportAuditCsv().catch((failure: IntelError) => failure)
  expect(error).toMatchObject({ name: 'IntelError', status: 403 })
})

test('a response of another shape is an error, not an empty result', async () => {
  const { appliance, gateway } = setUp()
  appliance.fault = () => Response.json({ hello: 'world' })
  expect(
    await gateway
      .traces()
      .next()
      .catch((failure: IntelError) => failure.message),
  ).toMatch(/not a page/)
  expect(await gateway.exportAudit().catch((failure: IntelError) => failure.message)).toMatch(
    /not an audit export/,
  )
  expect(await gateway.explore().catch((failure: IntelError) => failure.message)).toMatch(
    /not an answer of Explore/,
  )
})
