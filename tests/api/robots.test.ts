/** The robots.txt of sites over HTTP: versions with what changed, who set them, limits, and a test of a new text. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { makeBatch, makeEvent } from '../store/make.ts'
import { person, type Person } from '../support/people.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let admin: Person
let viewer: Person
beforeAll(async () => {
  server = await testServer()
  admin = await person(server, server.org, 'admin')
  viewer = await person(server, server.org, 'viewer')
}, 90_000)
afterAll(() => server[Symbol.asyncDispose]())

async function json(answer: Promise<Response>, status = 200): Promise<{ [name: string]: unknown }> {
  const response = await answer
  const body = await response.text()
  expect([response.status, body]).toEqual([status, expect.any(String)])
  return JSON.parse(body) as { [name: string]: unknown }
}

const old = 'User-agent: *\nDisallow: /a\nContent-Usage: train-ai=n\n'
const changed = 'User-agent: *\nDisallow: /b\nContent-Usage: train-ai=n\nnonsense\n'

test('a version is shown with its text, its notes and what changed', async () => {
  expect(await json(admin.call('/api/robots'))).toEqual({ sites: [] })
  const first = await json(
    admin.post('/api/robots', { siteId: 'shop', text: old, from: '2026-11-01T00:00:00Z' }),
  )
  expect(first).toMatchObject({
    state: 'stored',
    version: 1,
    from: '2026-11-01T00:00:00.000Z',
    rules: 1,
    ignored: 0,
    unmatched: 0,
  })
  await json(admin.post('/api/robots', { siteId: 'shop', text: changed }))
  expect(await json(admin.post('/api/robots', { siteId: 'shop', text: changed }))).toMatchObject({
    state: 'same',
  })
  const { versions } = (await json(admin.call('/api/robots/shop'))) as { versions: unknown[] }
  expect(versions).toMatchObject([
    { version: 2, until: null, setBy: `user:${admin.id}`, setByName: admin.email },
    { version: 1, from: '2026-11-01T00:00:00.000Z', until: expect.any(String) },
  ])
  expect(await json(admin.call('/api/robots/shop/versions/2'))).toMatchObject({
    text: changed,
    rules: 1,
    ignored: 1,
    before: 1,
    changes: {
      added: 2,
      removed: 1,
      list: [
        { kind: 'removed', line: 2, text: 'Disallow: /a' },
        { kind: 'added', line: 2, text: 'Disallow: /b' },
        { kind: 'added', line: 4, text: 'nonsense' },
      ],
    },
    notes: [
      { line: 3, kind: 'content-usage', products: ['*'], text: 'train-ai=n' },
      { line: 4, kind: 'ignored', text: 'nonsense' },
    ],
  })
  expect(await json(admin.call('/api/robots/shop/versions/1'))).toMatchObject({ before: null, changes: null })
  // A viewer sees no members.
  const robotsView = (await json(viewer.call('/api/robots'))) as { sites: unknown[] }
  expect(robotsView.sites).toMatchObject([{ siteId: 'shop', version: 2, setByName: null }])
  await json(viewer.post('/api/robots', { siteId: 'shop', text: '' }), 403)
})

test('a text is tested without being stored', async () => {
  const requestFields = {
    occurredAtMs: server.clock.now() - 1_000,
    siteId: 'shop',
    type: 'agent.requested',
    name: 'GPTBot',
  }
  const events = ['/a', '/b', '/b/1'].map((page) => makeEvent(`req ${page}`, { ...requestFields, page }))
  await server.store.events.append({ ...makeBatch(server.org.id, events), receivedAtMs: server.clock.now() })
  const result = await json(
    viewer.post('/api/robots/test', { siteId: 'shop', text: 'User-agent: *\nDisallow: /b' }),
  )
  expect(result).toMatchObject({ requests: 3, disallowed: 2, wasDisallowed: 0, complete: true, rules: 1 })
  expect(await json(viewer.call('/api/robots/shop/versions/2'))).toMatchObject({ text: changed })
})

test('invalid input is refused with its field', async () => {
  const wrong = async (body: unknown) => {
    const refused = (await json(admin.post('/api/robots', body), 400)) as {
      issues?: { path: string; code: string }[]
    }
    return refused.issues?.map(({ path, code }) => `${path} ${code}`)
  }
  const siteId = 'shop'
  expect(await wrong({ siteId })).toEqual(['text wrong_type'])
  expect(await wrong({ siteId: '', text: '' })).toEqual(['siteId wrong_format'])
  expect(await wrong({ siteId: 'a'.repeat(201), text: '' })).toEqual(['siteId wrong_format'])
  expect(await wrong({ siteId, text: '', from: 'noon' })).toEqual(['from wrong_format'])
  expect(await wrong({ siteId, text: '', from: '2199-01-01T00:00:00Z' })).toEqual(['from wrong_format'])
  expect(await wrong({ siteId, text: '', more: 1 })).toEqual(['more unknown'])
  expect(await wrong({ siteId, text: 'é'.repeat(256_001) })).toEqual(['text too_long'])
  await json(admin.post('/api/robots', { siteId, text: 'x'.repeat(4 * 1024 * 1024) }), 413)
  await json(admin.post('/api/robots', { siteId, text: 'x', from: '2026-11-01T00:00:00Z' }), 409)
  for (const path of ['/api/robots/none', '/api/robots/shop/versions/9', '/api/robots/shop/versions/x'])
    await json(admin.call(path), 404)
})

test('lines that a drain sends are judged by the version in force', async () => {
  const key = await server.key('ingest')
  const requests = [Date.UTC(2026, 9, 31, 12), Date.UTC(2026, 10, 1, 12)]
  const lines = requests.map((ms) => {
    const time = new Date(ms).toISOString()
    return JSON.stringify({
      time_iso8601: time,
      request: 'GET /a/1 HTTP/1.1',
      status: '200',
      http_user_agent: 'GPTBot/1.2',
    })
  })
  const headers = { 'content-type': 'application/x-ndjson' }
  const body = lines.map((line) => `${line}\n`).join('')
  await json(server.call('/v1/sdk/access-logs?siteId=shop', { key, body, headers }), 202)
  const secret = await server.key('secret')
  const traces = await json(
    server.call('/v1/traces?type=agent.requested&robots=disallowed&siteId=shop', { key: secret }),
  )
  expect(traces['events']).toMatchObject([
    {
      occurredAt: '2026-11-01T12:00:00.000Z',
      agent: { robots: 'disallowed', robotsRule: { version: 1, from: '2026-11-01T00:00:00.000Z', line: 2 } },
    },
  ])
})

test('Detect counts the requests by each agent by what robots.txt said, also under a filter', async () => {
  const range = 'since=2026-10-01T00:00:00Z&until=2026-11-02T00:00:00Z'
  expect(await json(viewer.call(`/api/detect/claims?${range}`))).toMatchObject({
    agents: [{ name: { name: 'GPTBot' }, requests: 2, disallowed: 1 }],
  })
  const disallowed = await json(viewer.call(`/api/detect/claims?${range}&filter=robots:disallowed`))
  expect(disallowed['agents']).toMatchObject([{ requests: 1, disallowed: 1 }])
  const breakdown = await json(viewer.call(`/api/breakdown?${range}&by=robots&type=agent.requested`))
  expect(breakdown['rows']).toMatchObject([{ value: 'disallowed', count: 1 }])
})
