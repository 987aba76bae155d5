/** Common to every response: ids, headers, 404 and 405, health, the ingest listener, stopping. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { event } from '../support/events.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer

beforeAll(async () => {
  server = await testServer({ ingestListen: { host: '127.0.0.1', port: 0 } })
})
afterAll(() => server[Symbol.asyncDispose]())

test('health: alive with a version, ready with its five checks', async () => {
  expect(await (await server.call('/healthz')).json()).toEqual({
    status: 'ok',
    version: expect.stringMatching(/^\d+\./),
  })
  const ready = (await (await server.call('/readyz')).json()) as { checks: { name: string; ok: boolean }[] }
  expect(ready.checks.map(({ name, ok }) => [name, ok])).toEqual([
    ['store', true],
    ['disk', true],
    ['queue', true],
    ['memory', true],
    ['jobs', true],
  ])
})

test('an unknown address is 404 JSON, and every response has the common headers', async () => {
  for (const path of ['/nope.txt', '/v1/nope', '/api/nope', '/v1/sdk/', '/assets/../../etc/passwd.txt']) {
    const response = await server.call(path)
    expect([path, response.status]).toEqual([path, 404])
    expect(await response.json()).toMatchObject({
      error: 'not_found',
      requestId: response.headers.get('x-request-id'),
    })
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
  }
})

test('every route answers another method with 405 and its allowed methods', async () => {
  const cases: [string, string, string][] = [
    ['DELETE', '/v1/sdk/events', 'POST'],
    ['POST', '/v1/limits', 'GET, HEAD'],
    ['GET', '/api/sign-in', 'POST'],
    ['PATCH', '/api/keys', 'GET, HEAD, POST'],
    ['OPTIONS', '/healthz', 'GET, HEAD'],
  ]
  for (const [method, path, allow] of cases) {
    const response = await server.call(path, { method })
    expect([method, path, response.status, response.headers.get('allow')]).toEqual([method, path, 405, allow])
  }
})

test('the ingest listener serves only ingest, limits and health', async () => {
  const status = async (path: string, init: RequestInit = {}) =>
    (await fetch(server.ingestUrl + path, init)).status
  const key = await server.key('ingest')
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ events: [event('by ingest listener')] })
  expect(await status('/v1/sdk/events', { method: 'POST', headers, body })).toBe(202)
  expect(await status('/v1/limits')).toBe(200)
  expect(await status('/healthz')).toBe(200)
  expect(await status('/readyz')).toBe(200)
  for (const path of ['/', '/v1/traces', '/api/setup', '/sign-in', '/v1/sdkx', '/metrics'])
    expect([path, await status(path)]).toEqual([path, 404])
})

test('a full disk rejects ingest with 507 and still serves reads', async () => {
  await using full = await testServer({ diskFloorBytes: 2 ** 60 })
  const answer = await full.call('/v1/sdk/events', {
    key: await full.key('ingest'),
    body: { events: [event('x')] },
  })
  expect([answer.status, ((await answer.json()) as { error: string }).error]).toEqual([507, 'storage_full'])
  expect((await full.call('/v1/traces', { key: await full.key('secret') })).status).toBe(200)
  expect((await full.call('/readyz')).status).toBe(503)
})
