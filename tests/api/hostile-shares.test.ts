/** One organization exhausts its share of bodies, responses, exports and streams; another one is still served. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { ServeConfig } from '../../server/runtime/make-services.ts'
import { newId } from '../../server/ids.ts'
import { makeShares } from '../../server/http/shares.ts'
import { mintKey } from '../../server/identity/keys/keys.ts'
import { limits } from '../../server/limits.ts'
import { event } from '../support/events.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { headOf, openStalled, postHead } from '../support/stalled.ts'
import { tempDir } from '../support/temp-dir.ts'

let server: TestServer
/** Of the hostile organization, and of another one. */
let ownKeys: Keys
let otherKeys: Keys

interface Keys {
  ingest: string
  secret: string
}

async function twoOrganizations(config: Partial<ServeConfig> = {}) {
  const server = await testServer({
    rateLimits: { gateway: null, ingest: null, dashboard: null } as never,
    ...config,
  })
  const firstKeys = { ingest: await server.key('ingest'), secret: await server.key('secret') }
  const now = server.clock.now()
  const org = { id: newId('org'), name: 'Other', slug: 'other', createdAtMs: now }
  const audit = {
    id: newId('aud'),
    orgId: org.id,
    actor: 'cli',
    action: 'org.created',
    target: org.id,
    metadata: {},
    occurredAtMs: now,
  }
  await server.store.orgs.create({ org, owner: null, audit } as never)
  const keyOf = async (kind: 'ingest' | 'secret') =>
    (await mintKey(server.store, { orgId: org.id, kind, label: 'x', actor: 'cli' }, server.clock)).secret
  const secondKeys = { ingest: await keyOf('ingest'), secret: await keyOf('secret') }
  const note = 'x'.repeat(60_000)
  for (let from = 0; from < 70; from += 35) {
    const events = Array.from({ length: 35 }, (_, n) => event(`e${from + n}`, { metadata: { note } }))
    const response = await server.call('/v1/sdk/events', { key: firstKeys.ingest, body: { events } })
    expect(response.status).toBe(202)
  }
  return { server, mine: firstKeys, other: secondKeys }
}

beforeAll(async () => {
  ;({ server, mine: ownKeys, other: otherKeys } = await twoOrganizations())
}, 60_000)
afterAll(() => server[Symbol.asyncDispose]())

async function until(holds: () => boolean): Promise<void> {
  for (const endMs = performance.now() + 15_000; !holds(); await Bun.sleep(20))
    if (performance.now() > endMs) throw new Error('it did not come true in 15 s')
}

async function othersAreServed(scenario = { server, other: otherKeys }): Promise<void> {
  const { server, other: neighbourKeys } = scenario
  const body = { events: [event(`of other ${performance.now()}`)] }
  const posted = await server.call('/v1/sdk/events', { key: neighbourKeys.ingest, body })
  const page = await server.call('/v1/traces?limit=5', { key: neighbourKeys.secret })
  const exported = await server.call('/v1/traces', {
    key: neighbourKeys.secret,
    headers: { accept: 'application/x-ndjson' },
  })
  expect([posted.status, page.status, exported.status]).toEqual([202, 200, 200])
  expect(await exported.text()).toContain('_end')
}

test('stalled bodies: those beyond the share get 503 and are cut; another organization is served', async () => {
  const bytes = 7 * 1024 * 1024
  const requestCount = 40
  const stalled = await Promise.all(
    Array.from({ length: requestCount }, () =>
      openStalled(server.url, postHead(ownKeys.ingest, bytes), ' '.repeat(100_000)),
    ),
  )
  const refused = () => stalled.filter(({ text }) => text().startsWith('HTTP/1.1 503'))
  const shares = makeShares(limits.bodiesInFlightBytesMax)
  const fitting = Array.from({ length: requestCount }, () =>
    shares.acquire({ orgId: 'org', holderId: 'key' }, bytes),
  )
  const refusedMany = fitting.filter((share) => share === null).length
  expect(refusedMany).toBeGreaterThan(requestCount / 2)
  await until(() => refused().filter(({ closed }) => closed()).length === refusedMany)
  for (const { text } of refused()) {
    expect(text().toLowerCase()).toMatch(/retry-after: [1-5]/)
    expect(text()).toContain('"error":"overloaded"')
  }
  await othersAreServed()
  for (const stalledRequest of stalled) stalledRequest.end()
  const body = { events: [event('afterwards')] }
  let status = 0
  for (let tries = 0; status !== 202 && tries < 50; tries++, await Bun.sleep(50))
    status = (await server.call('/v1/sdk/events', { key: ownKeys.ingest, body })).status
  expect(status).toBe(202) // a closed connection returns its share
}, 60_000)

