/** A page has at most 4 MiB, and the next one continues without a gap. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { event } from '../support/events.ts'
import { testServer, type TestServer } from '../support/server.ts'

const bytesMax = 4 * 1024 * 1024
const count = 90
let server: TestServer
let secret: string
const ids: string[] = []

beforeAll(async () => {
  server = await testServer()
  const ingest = await server.key('ingest')
  secret = await server.key('secret')
  // Three bytes per character, because the limit counts bytes sent.
  const note = 'は'.repeat(20_000)
  for (let from = 0; from < count; from += 30) {
    const events = Array.from({ length: 30 }, (_, n) => {
      const occurredAt = new Date(Date.now() - (count - from - n) * 1_000).toISOString()
      return event(`e${from + n}`, { sessionId: 'one', occurredAt, metadata: { note } })
    })
    expect((await server.call('/v1/sdk/events', { key: ingest, body: { events } })).status).toBe(202)
    ids.push(...events.map(({ id }) => id))
  }
}, 60_000)
afterAll(() => server[Symbol.asyncDispose]())

async function walk(path: string): Promise<{ ids: string[]; bytes: number[] }> {
  const walkedIds: string[] = []
  const bytes: number[] = []
  for (let cursor = ''; ;) {
    const response = await server.call(`${path}${cursor}`, { key: secret })
    const text = await response.text()
    bytes.push(Buffer.byteLength(text))
    const page = JSON.parse(text) as { events: { id: string }[]; nextCursor: string | null }
    expect(page.events.length).toBeGreaterThan(0)
    walkedIds.push(...page.events.map(({ id }) => id))
    if (page.nextCursor === null) return { ids: walkedIds, bytes }
    cursor = `&cursor=${page.nextCursor}`
  }
}

test.each([
  ['traces', '/v1/traces?limit=200', () => ids.toReversed()],
  ['one session', '/v1/sessions/one?limit=200', () => ids],
])('%s', async (_, path, expected) => {
  const walkResult = await walk(path)
  expect(walkResult.ids).toEqual(expected())
  expect(Math.max(...walkResult.bytes)).toBeLessThanOrEqual(bytesMax)
  expect(Math.max(...walkResult.bytes)).toBeGreaterThan(bytesMax / 2)
  expect(walkResult.bytes.length).toBe(2)
})

test('a search, whose page also ends when its time is up', async () => {
  const walkResult = await walk('/v1/traces?limit=200&since=2026-01-01&q=%E3%81%AF')
  expect(walkResult.ids).toEqual(ids.toReversed())
  expect(Math.max(...walkResult.bytes)).toBeLessThanOrEqual(bytesMax)
  expect(walkResult.bytes.length).toBeGreaterThanOrEqual(2)
})
