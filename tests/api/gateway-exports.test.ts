/** NDJSON and CSV exports of traces: complete, in order, cut when they fail, audited. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { parseCsvObjects } from 'hucre/csv'
import { limits } from '../../server/limits.ts'
import { event, eventsInOrder, type TestEvent } from '../support/events.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let ingest: string
let secret: string

const hostile = event('hostile', {
  occurredAt: '2026-07-01T00:00:00Z',
  tool: '=cmd|calc,"x"\ny',
  error: '@SUM(A1)',
  agent: {
    class: '+1',
    vendor: '-2',
    name: '=1+2',
    purpose: 'training',
    verdict: '-1',
    robots: 'disallowed',
    trust: '\tx',
  },
  policy: null,
  metadata: { page: '/a,b', subject: "O'Hara", note: 'Grüße 🎈' },
})
const sentEvents = [...eventsInOrder(2_300, 'x_'), hostile]

beforeAll(async () => {
  server = await testServer()
  ingest = await server.key('ingest')
  secret = await server.key('secret')
  for (let offset = 0; offset < sentEvents.length; offset += 1_000) {
    const response = await server.call('/v1/sdk/events', {
      key: ingest,
      body: { events: sentEvents.slice(offset, offset + 1_000) },
    })
    expect(response.status).toBe(202)
  }
})
afterAll(() => server[Symbol.asyncDispose]())

const get = (query: string, accept: string, key = secret) =>
  server.call(`/v1/traces${query}`, { key, headers: { accept } })
const newestFirst = (events: TestEvent[]) => events.toReversed()

test('NDJSON has every match as sent, newest first, and the count at the end', async () => {
  const response = await get('', 'application/x-ndjson')
  expect(response.headers.get('content-type')).toBe('application/x-ndjson; charset=utf-8')
  const lines = (await response.text()).split('\n')
  expect(lines.pop()).toBe('')
  expect(JSON.parse(lines.pop()!)).toEqual({ _end: { count: sentEvents.length } })
  expect(lines.map((line) => JSON.parse(line) as TestEvent)).toEqual(newestFirst(sentEvents))
})

test('filters and search apply to exports; an empty export is complete', async () => {
  const ids = async (query: string) =>
    (await (await get(query, 'application/x-ndjson')).text())
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { id?: string }).id)
  expect(await ids('?since=2026-07-01')).toEqual(['hostile', undefined])
  expect(await ids('?q=%F0%9F%8E%88&since=2026-01-01')).toEqual(['hostile', undefined])
  expect(await ids('?vendor=nobody')).toEqual([undefined])
  const csv = await get('?vendor=nobody', 'text/csv')
  expect([csv.headers.get('x-row-count'), (await csv.text()).split('\n').length]).toEqual(['0', 2])
})

/** As a spreadsheet opens it: cells by column heading, all text. */
function cellsOf(csv: string, unescapeFormulae = false): Record<string, string>[] {
  return parseCsvObjects(csv, { header: true, unescapeFormulae }).data as Record<string, string>[]
}

test('CSV announces its number of rows, and a spreadsheet reads them unchanged', async () => {
  const response = await get('?raw=true', 'text/csv')
  expect(response.headers.get('x-row-count')).toBe(String(sentEvents.length))
  expect(response.headers.get('x-csv-formula-guard')).toBe('off')
  expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8')
  const rows = cellsOf(await response.text())
  expect(rows.length).toBe(sentEvents.length)
  expect(rows.map((row) => JSON.parse(row['event']!) as TestEvent)).toEqual(newestFirst(sentEvents))
  const { event: _, key, receivedAt, ...cells } = rows[0]!
  expect([key, receivedAt]).toEqual([expect.stringMatching(/^key_/), expect.stringMatching(/^\d{4}-.*Z$/)])
  expect(cells).toEqual({
    id: 'hostile',
    siteId: 'shop-acme',
    sessionId: 'sess_1',
    occurredAt: '2026-07-01T00:00:00Z',
    type: 'authz.evaluated',
    outcome: 'blocked',
    tool: '=cmd|calc,"x"\ny',
    durationMs: '3',
    class: '+1',
    trust: '\tx',
    vendor: '-2',
    decision: 'deny', // implied by the outcome
    ruleId: '',
    page: '/a,b',
    protocol: '',
    subject: "O'Hara",
    error: '@SUM(A1)',
    name: '=1+2',
    purpose: 'training',
    verdict: '-1',
    robots: 'disallowed',
    door: 'events',
    observedBy: '',
    judgedBy: 'sender',
    network: '',
  })
})

test('without raw=true formulas are escaped', async () => {
  const response = await get('?since=2026-07-01', 'text/csv')
  expect(response.headers.get('x-csv-formula-guard')).toBe('on')
  const text = await response.text()
  const header = text.split('\n')[0]
  const row = text.slice(text.indexOf('\n') + 2)
  expect(header).toBe(
    'id,siteId,sessionId,occurredAt,type,outcome,tool,durationMs,class,trust,vendor,decision,ruleId,page,protocol,subject,error,name,purpose,verdict,robots,door,key,observedBy,receivedAt,judgedBy,network,event',
  )
  expect(row).toContain(`"'=cmd|calc,""x""\ny",3,'+1,'\tx,'-2,deny,`)
  expect(row).toContain(`,'@SUM(A1),'=1+2,training,'-1,disallowed,events,key_`)
  expect(row).toContain(',sender,,"{""id""')
  const { tool, class: agentClass, error } = cellsOf(text, true)[0]!
  expect([tool, agentClass, error]).toEqual(['=cmd|calc,"x"\ny', '+1', '@SUM(A1)'])
})

