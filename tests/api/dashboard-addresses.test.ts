/** The dashboard's pages; unknown addresses answer 404, to a browser as a page, otherwise as JSON. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { entryPaths, routes } from '../../web/routes.ts'
import { startAppliance, type Appliance } from '../support/binary.ts'

let appliance: Appliance
beforeAll(async () => {
  appliance = await startAppliance({})
}, 120_000)
afterAll(() => appliance.stop())

const browser = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

async function request(
  path: string,
  method = 'GET',
  accept = browser,
): Promise<[status: number, type: string, body: string]> {
  const answer = await fetch(appliance.url + path, { method, headers: { accept } })
  return [answer.status, answer.headers.get('content-type')?.split(';')[0] ?? '', await answer.text()]
}

test('the server serves the pages of the dashboard’s router and the sign-in pages', async () => {
  for (const { path } of routes) {
    const otherStatus = routes.some((route) => route.path === `${path}x`) ? 200 : 404
    for (const [address, status] of [
      [path, 200],
      [`${path}/below`, 200],
      [`${path}x`, otherStatus],
    ] as const)
      expect([address, (await request(address))[0]]).toEqual([address, status])
  }
  for (const path of ['/', ...entryPaths, '/settings/api-keys'])
    expect((await request(path)).slice(0, 2)).toEqual([200, 'text/html'])
})

test('an unknown page is the dashboard’s, with status 404, and is never cached', async () => {
  const [status, type, body] = await request('/nowhere/at/all')
  expect([status, type]).toEqual([404, 'text/html'])
  expect(body).toBe((await request('/'))[2])
  const again = await fetch(`${appliance.url}/nowhere`, {
    headers: { accept: browser, 'if-none-match': (await fetch(appliance.url)).headers.get('etag') ?? '' },
  })
  expect([again.status, again.headers.get('cache-control'), again.headers.get('etag')]).toEqual([
    404,
    'no-store',
    null,
  ])
  expect(again.headers.get('content-security-policy')).toContain("default-src 'none'")
  expect((await request('/nowhere', 'HEAD')).slice(0, 2)).toEqual([404, 'text/html'])
})

test('a program that requests an unknown page gets the usual error', async () => {
  for (const accept of ['*/*', 'application/json', '']) {
    const [status, type, body] = await request('/nowhere/at/all', 'GET', accept)
    expect([accept, status, type]).toEqual([accept, 404, 'application/json'])
    expect(JSON.parse(body)).toMatchObject({ error: 'not_found', requestId: expect.stringMatching(/^req_/) })
    // An existing page is a page for programs too, because health checks of proxies request it.
    expect((await request('/logs', 'GET', accept)).slice(0, 2)).toEqual([200, 'text/html'])
  }
})

test('below /api and /v1, for files, and for other methods it is JSON', async () => {
  for (const path of [
    '/api',
    '/api/nothing',
    '/v1',
    '/v1/nothing/here',
    '/missing.js',
    '/assets/x.css',
    '/%ff',
  ]) {
    const [status, type, body] = await request(path)
    expect([path, status, type]).toEqual([path, 404, 'application/json'])
    expect(JSON.parse(body)).toMatchObject({ error: 'not_found' })
  }
  expect((await request('/nowhere', 'POST')).slice(0, 2)).toEqual([404, 'application/json'])
})
