/** The exporter against an appliance that fails in every possible way. */
import { afterEach, expect, test } from 'bun:test'
import type { CompleteEvent } from '../client/event.ts'
import type { Problem } from '../client/problem.ts'
import { edgePlatform } from '../platform/edge-platform.ts'
import { nodePlatform } from '../platform/node-platform.ts'
import { tempDir } from '../../tests/support/temp-dir.ts'
import { until } from '../../tests/support/until.ts'
import {
  type FakeAppliance,
  ingestKey,
  problem,
  startFakeAppliance,
} from '../../tests/support/fake-appliance.ts'
import { startIntelExporter, type IntelExporter, type IntelExporterOptions } from './intel-exporter.ts'

const open: { close(timeoutMs?: number): Promise<unknown> }[] = []
const running: FakeAppliance[] = []
afterEach(async () => {
  for (const exporter of open.splice(0)) await exporter.close(0)
  for (const appliance of running.splice(0)) await appliance.stop()
})

function setUp(options: Partial<IntelExporterOptions> = {}, platform = nodePlatform) {
  const appliance = startFakeAppliance()
  running.push(appliance)
  const problems: Problem[] = []
  const exporter = startIntelExporter(
    {
      url: appliance.url,
      ingestKey,
      intervalMs: 5,
      backoffMinMs: 2,
      backoffMaxMs: 10,
      onError: (reportedProblem) => problems.push(reportedProblem),
      ...options,
    },
    platform,
  )
  open.push(exporter)
  return { appliance, problems, exporter }
}

function event(id: string, overrides: object = {}): CompleteEvent {
  return {
    id,
    siteId: 'shop',
    sessionId: 'sess',
    occurredAt: '2026-06-23T12:00:00.000Z',
    type: 'agent.detected',
    outcome: 'success',
    ...overrides,
  }
}

const send = (exporter: IntelExporter, count: number, overrides: object = {}): void => {
  for (let index = 0; index < count; index++) exporter.export(event(`e${index}`, overrides))
}
const idsOf = (appliance: FakeAppliance): string[] => appliance.events.map(({ id }) => id)
const range = (count: number): string[] => Array.from({ length: count }, (_, index) => `e${index}`)
const posts = (appliance: FakeAppliance) => appliance.requests.filter(({ path }) => path === '/v1/sdk/events')

test('events arrive unchanged, in order, within the limits of a request', async () => {
  const { appliance, exporter, problems } = setUp()
  send(exporter, 2_500)
  expect(await exporter.flush(5_000)).toBe(true)
  expect(idsOf(appliance)).toEqual(range(2_500))
  expect(appliance.events[0]).toEqual(event('e0'))
  for (const { body } of posts(appliance))
    expect((body['events'] as unknown[]).length).toBeLessThanOrEqual(1_000)
  expect(exporter.stats()).toEqual({
    accepted: 2_500,
    deduped: 0,
    rejected: 0,
    dropped: 0,
    queued: 0,
    queuedBytes: 0,
    refusal: null,
    requests: posts(appliance).length,
  })
  expect(problems).toEqual([])
})

test('a full batch is sent at once, a small one after the interval, nothing without events', async () => {
  const hourly = setUp({ intervalMs: 3_600_000, batchEventsMax: 3 })
  send(hourly.exporter, 3)
  await until(() => hourly.appliance.events.length >= 3)
  expect(posts(hourly.appliance).length).toBe(1)
  const { appliance, exporter } = setUp({ intervalMs: 100, batchEventsMax: 3 })
  send(exporter, 3)
  await until(() => appliance.events.length >= 3)
  exporter.export(event('late'))
  const sentAtMs = performance.now()
  await until(() => appliance.events.length >= 4)
  expect(performance.now() - sentAtMs).toBeGreaterThan(60)
  expect(posts(appliance).length).toBe(2)
})

test('changes after export are not sent', async () => {
  const { appliance, exporter } = setUp()
  const pageEvent = event('mine', { metadata: { page: '/a' } })
  exporter.export(pageEvent)
  pageEvent.metadata = { page: '/b' }
  await exporter.flush()
  expect(appliance.events[0]?.['metadata']).toEqual({ page: '/a' })
})

