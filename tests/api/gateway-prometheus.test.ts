/** GET /metrics: access, a text that parses, and numbers that match what happened. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { browser, line } from '../support/access-logs.ts'
import { startAppliance } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { makeAudit } from '../store/make.ts'
import { fixedRule, makeEndpoint, openFiring } from '../store/webhook-make.ts'

setDefaultTimeout(90_000) // the executable may have to be built first

const token = 'a-token-of-the-scraper'

interface Sample {
  name: string
  labels: { [name: string]: string }
  value: number
}

/** Strict parser of the text format; throws at the first invalid line. */
function parse(text: string): Sample[] {
  const types = new Map<string, string>()
  const samples: Sample[] = []
  expect(text.endsWith('\n')).toBe(true)
  for (const line of text.trimEnd().split('\n')) {
    const type = /^# TYPE (\w+) (counter|gauge|histogram)$/.exec(line)
    if (type) types.set(type[1]!, type[2]!)
    if (line.startsWith('#')) {
      expect(line).toMatch(/^# (HELP \w+ .+|TYPE \w+ (counter|gauge|histogram))$/)
      continue
    }
    const match = /^([a-z_]+)(?:\{(.*)\})? (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)$/.exec(line)
    expect([line, match !== null]).toEqual([line, true])
    const [, name = '', inside = '', value = ''] = match!
    expect([name, types.has(name.replace(/_(bucket|sum|count)$/, '')) || types.has(name)]).toEqual([
      name,
      true,
    ])
    const labels = [...inside.matchAll(/(\w+)="((?:[^"\\]|\\.)*)",?/g)].map(([, label, text]) => [
      label,
      text,
    ])
    samples.push({ name, labels: Object.fromEntries(labels) as Sample['labels'], value: Number(value) })
  }
  return samples
}

async function scrape(server: TestServer): Promise<(name: string, labels?: Sample['labels']) => number> {
  const response = await server.call('/metrics', { key: token })
  expect([response.status, response.headers.get('content-type')]).toEqual([
    200,
    'text/plain; version=0.0.4; charset=utf-8',
  ])
  const samples = parse(await response.text())
  return (name, labels = {}) =>
    samples
      .filter((sample) => sample.name === `sightglass_${name}`)
      .filter((sample) => Object.entries(labels).every(([label, text]) => sample.labels[label] === text))
      .reduce((sum, { value }) => sum + value, 0)
}

test('without a configured token it answers 404; with one, only requests that send it get an answer', async () => {
  await using closed = await testServer()
  expect((await closed.call('/metrics')).status).toBe(404)
  expect((await closed.call('/metrics', { key: token })).status).toBe(404)
  await using server = await testServer({ metricsToken: token })
  const statusOf = async (key?: string) =>
    (await server.call('/metrics', key === undefined ? {} : { key })).status
  expect([await statusOf(), await statusOf('another-token-of-another'), await statusOf(token)]).toEqual([
    401, 401, 200,
  ])
  expect(await statusOf(await server.key('secret'))).toBe(401)
  expect((await server.call('/metrics?x=1', { key: token })).status).toBe(400)
})

test('counts what happened', async () => {
  await using server = await testServer({ metricsToken: token })
  const ingest = await server.key('ingest')
  const secret = await server.key('secret')
  const post = (body: unknown) => server.call('/v1/sdk/events', { key: ingest, body })
  await post({ events: [event('a'), event('b'), event('a')] })
  await post({ events: [event('c'), { ...event('d'), type: 'NO' }] })
  await post('{')
  for (let n = 0; n < 5; n++) await server.call(`/v1/traces/${'x'.repeat(n)}?`, { key: secret })
  await server.call('/v1/nothing/here')
  const readSample = await scrape(server)
  expect(readSample('ingest_requests_total')).toBe(3)
  expect(readSample('ingest_refused_requests_total')).toBe(1)
  const outcomes = ['accepted', 'deduped', 'rejected'].map((outcome) =>
    readSample('ingest_events_total', { outcome }),
  )
  expect(outcomes).toEqual([3, 1, 1])
  expect(readSample('append_seconds_count')).toBe(2)
  expect(readSample('commit_seconds_count')).toBeGreaterThanOrEqual(2)
  expect(readSample('commit_seconds_bucket', { le: '+Inf' })).toBe(readSample('commit_seconds_count'))
  expect(readSample('fsync_seconds_count')).toBeGreaterThanOrEqual(1)
  expect(readSample('fsync_seconds_bucket', { le: '+Inf' })).toBe(readSample('fsync_seconds_count'))
  expect(
    readSample('http_request_seconds_count', { route: '/v1/sdk/events', method: 'POST', status: '202' }),
  ).toBe(2)
  expect(readSample('http_request_seconds_count', { route: '/v1/sdk/events', status: '400' })).toBe(1)
  expect(readSample('http_request_seconds_count', { route: '/v1/traces/:id', status: '404' })).toBe(4)
  expect(readSample('http_request_seconds_count', { route: 'none', status: '404' })).toBe(1)
  expect(readSample('build_info')).toBe(1)
  for (const name of ['store_bytes', 'memory_bytes', 'disk_free_bytes'])
    expect(readSample(name)).toBeGreaterThan(0)
  expect(readSample('job_late')).toBe(0)
})

test('hostile paths and methods add no series', async () => {
  await using server = await testServer({ metricsToken: token })
  const lines = async () =>
    (await (await server.call('/metrics', { key: token })).text())
      .split('\n')
      .filter((line) => line.includes('http_')).length
  await server.call('/v1/x0')
  await server.call('/v1/traces', { method: 'PROPFIND' })
  await lines()
  const linesBefore = await lines()
  for (let n = 0; n < 50; n++) await server.call(`/v1/x${n}/${'"\n'.repeat(n)}`)
  for (const method of ['LINK', 'UNLINK', 'PURGE']) await server.call('/v1/traces', { method })
  expect(await lines()).toBe(linesBefore)
})