test('bodies of unknown length count as they arrive', async () => {
  const piece = 'x'.repeat(500_000)
  const chunk = `${piece.length.toString(16)}\r\n${piece}\r\n`
  const chunked = ['content-type: application/json', 'transfer-encoding: chunked']
  const head = headOf('POST /v1/sdk/events', ownKeys.ingest, ...chunked)
  const stalled = await Promise.all(
    Array.from({ length: 12 }, () => openStalled(server.url, head, chunk.repeat(14))),
  )
  await until(() => stalled.some(({ text }) => text().startsWith('HTTP/1.1 503')))
  await othersAreServed()
  for (const stalledRequest of stalled) stalledRequest.end()
}, 60_000)

test('unread pages: those beyond the share get 503; another organization is served', async () => {
  using folder = tempDir('unread')
  // Over TCP the kernel buffers up to 4 MiB of each connection, a whole page; on a Unix socket 208 KiB.
  const listen = { host: 'localhost', port: 0, unix: join(folder.path, 'listen') }
  const scenario = await twoOrganizations({ listen })
  await using server = scenario.server
  const head = headOf('GET /v1/traces?limit=200', scenario.mine.secret)
  const unread = await Promise.all(
    Array.from({ length: 30 }, () => openStalled(server.url, head, '', { reads: false })),
  )
  let status = 200
  for (const endMs = performance.now() + 15_000; status !== 503 && performance.now() < endMs;) {
    const response = await server.call('/v1/traces?limit=200', { key: scenario.mine.secret })
    status = response.status
    await response.body?.cancel()
  }
  expect(status).toBe(503)
  await othersAreServed(scenario)
  for (const unreadRequest of unread) unreadRequest.end()
}, 60_000)

test('exports: a key has a quarter of them', async () => {
  const head = headOf('GET /v1/traces', ownKeys.secret, 'accept: application/x-ndjson')
  const unread = await Promise.all(
    Array.from({ length: limits.exportsMax }, () => openStalled(server.url, head, '', { reads: false })),
  )
  const headers = { accept: 'text/csv' }
  const refused = await server.call('/v1/traces', { key: ownKeys.secret, headers })
  expect([refused.status, await refused.json()]).toMatchObject([503, { error: 'overloaded' }])
  const audit = await server.call('/v1/audit/export', { key: ownKeys.secret, body: {} })
  expect(audit.status).toBe(503)
  await othersAreServed()
  for (const unreadRequest of unread) unreadRequest.end()
}, 60_000)

test('streams: an account has a quarter of them', async () => {
  const cookie = await server.signIn('viewer')
  const second = await server.signIn('analyst')
  const aborts: AbortController[] = []
  const open: Response[] = [] // a response that is garbage-collected closes its connection
  const stream = async (sessionCookie: string) => {
    const abort = new AbortController()
    aborts.push(abort)
    const response = await fetch(`${server.url}/api/live`, {
      headers: { cookie: sessionCookie },
      signal: abort.signal,
    })
    open.push(response)
    return response.status
  }
  let opened = 0
  while ((await stream(cookie)) === 200) opened++
  expect(opened).toBe(limits.liveStreamsMax / 4)
  expect(await stream(second)).toBe(200)
  for (const abort of aborts) abort.abort()
}, 60_000)
