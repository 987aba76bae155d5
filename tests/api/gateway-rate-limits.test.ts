/** Rate limits over HTTP: per key, per address, before and after the key is known, with their headers. */
import { expect, test } from 'bun:test'
import { event } from '../support/events.ts'
import { startAppliance } from '../support/binary.ts'
import { testServer } from '../support/server.ts'

const perMinute = (count: number) => ({ count, windowMs: 60_000 })

test('a key may send its burst, then gets 429 with the time to wait', async () => {
  await using server = await testServer({ rateLimits: { gateway: perMinute(5), ingest: null } })
  const key = await server.key('secret')
  const answers: [number, string | null][] = []
  for (let n = 0; n < 7; n++) {
    const response = await server.call('/v1/traces', { key })
    answers.push([response.status, response.headers.get('ratelimit')])
    expect(response.headers.get('ratelimit-policy')).toStartWith('"address";q=5;w=60')
  }
  expect(answers.map(([status]) => status)).toEqual([200, 200, 200, 200, 200, 429, 429])
  expect(answers[0]![1]).toBe('"address";r=4;t=12, "key";r=4;t=12')
  const refused = await server.call('/v1/traces', { key })
  const body = (await refused.json()) as { error: string; requestId: string }
  expect([refused.status, body.error]).toEqual([429, 'rate_limited'])
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(11)
  server.clock.move(12_000)
  expect((await server.call('/v1/traces', { key })).status).toBe(200)
})

test('the address is limited before route and key are checked; other pages are not limited', async () => {
  await using server = await testServer({ rateLimits: { gateway: perMinute(3), ingest: null } })
  const status = async (path: string) => (await server.call(path)).status
  expect([await status('/v1/traces'), await status('/v1/nothing'), await status('/v1/limits')]).toEqual([
    401, 404, 200,
  ])
  expect([await status('/v1/traces'), await status('/v1/nothing'), await status('/v1/limits')]).toEqual([
    429, 429, 429,
  ])
  expect([await status('/healthz'), await status('/api/session')]).toEqual([200, 401])
})

test('each key has its own limit', async () => {
  await using server = await testServer({
    rateLimits: { gateway: perMinute(4), ingest: null },
    trustedProxies: ['127.0.0.0/8'],
  })
  const one = await server.key('secret')
  const other = await server.key('secret')
  const from = (key: string, address: string) =>
    server.call('/v1/traces', { key, headers: { 'x-forwarded-for': address } }).then(({ status }) => status)
  const usedCounts: number[] = []
  for (let n = 0; n < 5; n++) usedCounts.push(await from(one, `192.0.2.${n}`))
  expect(usedCounts).toEqual([200, 200, 200, 200, 429])
  expect(await from(other, '192.0.2.9')).toBe(200)
})

test('ingest has no limit by default, and can have one', async () => {
  await using server = await testServer({
    rateLimits: { gateway: perMinute(1), ingest: { count: 2, windowMs: 1_000 } },
  })
  const key = await server.key('ingest')
  const post = (id: string) => server.call('/v1/sdk/events', { key, body: { events: [event(id)] } })
  const answers = [await post('a'), await post('b'), await post('c')]
  expect(answers.map(({ status }) => status)).toEqual([202, 202, 429])
  server.clock.move(1_000)
  expect(await (await post('c')).json()).toEqual({ ok: true, accepted: 1, deduped: 0 }) // nothing was stored before
})

test('the executable: the gateway’s default limit is 1200/m', async () => {
  await using server = await startAppliance({
    args: ['--rate-limit-gateway', '2/h', '--rate-limit-ingest=off'],
  })
  const statuses: number[] = []
  for (let n = 0; n < 3; n++) statuses.push((await fetch(`${server.url}/v1/traces`)).status)
  expect(statuses).toEqual([401, 401, 429])
  const config = JSON.parse((await server.cli('config', '--json')).stdout) as unknown
  expect(JSON.stringify(config)).toContain('1200/m')
  const wrong = await server.cli('serve', '--rate-limit-gateway', 'fast')
  expect([wrong.code, wrong.stderr]).toEqual([
    2,
    'sightglass: --rate-limit-gateway: "fast" is not a limit like 50/s, 1200/m or 10000/h, or off\n',
  ])
})
