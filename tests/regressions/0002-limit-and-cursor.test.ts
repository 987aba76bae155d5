/** Any page limit above the maximum means the largest page. A cursor with an extra character is rejected. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { event } from '../support/events.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let secret: string

beforeAll(async () => {
  server = await testServer()
  secret = await server.key('secret')
  const events = Array.from({ length: 3 }, (_, index) => event(`limit-${index}`))
  await server.call('/v1/sdk/events', { key: await server.key('ingest'), body: { events } })
})
afterAll(() => server[Symbol.asyncDispose]())

const lists = ['/v1/traces', '/v1/sessions', '/v1/webhooks', '/v1/tools', '/v1/memory']

test('a limit above the maximum means the largest page, however many digits it has', async () => {
  for (const list of lists) {
    for (const limit of ['201', '9'.repeat(16), '9'.repeat(400), '0'.repeat(30) + '7']) {
      const { status } = await server.call(`${list}?limit=${limit}`, { key: secret })
      expect([list, limit, status]).toEqual([list, limit, 200])
    }
    for (const limit of ['0', '0'.repeat(20), '-1', '1.0', '1e3', ' 1']) {
      const { status } = await server.call(`${list}?limit=${encodeURIComponent(limit)}`, { key: secret })
      expect([list, limit, status]).toEqual([list, limit, 400])
    }
  }
})

test('a cursor with any character added, removed or changed is rejected', async () => {
  const page = await server.call('/v1/traces?limit=1', { key: secret })
  const { nextCursor } = (await page.json()) as { nextCursor: string }
  const cursors = [...'AQgw_'].map((last) => nextCursor + last)
  cursors.push(nextCursor.slice(0, -1), `${nextCursor}=`, `A${nextCursor}`, ` ${nextCursor}`)
  for (const cursor of cursors) {
    const { status } = await server.call(`/v1/traces?cursor=${encodeURIComponent(cursor)}`, { key: secret })
    expect([cursor, status]).toEqual([cursor, 400])
  }
  expect((await server.call(`/v1/traces?cursor=${nextCursor}`, { key: secret })).status).toBe(200)
})