test('events that arrive during an export are not in it', async () => {
  const response = await get('', 'application/x-ndjson')
  const reader = response.body!.getReader()
  let text = new TextDecoder().decode((await reader.read()).value)
  await server.call('/v1/sdk/events', {
    key: ingest,
    body: { events: [event('late', { siteId: 'late', occurredAt: '2026-01-01T00:00:00Z' })] },
  })
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    text += new TextDecoder().decode(value)
  }
  expect(text).not.toContain('"late"')
  expect(text.trimEnd().endsWith(`{"_end":{"count":${sentEvents.length}}}`)).toBe(true)
})

test('the largest events are read in small pages, all of them', async () => {
  await using otherServer = await testServer()
  const key = await otherServer.key('ingest')
  const reader = await otherServer.key('secret')
  const large = (n: number) => event(`large${n}`, { metadata: { filler: '€"'.repeat(12_000), n } })
  for (let from = 0; from < 240; from += 80) {
    const body = { events: Array.from({ length: 80 }, (_, n) => large(from + n)) }
    expect((await otherServer.call('/v1/sdk/events', { key, body })).status).toBe(202)
  }
  const pages: number[] = []
  const page = otherServer.store.events.page
  otherServer.store.events.page = async (query) => {
    const read = await page(query)
    pages.push(read.events.reduce((sum, { json }) => sum + json.length, 0))
    return read
  }
  for (const accept of ['application/x-ndjson', 'text/csv']) {
    pages.length = 0
    const text = await (await otherServer.call('/v1/traces', { key: reader, headers: { accept } })).text()
    expect(new Set(text.match(/large\d+/g)).size).toBe(240)
    expect(pages.length).toBeGreaterThan(1)
    expect(Math.max(...pages)).toBeLessThanOrEqual(4 * 1024 * 1024)
  }
}, 90_000)

test('an export that fails midway is cut, so that it does not look complete', async () => {
  const page = server.store.events.page
  let calls = 0
  server.store.events.page = (query) => (++calls > 1 ? Promise.reject(new Error('disk gone')) : page(query))
  try {
    const response = await get('', 'application/x-ndjson')
    const got = await response.text().then(
      (text) => text,
      () => 'cut',
    )
    expect(got === 'cut' || !got.includes('_end')).toBe(true)
  } finally {
    server.store.events.page = page
  }
})

test('the number of concurrent exports is limited; an aborted one frees its slot', async () => {
  const page = server.store.events.page
  const gate = Promise.withResolvers<void>()
  server.store.events.page = async (query) => {
    await gate.promise
    return page(query)
  }
  try {
    const aborts = Array.from({ length: limits.exportsMax }, () => new AbortController())
    const open = aborts.map(({ signal }) =>
      fetch(`${server.url}/v1/traces`, {
        headers: { authorization: `Bearer ${secret}`, accept: 'application/x-ndjson' },
        signal,
      }).catch(() => null),
    )
    const refused = await untilStatus(503)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    for (const abort of aborts) abort.abort()
    await Promise.all(open)
    gate.resolve()
    expect((await untilStatus(200)).status).toBe(200)
  } finally {
    gate.resolve()
    server.store.events.page = page
  }
})

/** Requests until the response has this status, because the server notices an aborted connection a moment later. */
async function untilStatus(status: number): Promise<Response> {
  const endMs = performance.now() + 10_000
  for (;;) {
    const abort = new AbortController()
    const timer = setTimeout(() => abort.abort(), 200) // a 200 waits for its first part
    const response = await fetch(`${server.url}/v1/traces?vendor=nobody`, {
      headers: { authorization: `Bearer ${secret}`, accept: 'application/x-ndjson' },
      signal: abort.signal,
    }).catch(() => null)
    clearTimeout(timer)
    if (response?.status === status) return response
    if (performance.now() > endMs) throw new Error(`never ${status}, last ${response?.status}`)
  }
}

test('invalid parameters are rejected by name', async () => {
  const wrong: [string, string, number, string | undefined][] = [
    ['?limit=10', 'text/csv', 400, 'limit'],
    ['?cursor=abc', 'application/x-ndjson', 400, 'cursor'],
    ['?raw=maybe', 'text/csv', 400, 'raw'],
    ['?raw=true', 'application/x-ndjson', 400, 'raw'],
    ['?type=..', 'text/csv', 400, 'type'],
    ['', 'text/html', 406, undefined],
  ]
  for (const [query, accept, status, path] of wrong) {
    const response = await get(query, accept)
    const body = (await response.json()) as { issues?: { path: string }[] }
    expect([query, response.status, body.issues?.[0]?.path]).toEqual([query, status, path])
  }
  expect((await get('', 'text/csv', ingest)).status).toBe(403)
})

test('HEAD sends the type and no rows; every export has an audit row', async () => {
  const entriesBefore = (await server.store.audit.list({ orgId: server.org.id, limit: 100, beforeSeq: null }))
    .entries
  const head = await server.call('/v1/traces', {
    method: 'HEAD',
    key: secret,
    headers: { accept: 'text/csv' },
  })
  expect([head.status, head.headers.get('content-type')]).toEqual([200, 'text/csv; charset=utf-8'])
  await (await get('?type=tool.*', 'text/csv')).text()
  const entriesAfter = (await server.store.audit.list({ orgId: server.org.id, limit: 100, beforeSeq: null }))
    .entries
  expect(entriesAfter.length).toBe(entriesBefore.length + 1)
  expect(entriesAfter[0]).toMatchObject({
    action: 'traces.exported',
    metadata: { format: 'csv', filter: { types: ['tool.*'] } },
  })
})