test.each([500, 502, 503, 504, 507, 429, 408])(
  '%d is retried with the same ids until it succeeds',
  async (status) => {
    const { appliance, exporter, problems } = setUp()
    let remainingCount = 3
    appliance.fault = ({ path }) =>
      path === '/v1/sdk/events' && remainingCount-- > 0 ? problem(status, 'overloaded') : null
    send(exporter, 5)
    expect(await exporter.flush(5_000)).toBe(true)
    expect(idsOf(appliance)).toEqual(range(5))
    expect(posts(appliance).length).toBe(4)
    expect(problems.map(({ code }) => code)).toEqual(['unreachable']) // reported once per outage
  },
)

test('Retry-After is respected, even by flush', async () => {
  const { appliance, exporter } = setUp()
  let atMs = 0
  appliance.fault = ({ path }) => {
    if (path !== '/v1/sdk/events' || atMs > 0) return null
    atMs = performance.now()
    return problem(429, 'rate_limited', undefined, undefined, { 'retry-after': '1' })
  }
  send(exporter, 1)
  expect(await exporter.flush(200)).toBe(false)
  expect(await exporter.flush(5_000)).toBe(true)
  expect(performance.now() - atMs).toBeGreaterThan(990)
  expect(posts(appliance).length).toBe(2)
})

test('a lost response counts the events once', async () => {
  const { appliance, exporter } = setUp()
  let lost = 0
  const doubled = startFakeAppliance()
  running.push(doubled)
  appliance.fault = async ({ path, body, headers }) => {
    if (path !== '/v1/sdk/events') return new Response('{}')
    const init = {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { authorization: headers['authorization'] ?? '' },
    }
    const truth = await fetch(`${doubled.url}${path}`, init)
    return lost++ === 0 ? new Response('cut', { status: 502 }) : truth
  }
  send(exporter, 10)
  expect(await exporter.flush(5_000)).toBe(true)
  expect(idsOf(doubled)).toEqual(range(10))
  expect(exporter.stats()).toMatchObject({ accepted: 0, deduped: 10 })
})

test('a batch that a proxy rejects as too large is halved until it passes', async () => {
  const { appliance, exporter, problems } = setUp()
  appliance.fault = ({ body, path }) =>
    path === '/v1/sdk/events' && JSON.stringify(body).length > 2_000
      ? new Response('', { status: 413 })
      : null
  send(exporter, 100)
  exporter.export(event('huge', { error: 'x'.repeat(3_000) }))
  send(exporter, 0)
  exporter.export(event('last'))
  expect(await exporter.flush(5_000)).toBe(true)
  expect(idsOf(appliance)).toEqual([...range(100), 'last'])
  expect(problems).toEqual([expect.objectContaining({ code: 'rejected', status: 413, count: 1 })])
})

test('limits come from the appliance', async () => {
  const { appliance, exporter, problems } = setUp()
  appliance.limits = { eventsPerRequestMax: 7, eventBytesMax: 400 }
  send(exporter, 30)
  expect(await exporter.flush(5_000)).toBe(true)
  expect(idsOf(appliance)).toEqual(range(30))
  const sizes = posts(appliance).map(({ body }) => (body['events'] as unknown[]).length)
  expect(sizes.slice(1).filter((size) => size > 7 && size < 15)).toEqual([])
  expect(exporter.export(event('big', { error: 'x'.repeat(500) }))).toBe(false)
  expect(problems.map(({ code }) => code)).toEqual(['event_too_large'])
})

test('limits are fetched once, after the first success', async () => {
  const { appliance, exporter } = setUp()
  appliance.limits = { eventBytesMax: 400 }
  for (const id of ['a', 'b']) {
    exporter.export(event(id))
    await exporter.flush()
  }
  expect(appliance.requests.map(({ path }) => path)).toEqual([
    '/v1/sdk/events',
    '/v1/limits',
    '/v1/sdk/events',
  ])
  expect(exporter.export(event('big', { error: 'x'.repeat(500) }))).toBe(false)
})

