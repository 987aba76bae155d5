/** GET /v1/explore and its twin: equal to counting the events of GET /v1/traces, and clear about wrong queries. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ExploreAnswer } from '../../server/api/explore/routes.ts'
import type { Store } from '../../db/contract/store.ts'
import { event, type TestEvent } from '../support/events.ts'
import { openTestFolder } from '../support/engine.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { runs } from '../support/runs.ts'

let server: TestServer
let secret: string
let cookie: string
const hourMs = 3_600_000
const startMs = Math.floor(Date.now() / hourMs) * hourMs - 30 * hourMs
const iso = (ms: number) => new Date(ms).toISOString()

const hostile = ['<img src=x onerror=alert(1)>', '=cmd|calc', '\u202eevil', 'a,"b"\nc']
const plans = ['pro', 'free', null, ...hostile]
const events = Array.from({ length: 240 }, (_, n) =>
  event(`e${n}`, {
    sessionId: `s${n % 17}`,
    siteId: ['shop', 'blog'][n % 2],
    type: ['tool.executed', 'agent.detected', 'authz.evaluated'][n % 3],
    outcome: ['success', 'error', 'blocked', 'success'][n % 4],
    durationMs: n % 5 === 0 ? null : (n * 37) % 900,
    occurredAt: iso(startMs + n * 431_777),
    agent: n % 7 === 0 ? null : { class: 'dom', vendor: ['GPTBot', 'ClaudeBot'][n % 2], name: `bot${n % 3}` },
    metadata: {
      page: `/p${n % 4}`,
      subject: n % 3 === 0 ? `user${n % 5}` : null,
      plan: plans[n % plans.length],
      'gen_ai.model': `m${n % 3}`,
      cart: { items: n % 6 },
      bytes: n * 10,
      tokens: { input: n, output: 1 },
    },
  }),
)

beforeAll(async () => {
  server = await testServer()
  secret = await server.key('secret')
  cookie = await server.signIn('viewer')
  const response = await server.call('/v1/sdk/events', { key: await server.key('ingest'), body: { events } })
  expect(response.status).toBe(202)
})
afterAll(() => server[Symbol.asyncDispose]())

const search = (parameters: Record<string, string | string[]>) =>
  new URLSearchParams(
    Object.entries(parameters).flatMap(([name, values]) => [values].flat().map((value) => [name, value])),
  )

async function explore(parameters: Record<string, string | string[]>): Promise<ExploreAnswer> {
  const response = await server.call(`/v1/explore?${search(parameters)}`, { key: secret })
  expect([`${search(parameters)}`, response.status]).toEqual([`${search(parameters)}`, 200])
  return (await response.json()) as ExploreAnswer
}

/** Every event of the filters, by walking the pages of GET /v1/traces. */
async function traces(filters: Record<string, string | string[]>): Promise<TestEvent[]> {
  const tracedEvents: TestEvent[] = []
  for (let cursor = ''; ;) {
    const query = cursor === '' ? search({ ...filters, limit: '200' }) : search({ cursor, limit: '200' })
    const page = (await (await server.call(`/v1/traces?${query}`, { key: secret })).json()) as {
      events: TestEvent[]
      nextCursor: string | null
    }
    tracedEvents.push(...page.events)
    if (page.nextCursor === null) return tracedEvents
    cursor = page.nextCursor
  }
}

type Read = (testEvent: TestEvent) => unknown
const agentOf = (testEvent: TestEvent) => testEvent.agent as { [name: string]: unknown } | null
const metadataOf = (testEvent: TestEvent) => testEvent.metadata as { [name: string]: unknown }
const fields: { [fieldName: string]: Read } = {
  type: (testEvent) => testEvent.type,
  outcome: (testEvent) => testEvent.outcome,
  siteId: (testEvent) => testEvent.siteId,
  sessionId: (testEvent) => testEvent.sessionId,
  vendor: (testEvent) => agentOf(testEvent)?.['vendor'],
  name: (testEvent) => agentOf(testEvent)?.['name'],
  page: (testEvent) => testEvent.metadata.page,
  subject: (testEvent) => metadataOf(testEvent)['subject'],
  'metadata.plan': (testEvent) => metadataOf(testEvent)['plan'],
  'metadata.gen_ai.model': (testEvent) => metadataOf(testEvent)['gen_ai.model'],
  'metadata.cart.items': (testEvent) => (metadataOf(testEvent)['cart'] as { items: number }).items,
}

