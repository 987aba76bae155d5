/**
 * Every 401 names the expected credentials in WWW-Authenticate: a key for the public API, a session for the dashboard.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { allRoutes, nameOf } from '../support/routes.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer

beforeAll(async () => {
  server = await testServer()
})
afterAll(() => server[Symbol.asyncDispose]())

test('every route that answers 401 names its scheme', async () => {
  const schemes = new Map<string, string | null>()
  for (const route of allRoutes()) {
    const path = route.path.replace(/:\w+/g, 'some-id')
    const response = await server.call(path, { method: route.method })
    await response.body?.cancel()
    if (response.status === 401) schemes.set(nameOf(route), response.headers.get('www-authenticate'))
  }
  const expected = [...schemes.keys()].map((name) => [
    name,
    `${name.includes(' /api/') ? 'Cookie' : 'Bearer'} realm="sightglass"`,
  ])
  expect([...schemes]).toEqual(expected as [string, string][])
  expect(schemes.size).toBeGreaterThan(20)
})

test('a wrong password names its scheme too', async () => {
  const body = { email: 'nobody@example.com', password: 'a guess in the dark' }
  const response = await server.call('/api/sign-in', { body })
  expect([response.status, response.headers.get('www-authenticate')]).toEqual([
    401,
    'Cookie realm="sightglass"',
  ])
})