test('the next exporter sends the events of the spool first, in order', async () => {
  using dir = tempDir('spool')
  const spool = dir.join('events')
  const away = setUp({ spool, url: 'http://127.0.0.1:9' })
  send(away.exporter, 5)
  expect(await away.exporter.close(50)).toBe(false)
  expect(away.problems.at(-1)).toMatchObject({
    code: 'unsent',
    message: expect.stringMatching(/from the spool/),
  })
  const back = setUp({ spool })
  back.exporter.export(event('new'))
  expect(await back.exporter.close()).toBe(true)
  expect(idsOf(back.appliance)).toEqual([...range(5), 'new'])
  const empty = setUp({ spool })
  expect(empty.exporter.stats().queued).toBe(0)
})

test('rejected events are reported with reasons, the others arrive', async () => {
  const { appliance, exporter, problems } = setUp()
  exporter.export(event('good'))
  exporter.export({ ...event('bad'), id: 7 as unknown as string })
  expect(await exporter.flush()).toBe(true)
  expect(idsOf(appliance)).toEqual(['good'])
  expect(exporter.stats()).toMatchObject({ accepted: 1, rejected: 1 })
  expect(problems[0]).toMatchObject({ code: 'rejected', count: 1, issues: [{ code: 'required', index: 1 }] })
})

test('a batch with only invalid events is reported and does not block the next one', async () => {
  const { appliance, exporter, problems } = setUp()
  exporter.export({ ...event('bad'), id: 7 as unknown as string })
  await exporter.flush()
  exporter.export(event('good'))
  await exporter.flush()
  expect(idsOf(appliance)).toEqual(['good'])
  expect(problems).toEqual([expect.objectContaining({ code: 'rejected', status: 400, count: 1 })])
})

test.each([
  ['a wrong key', () => problem(401, 'unauthorized', 'invalid_key'), /unauthorized/],
  ['a leaked key', () => problem(403, 'key_exposed'), /key_exposed/],
  ['a wrong path', () => problem(404, 'not_found'), /check the url/],
  ['a web site', () => new Response('<html>', { headers: { 'content-type': 'text/html' } }), /check the url/],
  ['another API', () => Response.json({ ok: true }), /check the url/],
  ['a redirect', () => Response.redirect('http://127.0.0.1:9/', 301), /check the url/],
])('%s is reported once and not repeated', async (_, fault, message) => {
  const { appliance, exporter, problems } = setUp()
  appliance.fault = fault
  send(exporter, 3)
  expect(await exporter.flush(5_000)).toBe(false)
  send(exporter, 600)
  expect(await exporter.flush(5_000)).toBe(false)
  await Bun.sleep(50)
  expect(appliance.requests.length).toBe(1)
  expect(problems).toEqual([
    expect.objectContaining({ code: 'refused', message: expect.stringMatching(message) }),
  ])
  expect(exporter.stats()).toMatchObject({ queued: 603, refusal: expect.stringMatching(message) })
})

test('a full queue drops and counts events, and reports at most once per minute', async () => {
  const { appliance, exporter, problems } = setUp({ queueEventsMax: 100 })
  appliance.fault = () => new Response('', { status: 503 })
  send(exporter, 1_100)
  expect(exporter.stats()).toMatchObject({ dropped: 1_000, queued: 100 })
  expect(problems.map(({ code, count }) => [code, count])).toEqual([['queue_full', 1]])
  appliance.fault = () => null
  expect(await exporter.flush(5_000)).toBe(true)
  expect(idsOf(appliance)).toEqual(range(100))
  expect(problems.filter(({ code }) => code === 'queue_full').map(({ count }) => count)).toEqual([1, 999])
})

test('values that JSON cannot hold are reported, not thrown', () => {
  const { exporter, problems } = setUp()
  expect(exporter.export(event('big', { metadata: { count: 1n } }))).toBe(false)
  expect(problems.map(({ code }) => code)).toEqual(['invalid_event'])
})