test('equals counting the events of /v1/traces, by any field, filter and range', async () => {
  const optionalValues = (...values: string[]) =>
    fc.option(fc.uniqueArray(fc.constantFrom(...values)), { nil: [] })
  const property = fc.asyncProperty(
    fc.constantFrom(...Object.keys(fields)),
    optionalValues('tool.executed', 'agent.*'),
    optionalValues('GPTBot', ''),
    fc.constantFrom(hourMs, 1),
    fc.nat(20),
    fc.integer({ min: 1, max: 12 }),
    async (groupField, types, vendors, unit, since, length) => {
      const sinceMs = startMs + since * hourMs
      const untilMs = startMs + (since + length) * hourMs - (hourMs - unit)
      const times = { since: iso(sinceMs), until: iso(Math.max(untilMs, sinceMs + 1)) }
      const matches = await traces({ ...times, type: types, vendor: vendors })
      const filter = [...types.map((type) => `type:${type}`), ...vendors.map((vendor) => `vendor:${vendor}`)]
      const answer = await explore({ ...times, by: groupField, filter, rows: '3', step: 'hour' })
      const counts = new Map<string | null, number>()
      for (const testEvent of matches) {
        const value = fields[groupField]!(testEvent)
        const key = value == null ? null : String(value)
        counts.set(key, (counts.get(key) ?? 0) + 1)
      }
      expect(answer.all.total).toBe(matches.length)
      expect(answer.missing?.total ?? 0).toBe(counts.get(null) ?? 0)
      for (const row of answer.rows)
        expect([row.value, row.total]).toEqual([row.value, counts.get(row.value)!])
      const sizes = [...counts]
        .flatMap(([value, count]) => (value === null ? [] : [count]))
        .sort((a, b) => b - a)
      expect(answer.rows.map(({ total }) => total)).toEqual(sizes.slice(0, 3))
      expect(answer.other?.total ?? 0).toBe(sizes.slice(3).reduce((sum, size) => sum + size, 0))
      for (const { total, steps } of [...answer.rows, answer.all])
        expect(steps.reduce<number>((sum, stepValue) => sum + (stepValue ?? 0), 0)).toBe(total!)
    },
  )
  await fc.assert(property, { numRuns: runs(30) })
})

test('measures sessions, subjects, sums and quantiles, and filters by members of the metadata', async () => {
  const measureTotal = async (measure: string, overrides: Record<string, string | string[]> = {}) => {
    const { all: allNumbers } = await explore({ measure, since: iso(startMs), ...overrides })
    return [allNumbers.total, allNumbers.error]
  }
  const errors = events.filter(({ outcome }) => outcome === 'error')
  expect(await measureTotal('errors')).toEqual([errors.length, 0])
  expect(await measureTotal('sessions')).toEqual([17, 0])
  expect(await measureTotal('subjects')).toEqual([
    new Set(events.flatMap((testEvent) => metadataOf(testEvent)['subject'] ?? [])).size,
    0,
  ])
  expect(await measureTotal('bytes')).toEqual([events.reduce((sum, _, n) => sum + n * 10, 0), 0])
  expect(await measureTotal('tokens')).toEqual([events.reduce((sum, _, n) => sum + n + 1, 0), 0])
  const durations = events.flatMap(({ durationMs }) => durationMs ?? []).sort((a, b) => a - b)
  const [p95, error] = await measureTotal('p95')
  expect(Math.abs(p95! / durations[Math.ceil(durations.length * 0.95) - 1]! - 1)).toBeLessThan(0.021)
  expect(error).toBe(0.02)
  const pro = events.filter(
    (testEvent) => metadataOf(testEvent)['plan'] === 'pro' && testEvent.siteId === 'shop',
  )
  expect(await measureTotal('events', { filter: ['metadata.plan:pro', 'siteId:shop'] })).toEqual([
    pro.length,
    0,
  ])
  expect(await measureTotal('events', { filter: 'metadata.plan:' })).toEqual([
    events.filter((testEvent) => metadataOf(testEvent)['plan'] === null).length,
    0,
  ])
})

