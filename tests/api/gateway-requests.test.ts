/** GET /v1/requests and its dashboard twin: exact counts of access logs by hour, site and kind. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { RequestsAnswer } from '../../server/api/requests/routes.ts'
import { linesBatch, someLog } from '../store/access-log-cases.ts'
import { noon } from '../store/make.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let secret: string

beforeAll(async () => {
  server = await testServer()
  secret = await server.key('secret')
  const orgId = server.org.id
  await server.store.events.append(linesBatch(orgId, someLog, 0, 8))
  await server.store.events.append(linesBatch(orgId, someLog, 0, 4, { siteId: 'blog', source: 'log_b' }))
})
afterAll(() => server[Symbol.asyncDispose]())

async function requests(query: string): Promise<RequestsAnswer> {
  const response = await server.call(`/v1/requests${query}`, { key: secret })
  expect([query, response.status]).toEqual([query, 200])
  return (await response.json()) as RequestsAnswer
}

const iso = (ms: number): string => new Date(ms).toISOString()
const timeBefore = iso(noon - 3_600_000)

test('counts by kind, hour and site of the whole time', async () => {
  expect(await requests('?since=2026-01-01')).toEqual({
    since: '2026-01-01T00:00:00.000Z',
    until: null,
    byKind: {
      agent: { requests: 3, bytes: 600 },
      person: { requests: 3, bytes: 900 },
      asset: { requests: 2, bytes: 400 },
      bot: { requests: 2, bytes: 600 },
    },
    byHour: [
      { hour: timeBefore, agent: 0, person: 3, asset: 0, bot: 2 },
      { hour: iso(noon), agent: 3, person: 0, asset: 2, bot: 0 },
    ],
    bySite: [
      { siteId: 'blog', agent: 1, person: 1, asset: 1, bot: 1 },
      { siteId: 'shop', agent: 2, person: 2, asset: 1, bot: 1 },
    ],
  })
})

test('a range and sites select hours and sites; without a range it is the last 30 days', async () => {
  const hour = await requests(`?since=${timeBefore}&until=${iso(noon)}&siteId=shop`)
  expect([hour.byHour, hour.bySite.map(({ siteId }) => siteId)]).toEqual([
    [{ hour: timeBefore, agent: 0, person: 2, asset: 0, bot: 1 }],
    ['shop'],
  ])
  expect((await requests('?since=2026-01-01&siteId=none')).byKind.person).toEqual({ requests: 0, bytes: 0 })
  const recent = await requests('')
  const days = (Date.now() - Date.parse(recent.since)) / 86_400_000
  expect(days).toBeGreaterThan(29.9)
})

test('the dashboard reads the same; wrong parameters and keys are refused', async () => {
  const headers = { cookie: await server.signIn('viewer') }
  const response = await server.call('/api/requests?since=2026-01-01', { headers })
  expect((await response.json()) as RequestsAnswer).toEqual(await requests('?since=2026-01-01'))
  const refused = async (path: string, key?: string): Promise<[number, string]> => {
    const answer = await server.call(path, key === undefined ? {} : { key })
    const { error, issues } = (await answer.json()) as { error: string; issues?: { path: string }[] }
    return [answer.status, issues?.[0]?.path ?? error]
  }
  expect(await refused('/v1/requests?since=yesterday', secret)).toEqual([400, 'since'])
  expect(await refused('/v1/requests?kind=agent', secret)).toEqual([400, 'kind'])
  expect(await refused('/v1/requests', await server.key('ingest'))).toEqual([403, 'forbidden'])
  const tracesOnly = await server.key('secret', { scopes: ['traces:read'] })
  expect(await refused('/v1/requests', tracesOnly)).toEqual([403, 'forbidden'])
  expect(await refused('/v1/requests')).toEqual([401, 'unauthorized'])
})