test('answers fast, also during ingest', async () => {
  await using server = await testServer({ metricsToken: token })
  const ingest = await server.key('ingest')
  await scrape(server)
  let stop = false
  const load = async (name: string) => {
    for (let n = 0; !stop; n++, await Bun.sleep(2)) {
      const events = Array.from({ length: 100 }, (_, index) => event(`${name}${n}_${index}`))
      await (await server.call('/v1/sdk/events', { key: ingest, body: { events } })).text()
    }
  }
  const loads = ['a', 'b'].map(load)
  const tookMs: number[][] = [[], []]
  for (let n = 0; n < 31; n++) {
    for (const [index, path] of ['/healthz', '/metrics'].entries()) {
      const startedMs = performance.now()
      await (await server.call(path, { key: token })).text()
      tookMs[index]!.push(performance.now() - startedMs)
      await Bun.sleep(5)
    }
  }
  const [floorMs, oursMs] = tookMs.map((times) => times.sort((a, b) => a - b)[15]!) as [number, number]
  stop = true
  await Promise.all(loads)
  expect(oursMs).toBeLessThan(20 + 4 * floorMs) // relative, so that a busy machine does not fail it
})

test('the executable: a separate listener for /metrics, and a token that is shown nowhere', async () => {
  await using server = await startAppliance({
    args: ['--metrics-listen', '127.0.0.1:0'],
    env: { SIGHTGLASS_METRICS_TOKEN: token },
  })
  const logged = /"metrics_listening".*?"url":"([^"]+)"|"url":"([^"]+)".*?"metrics_listening"/
  const endMs = performance.now() + 5_000
  while (!logged.test(server.stderr()) && performance.now() < endMs) await Bun.sleep(10)
  const [, first, second] = logged.exec(server.stderr())!
  const url = first ?? second
  const samples = parse(await (await fetch(`${url}/metrics`)).text())
  expect(samples.length).toBeGreaterThan(30)
  expect((await fetch(`${url}/v1/limits`)).status).toBe(404)
  expect((await fetch(`${url}/`)).status).toBe(404)
  expect((await fetch(`${server.url}/metrics`)).status).toBe(401)
  const authorization = `Bearer ${token}`
  expect(
    (await fetch(`${server.url}/metrics`, { headers: { authorization, host: 'scraper.example' } })).status,
  ).toBe(200)
  expect(server.stderr() + server.stdout()).not.toContain(token)
  const spaced = await server.cli('serve', '--metrics-token', 'two words')
  expect(spaced.code).toBe(2)
  expect(spaced.stderr).toStartWith('sightglass: --metrics-token: the value is invalid (')
  expect(spaced.stderr).not.toContain('two words')
})

test('requests in access logs are counted by kind and verdict, and a repeated body does not count', async () => {
  await using server = await testServer({ metricsToken: token })
  const key = await server.key('ingest')
  const body = [
    line({ path: '/a' }),
    line({ path: '/b', address: '132.196.86.5' }), // of GPTBot's network
    line({ path: '/c', userAgent: browser }),
    line({ path: '/style.css', userAgent: browser }),
    line({ path: '/d', userAgent: 'curl/8.0' }),
  ].join('')
  const headers = { 'content-type': 'text/plain' }
  expect((await scrape(server))('access_requests_total')).toBe(0)
  for (let n = 0; n < 2; n++)
    expect(
      (await server.call('/v1/sdk/access-logs?siteId=shop', { method: 'POST', key, headers, body })).status,
    ).toBe(202)
  const value = await scrape(server)
  const countRequests = (kind: string, verdict?: string) =>
    value('access_requests_total', { kind, ...(verdict !== undefined && { verdict }) })
  expect([
    countRequests('agent'),
    countRequests('agent', 'verified'),
    countRequests('agent', 'contradicted'),
  ]).toEqual([2, 1, 1])
  expect([countRequests('person'), countRequests('asset'), countRequests('bot')]).toEqual([1, 1, 1])
})

test('alerts are series, labelled with their state and names that cannot break the text', async () => {
  await using server = await testServer({ metricsToken: token })
  const { store, org, clock } = server
  const ids = { orgId: org.id, endpointId: 'ep_alerts' }
  const audit = () => makeAudit(org.id)
  await store.webhooks.createEndpoint({ endpoint: makeEndpoint(org.id, ids.endpointId), audit: audit() })
  const name = 'Many "bots"\\ \u202e'
  const numbers = { threshold: null, minutes: null, eventsMin: null }
  const rule = {
    id: 'rul_series',
    ...ids,
    kind: 'new_vendor' as const,
    ...numbers,
    ...fixedRule,
    createdAtMs: 1,
    name,
  }
  await store.webhooks.createRule({ rule, rulesMax: 9, audit: audit() })
  for (const state of ['pending', 'firing'] as const) {
    const times = { ...openFiring, openedAtMs: clock.now(), state }
    const incident = {
      id: `inc_${state}`,
      orgId: org.id,
      ruleId: rule.id,
      subject: `${state}\n"`,
      ...times,
      data: {},
    }
    await store.webhooks.openIncident({ incident, delivery: null, once: false, audit: audit() })
  }
  const value = await scrape(server)
  const firing = { alertname: name.replaceAll('\\', '\\\\').replaceAll('"', '\\"'), alertstate: 'firing' }
  expect([value('alerts', firing), value('alerts', { alertstate: 'pending' })]).toEqual([1, 1])
  expect(value('alerts', { organization: org.slug, severity: 'warning', subject: 'firing\\n\\"' })).toBe(1)
})
