/**
 * A database that goes away and comes back: every route answers 503 with Retry-After or needs no database, the process
 * lives on, and nothing that was acknowledged is lost.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { StoreError } from '../../db/contract/errors.ts'
import { storeOver } from '../../db/sql/store/store.ts'
import { openThreads } from '../../db/sqlite/threads/threads.ts'
import { openDataFolder } from '../../server/runtime/open-data-folder.ts'
import type { Threads } from '../../db/sql/store/threads.ts'
import { allRoutes, nameOf } from '../support/routes.ts'
import { testServer, type TestServer } from '../support/server.ts'

setDefaultTimeout(90_000)

/** Verbs that still answer while the database is away; null: it is there. */
let answering: RegExp | null = null
let server: TestServer
let ended = false
const keys = { ingest: '', secret: '' }
let cookie = ''

beforeAll(async () => {
  server = await testServer({}, 'quick', { open: openFailing })
  void server.failed.then(() => (ended = true))
  keys.ingest = await server.key('ingest')
  keys.secret = await server.key('secret')
  cookie = await server.signIn('owner')
})
afterAll(() => server[Symbol.asyncDispose]())

/** Fails where the threads of an engine report that their database does not answer. */
async function openFailing(...[folder, clock]: Parameters<typeof openDataFolder>) {
  await (await openDataFolder(folder, clock)).close() // creates the first organization
  const opening = { folder, now: clock.now(), mayMigrate: true, acceptLoss: false }
  const threads = await openThreads({ ...opening, readers: 2, readDeadlineMs: 10_000 })
  const failing = (verb: string) =>
    answering === null || answering.test(verb)
      ? null
      : Promise.reject(new StoreError('unavailable', 'connection refused'))
  const away: Threads = {
    ...threads,
    write: (verb, command) => failing(verb) ?? threads.write(verb, command),
    read: (verb, query) => failing(verb) ?? threads.read(verb, query),
    append: (batches) => failing('append') ?? threads.append(batches),
  }
  return storeOver(away)
}

const post = (id: string) => {
  const event = { id, siteId: 's', sessionId: 'x', type: 'agent.detected', outcome: 'success' }
  const body = { events: [{ ...event, occurredAt: new Date().toISOString(), agent: { class: 'crawler' } }] }
  return server.call('/v1/sdk/events', { key: keys.ingest, body })
}

/** Calls a route as somebody who may use it, with whatever body. */
function callRoute({ method, path }: { method: string; path: string }): Promise<Response> {
  const key = path.startsWith('/v1/sdk/') ? keys.ingest : keys.secret
  const headers = path.startsWith('/v1/') ? {} : { cookie, origin: server.url }
  return server.call(path.replace(/:\w+/g, 'some_id'), {
    method,
    headers,
    ...(path.startsWith('/v1/') ? { key } : {}),
    ...(['GET', 'HEAD', 'DELETE'].includes(method) ? {} : { body: {} }),
  })
}

/** The routes that answered 503. Any other answer must be one that needs no database. */
async function unavailableRoutes(): Promise<string[]> {
  const routeNames: string[] = []
  for (const route of allRoutes()) {
    if (route.path === '/readyz') continue
    const response = await callRoute(route)
    const name = nameOf(route)
    if (response.status === 503) {
      expect([name, response.headers.get('retry-after')]).toEqual([name, '1'])
      const { error, message } = (await response.json()) as { error: string; message: string }
      expect([name, error, message]).toEqual([
        name,
        'unavailable',
        'The database did not answer. Try again in a second.',
      ])
      routeNames.push(name)
    } else {
      await response.body?.cancel()
      expect([name, response.status < 500]).toEqual([name, true])
    }
  }
  return routeNames
}

test('before: events are stored and the server is ready', async () => {
  expect((await post('before')).status).toBe(202)
  expect((await server.call('/readyz')).status).toBe(200)
})

test('every route, also behind a sign-in or a key that is found', async () => {
  answering = /^(signIns|keys)\./
  const routeNames = await unavailableRoutes()
  answering = /^$/
  const ofAll = await unavailableRoutes()
  answering = null
  expect(routeNames).toContain('PATCH /api/webhooks/endpoints/:id')
  expect(routeNames).toContain('GET /v1/traces')
  expect(routeNames.length).toBeGreaterThan(30)
  expect(ofAll.length).toBeGreaterThan(routeNames.length)
  expect(ended).toBe(false)
})

test('ingest answers 503, /readyz says why, and both work again when the database is back', async () => {
  answering = /^$/
  const refused = await post('during')
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
  expect(await refused.json()).toMatchObject({ error: 'unavailable' })
  const ready = await server.call('/readyz')
  expect([ready.status, await ready.json()]).toMatchObject([
    503,
    { error: 'not_ready', message: 'store: the store does not respond' },
  ])
  expect((await server.call('/healthz')).status).toBe(200)
  answering = null
  expect((await post('during')).status).toBe(202)
  expect((await server.call('/readyz')).status).toBe(200)
  const total = async () => (await server.store.events.overview(server.org.id)).total
  expect(await total()).toBe(2)
  expect(ended).toBe(false)
})