test('searches a text, and cuts days at the midnights of a zone with half hours', async () => {
  const since = iso(startMs)
  const answer = await explore({ since, q: 'Cmd|', by: 'metadata.plan' })
  expect(answer.rows.map(({ value, total }) => [value, total])).toEqual([
    ['=cmd|calc', events.filter((testEvent) => metadataOf(testEvent)['plan'] === '=cmd|calc').length],
  ])
  expect((await explore({ since, q: 'nowhere', by: 'vendor' })).all.total).toBe(0)
  const zone = 'Asia/Kolkata'
  const dayOf = (ms: number) => new Date(ms).toLocaleDateString('en-CA', { timeZone: zone })
  const days = [...Map.groupBy(events, (testEvent) => dayOf(Date.parse(testEvent.occurredAt)))]
  const last = { until: iso(startMs + 40 * hourMs), zone }
  for (const groupField of ['vendor', 'metadata.plan', 'name']) {
    const { edges, all: allNumbers } = await explore({ since, ...last, by: groupField, step: 'day' })
    expect([groupField, edges.map((edge) => dayOf(Date.parse(edge))).slice(0, days.length)]).toEqual([
      groupField,
      days.map(([day]) => day).sort(),
    ])
    const counts = days.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, dayEvents]) => dayEvents.length)
    expect([groupField, allNumbers.steps.slice(0, counts.length), allNumbers.total]).toEqual([
      groupField,
      counts,
      events.length,
    ])
  }
  const page = await server.call(`/api/explore?${search({ range: '7d', zone, by: 'vendor' })}`, {
    headers: { cookie },
  })
  const { period, all: pageNumbers } = (await page.json()) as ExploreAnswer
  expect([pageNumbers.total, period!.onTheHour, period!.edges.map((edge) => edge % (3 * hourMs))]).toEqual([
    events.length,
    true,
    period!.edges.map(() => hourMs / 2),
  ])
})

test('CSV has what JSON has, with hostile values guarded', async () => {
  const parameters = { by: 'metadata.plan', since: iso(startMs), rows: '10', step: 'day' }
  const answer = await explore(parameters)
  const response = await server.call(`/v1/explore?${search(parameters)}`, {
    key: secret,
    headers: { accept: 'text/csv' },
  })
  expect(response.headers.get('x-csv-formula-guard')).toBe('on')
  const text = await response.text()
  expect(text.split('\n')[0]).toBe(`kind,value,total,${answer.edges.slice(0, -1).join(',')}`)
  const plain = answer.rows.find(({ value }) => value === 'pro')!
  expect(text).toContain(`\nvalue,pro,${plain.total},${plain.steps.join(',')}\n`)
  expect(text).toContain(`\nvalue,'=cmd|calc,`)
  expect(text).toContain(`\nmissing,,${answer.missing!.total},`)
  expect(text).toContain(`\nall,,${answer.all.total},`)
})

test('NDJSON ends with the result, and the dashboard gets the same numbers with its period', async () => {
  const parameters = { by: 'metadata.plan', filter: 'type:tool.executed' }
  const headers = { accept: 'application/x-ndjson' }
  const response = await server.call(`/v1/explore?${search({ ...parameters, since: iso(startMs) })}`, {
    key: secret,
    headers,
  })
  const lines = (await response.text()).trimEnd().split('\n')
  const { result } = JSON.parse(lines.at(-1)!) as { result: ExploreAnswer }
  expect(result).toEqual(await explore({ ...parameters, since: iso(startMs) }))
  const berlinResponse = await server.call(
    `/api/explore?${search({ ...parameters, range: '7d', zone: 'Europe/Berlin' })}`,
    { headers: { cookie } },
  )
  const berlinAnswer = (await berlinResponse.json()) as ExploreAnswer
  expect([berlinAnswer.rows.map(({ value, total }) => [value, total]), berlinAnswer.all.total]).toEqual([
    result.rows.map(({ value, total }) => [value, total]),
    result.all.total,
  ])
  expect(berlinAnswer.period).toMatchObject({
    range: '7d',
    zone: 'Europe/Berlin',
    filters: [{ name: 'type', value: 'tool.executed' }],
  })
})