test('the queue is bounded in bytes, too', () => {
  const { exporter } = setUp({ queueBytesMax: 10_000, url: 'http://127.0.0.1:9' })
  send(exporter, 100, { error: 'é'.repeat(500) })
  const { queued, queuedBytes, dropped } = exporter.stats()
  expect(queued).toBe(8)
  expect(queuedBytes).toBeLessThanOrEqual(10_000)
  expect(dropped).toBe(92)
})

test('close sends the rest, reports unsent events, and rejects later ones', async () => {
  const { appliance, exporter, problems } = setUp({ intervalMs: 60_000 })
  send(exporter, 10)
  expect(await exporter.close()).toBe(true)
  expect(idsOf(appliance)).toEqual(range(10))
  expect(exporter.export(event('late'))).toBe(false)
  expect(problems.map(({ code }) => code)).toEqual(['unsent'])
  const away = setUp({ url: 'http://127.0.0.1:9' })
  send(away.exporter, 10)
  // Timers fire in the order in which they are due, also on a machine that stood still.
  const late = Bun.sleep(2_000).then(() => 'late')
  expect(await Promise.race([away.exporter.close(100), late])).toBe(false)
  expect(away.problems.at(-1)).toMatchObject({
    code: 'unsent',
    count: 10,
    message: expect.stringMatching(/lost/),
  })
})

test('a request without a response times out and is retried', async () => {
  const { appliance, exporter } = setUp({ requestTimeoutMs: 400 })
  let first = true
  appliance.fault = ({ path }) => {
    if (!first || path !== '/v1/sdk/events') return null
    first = false
    return new Promise<Response>(() => {})
  }
  send(exporter, 3)
  expect(await exporter.flush(15_000)).toBe(true)
  expect(idsOf(appliance)).toEqual(range(3))
})

test.each([
  ['node', nodePlatform],
  ['edge', edgePlatform],
])('%s: bodies are compressed, and sent plain to a server that rejects compression', async (_, platform) => {
  const { appliance, exporter } = setUp({ gzip: true }, platform)
  const varied = (name: string): void => {
    for (let index = 0; index < 50; index++) {
      exporter.export(event(`${name}${index}`, { metadata: { note: crypto.randomUUID() } }))
    }
  }
  varied('a')
  await exporter.flush()
  expect(posts(appliance)[0]?.headers['content-encoding']).toBe('gzip')
  appliance.fault = ({ headers }) =>
    headers['content-encoding'] === 'gzip' ? problem(415, 'unsupported_encoding') : null
  varied('b')
  expect(await exporter.flush(5_000)).toBe(true)
  expect(appliance.events.length).toBe(100)
  expect(posts(appliance).at(-1)?.headers['content-encoding']).toBeUndefined()
})

test('without compression in the runtime, bodies are sent plain', async () => {
  const broken = { ...nodePlatform, gzip: () => Promise.reject(new Error('no CompressionStream')) }
  const { appliance, exporter } = setUp({ gzip: true }, broken)
  send(exporter, 20, { error: 'x'.repeat(100) })
  expect(await exporter.flush(5_000)).toBe(true)
  expect(appliance.events.length).toBe(20)
})

test('very repetitive batches are sent plain', async () => {
  const { appliance, exporter } = setUp({ gzip: true })
  send(exporter, 20, { error: ' '.repeat(2_000) })
  await exporter.flush()
  expect(posts(appliance)[0]?.headers['content-encoding']).toBeUndefined()
  expect(appliance.events.length).toBe(20)
})

test('an invalid key, address or spool throws at once', () => {
  const make =
    (options: Partial<IntelExporterOptions>, platform = nodePlatform) =>
    () =>
      startIntelExporter({ url: 'http://127.0.0.1:9', ingestKey, ...options }, platform)
  expect(make({ ingestKey: `agtx_pk_${'p'.repeat(32)}` })).toThrow(/publishable key/)
  expect(make({ ingestKey: '' })).toThrow(/ingestKey must be a key/)
  for (const url of ['sightglass', 'ftp://x', 'http://user@x', 'http://x/?a=1'])
    expect(make({ url })).toThrow(/url must/)
  expect(make({ spool: '/tmp/x' }, edgePlatform)).toThrow(/file system/)
})
