/** OpenTelemetry requests of many spans: large bodies, long traces, and more sites than an organization can have. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { decoded, encoded, toolSpans, tracesRequest, type Json } from '../support/otlp.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let ingest: string
let secret: string

beforeAll(async () => {
  server = await testServer()
  ingest = await server.key('ingest')
  secret = await server.key('secret')
})
afterAll(() => server[Symbol.asyncDispose]())

function post(body: unknown, { key = ingest, headers = {} } = {}) {
  const type = { 'content-type': 'application/x-protobuf' }
  return server.call('/v1/traces', { method: 'POST', key, body, headers: { ...type, ...headers } })
}

async function totalOf(siteId: string): Promise<number> {
  const metrics = await server.call(`/v1/metrics?siteId=${siteId}`, { key: secret })
  return ((await metrics.json()) as { total: number }).total
}

async function health(): Promise<{ keys: Json[]; otlp: { scopes: Json[] } }> {
  const response = await server.call('/api/ingest/health', {
    headers: { cookie: await server.signIn('owner') },
  })
  return (await response.json()) as { keys: Json[]; otlp: { scopes: Json[] } }
}

const spanIdOf = (n: number) => (n + 1).toString(16).padStart(16, '0')

test('a body of 12 MiB is stored in several transactions and counts as one request', async () => {
  const spans = toolSpans(6_000, { padding: 'p'.repeat(2_000) })
  const key = await server.key('ingest', { label: 'large' })
  const bytes = encoded('Traces', tracesRequest(spans, 'large'))
  expect(bytes.length).toBeGreaterThan(12_000_000)
  expect((await post(bytes, { key })).status).toBe(200)
  expect(await totalOf('large')).toBe(6_000)
  const { keys, otlp } = await health()
  expect(keys.find(({ label }) => label === 'large')).toMatchObject({ requests: 1, accepted: 6_000 })
  expect(otlp.scopes).toMatchObject([{ scope: 'test', mapped: 6_000, refused: 0 }])
})

test('one of 64 MiB with 20,000 spans of one trace is stored, one byte more is refused', async () => {
  const bytesMax = 64 * 1024 * 1024
  const traceId = 'f'.repeat(32)
  // Each is the parent of the one before, and the first of the last: a circle.
  const spans = toolSpans(20_000).map((span, n) => {
    return { ...span, traceId, parentSpanId: spanIdOf((n + 1) % 20_000) }
  })
  const bytes = encoded('Traces', tracesRequest(spans, 'whole'))
  const body = Buffer.alloc(bytesMax)
  body.set(bytes)
  // An unknown field of the request is the rest.
  const remainingBytes = bytesMax - bytes.length - 5
  const length = [0, 7, 14, 21].map((shift) => ((remainingBytes >> shift) & 127) | (shift < 21 ? 128 : 0))
  body.set([15 * 8 + 2, ...length], bytes.length)
  const response = await post(body)
  expect([response.status, (await response.bytes()).length]).toEqual([200, 0])
  expect(await totalOf('whole')).toBe(20_000)
  const story = await server.call(`/v1/sessions/${traceId}`, { key: secret })
  expect(await story.json()).toMatchObject({ session: { events: 10_000, truncated: true } })

  const larger = Buffer.alloc(bytesMax + 1)
  for (let offset = 0; offset < bytesMax; offset += 4_096)
    crypto.getRandomValues(larger.subarray(offset, offset + 128))
  const headers = { 'content-encoding': 'gzip' }
  expect((await post(gzipSync(larger, { level: 1 }), { headers })).status).toBe(413)
}, 30_000)

test('one that is malformed at its end stores nothing', async () => {
  for (const count of [3, 5_000]) {
    const spans = toolSpans(count, { padding: 'p'.repeat(2_000) })
    const bytes = encoded('Traces', tracesRequest(spans, `broken${count}`))
    expect((await post(bytes.subarray(0, -1))).status).toBe(400)
    expect(await totalOf(`broken${count}`)).toBe(0)
  }
})

test('spans that the store refuses count as refused by their scope', async () => {
  const send = async (siteId: string) => {
    const spans = Array.from({ length: 600 }, (_, n) => ({
      ...toolSpans(1, { 'sightglass.site.id': `${siteId}-${n}` })[0]!,
      spanId: spanIdOf(n),
    }))
    const response = await post(encoded('Traces', tracesRequest(spans, siteId, 'sites')))
    return decoded('Answer', await response.bytes()) as {
      partialSuccess?: { rejected: string; errorMessage: string }
    }
  }
  expect(await send('first')).toEqual({})
  const { partialSuccess } = await send('second')
  expect(partialSuccess!.errorMessage).toContain('siteId an organization can have at most 1000 distinct')
  const refused = Number(partialSuccess!.rejected)
  expect(refused).toBeGreaterThan(200)
  expect((await health()).otlp.scopes.find(({ scope }) => scope === 'sites')).toEqual({
    scope: 'sites',
    mapped: 1_200 - refused,
    modelCalls: 0,
    leftOut: 0,
    refused,
  })
})