test('a long query sends its progress, and ends with its connection', async () => {
  // A query that waits for another one is as long as that one.
  const blocks = Promise.withResolvers<void>()
  const seenQueries: { signal: AbortSignal | undefined }[] = []
  const slow = await testServer({}, 'quick', {
    async open(folder, clock) {
      const store = await openTestFolder(folder, clock)
      const explore: Store['events']['explore'] = async (query, following = {}) => {
        seenQueries.push({ signal: following.signal })
        following.onProgress?.(0.25)
        await Promise.race([blocks.promise, aborted(following.signal!)])
        return store.events.explore(query, following)
      }
      return { ...store, events: { ...store.events, explore } }
    },
  })
  await using _ = slow
  const call = async (accept: string, signal?: AbortSignal) =>
    fetch(`${slow.url}/v1/explore`, {
      headers: { accept, authorization: `Bearer ${await slow.key('secret')}` },
      ...(signal && { signal }),
    })
  const lines = async (response: Response, onLine: (line: string) => void) => {
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) onLine(chunk.trimEnd())
  }
  const leaveController = new AbortController()
  const leaving = await call('application/x-ndjson', leaveController.signal)
  await lines(leaving, () => leaveController.abort()).catch(() => undefined)
  await aborted(seenQueries[0]!.signal!)
  const plain = new AbortController()
  const waiting = call('application/json', plain.signal).catch(() => null)
  while (seenQueries.length < 2) await Bun.sleep(5)
  plain.abort()
  await Promise.all([waiting, aborted(seenQueries[1]!.signal!)])
  const progressLines: string[] = []
  await lines(await call('application/x-ndjson'), (line) => {
    progressLines.push(line)
    blocks.resolve()
  })
  expect(progressLines[0]).toBe('{"progress":0.25}')
  expect(JSON.parse(progressLines.at(-1)!.split('\n').at(-1)!)).toMatchObject({
    result: { all: { total: 0 } },
  })
})

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve()))
}

test('an invalid query names its parameter', async () => {
  const wrong: [string, string][] = [
    ['measure=money', 'measure'],
    ['by=secret', 'by'],
    ['by=metadata.', 'by'],
    [`by=metadata.${'a.'.repeat(8)}b`, 'by'],
    [`by=metadata.${'x'.repeat(201)}`, 'by'],
    ['by=__proto__', 'by'],
    ['filter=vendor', 'filter'],
    ['filter=constructor:1', 'filter'],
    [`filter=type:${'x'.repeat(90)}`, 'filter'],
    [Array.from({ length: 21 }, (_, n) => `filter=vendor:v${n}`).join('&'), 'filter'],
    ['rows=0', 'rows'],
    ['rows=1001', 'rows'],
    ['step=minute', 'step'],
    ['step=hour&since=2020-01-01', 'step'],
    ['zone=Mars', 'zone'],
    [`q=${'x'.repeat(201)}`, 'q'],
    ['since=2026-01-02&until=2026-01-01', 'until'],
    ['range=7d', 'range'],
  ]
  for (const [query, parameter] of wrong) {
    const response = await server.call(`/v1/explore?${query}`, { key: secret })
    const body = (await response.json()) as { error: string; issues: { path: string }[] }
    expect([query, response.status, body.error, body.issues[0]?.path]).toEqual([
      query,
      400,
      'invalid_query',
      parameter,
    ])
  }
  expect((await server.call('/v1/explore')).status).toBe(401)
  expect((await server.call('/api/explore')).status).toBe(401)
  expect((await server.call('/v1/explore', { key: secret, headers: { accept: 'image/png' } })).status).toBe(
    406,
  )
})
