/** GET /v1/traces: its filters alone and in pairs against a naive model, search, and invalid parameters. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { event, type TestEvent } from '../support/events.ts'
import { testServer, type TestServer } from '../support/server.ts'

let server: TestServer
let secret: string

const startMs = Date.UTC(2026, 4, 1)
const pick = <T>(list: T[], n: number, step: number): T => list[Math.floor(n / step) % list.length]!

/** Every value of every field, and its absence, in many combinations. */
const sentEvents: TestEvent[] = Array.from({ length: 240 }, (_, n) =>
  event(`f_${n}`, {
    occurredAt: new Date(startMs + Math.floor(n / 2) * 60_000).toISOString(),
    type: pick(['authz.evaluated', 'authz.policies_set', 'tool.executed', 'agent.detected'], n, 1),
    outcome: pick(['success', 'blocked', 'error'], n, 2),
    siteId: pick(['shop', 'Shop', 'blog'], n, 3),
    sessionId: `s_${n % 7}`,
    tool: pick(['checkout.pay', 'search', null], n, 5),
    agent: {
      class: pick(['dom', 'crawler', null], n, 1),
      vendor: pick(['OpenAI', 'openai', '=1+1', null], n, 2),
      name: pick(['GPTBot', 'ChatGPT-User', null], n, 2),
      purpose: pick(['training', 'user', null], n, 4),
      verdict: pick(['verified', 'contradicted', null], n, 5),
      trust: pick(['detected', 'verified', null], n, 4),
    },
    policy: pick([{ decision: 'deny' }, { decision: 'review' }, null], n, 3),
    metadata: {
      protocol: pick(['web-bot-auth', 'mtls', null], n, 6),
      subject: pick(['spiffe://a/b', null], n, 2),
      note: n === 17 ? 'Grüße, "Welt"' : `note ${n}`,
    },
  }),
)

beforeAll(async () => {
  server = await testServer()
  const ingest = await server.key('ingest')
  secret = await server.key('secret')
  const response = await server.call('/v1/sdk/events', { key: ingest, body: { events: sentEvents } })
  expect(response.status).toBe(202)
})
afterAll(() => server[Symbol.asyncDispose]())

const get = (query: string, headers: Record<string, string> = {}) =>
  server.call(`/v1/traces${query}`, { key: secret, headers })

async function walk(query: string): Promise<string[]> {
  const ids: string[] = []
  let address = `?limit=100&${query}`
  for (;;) {
    const response = await get(address)
    expect([address, response.status]).toEqual([address, 200])
    const { events, nextCursor } = (await response.json()) as {
      events: TestEvent[]
      nextCursor: string | null
    }
    ids.push(...events.map((sentEvent) => sentEvent.id))
    if (nextCursor === null) return ids
    address = `?limit=100&cursor=${nextCursor}`
  }
}

interface Loose {
  [member: string]: unknown
}
const decisionOf = (record: Loose): unknown =>
  (record['policy'] as Loose | null)?.['decision'] ??
  (record['type'] === 'authz.evaluated'
    ? { blocked: 'deny', success: 'allow' }[String(record['outcome'])]
    : null)

/** The field of each parameter, written independently of the server. */
const members: Record<string, (record: Loose) => unknown> = {
  type: (record) => record['type'],
  agentClass: (record) => (record['agent'] as Loose)['class'],
  class: (record) => (record['agent'] as Loose)['class'],
  vendor: (record) => (record['agent'] as Loose)['vendor'],
  name: (record) => (record['agent'] as Loose)['name'],
  purpose: (record) => (record['agent'] as Loose)['purpose'],
  trust: (record) => (record['agent'] as Loose)['trust'],
  verdict: (record) => (record['agent'] as Loose)['verdict'],
  outcome: (record) => record['outcome'],
  siteId: (record) => record['siteId'],
  sessionId: (record) => record['sessionId'],
  tool: (record) => record['tool'],
  protocol: (record) => (record['metadata'] as Loose)['protocol'],
  decision: decisionOf,
  subject: (record) => (record['metadata'] as Loose)['subject'],
}

function model(filters: [name: string, values: string[]][]): string[] {
  const fits = (record: Loose, [name, values]: [string, string[]]) => {
    const value = members[name]!(record) ?? ''
    return values.some((pattern) =>
      pattern.endsWith('.*') ? String(value).startsWith(pattern.slice(0, -1)) : pattern === value,
    )
  }
  return sentEvents
    .filter((sentEvent) => filters.every((filter) => fits(sentEvent, filter)))
    .map((sentEvent) => sentEvent.id)
    .toReversed()
}

const cases: [string, string[]][] = [
  ['type', ['tool.executed']],
  ['type', ['authz.*', 'agent.detected']],
  ['agentClass', ['crawler']],
  ['class', ['dom', '']],
  ['vendor', ['openai']],
  ['vendor', ['']],
  ['name', ['GPTBot']],
  ['name', ['gptbot', '']],
  ['purpose', ['training', 'other']],
  ['trust', ['verified', 'nobody']],
  ['verdict', ['contradicted', 'nobody']],
  ['outcome', ['error', 'blocked']],
  ['siteId', ['Shop']],
  ['sessionId', ['s_3', 's_5']],
  ['tool', ['']],
  ['tool', ['checkout.pay']],
  ['protocol', ['mtls']],
  ['decision', ['allow']],
  ['decision', ['deny', 'review']],
  ['decision', ['']],
  ['subject', ['spiffe://a/b']],
  ['subject', ['']],
]
const queryOf = (filters: [string, string[]][]) =>
  filters.flatMap(([name, values]) => values.map((value) => `${name}=${encodeURIComponent(value)}`)).join('&')

test('every filter alone', async () => {
  for (const filterCase of cases)
    expect([filterCase, await walk(queryOf([filterCase]))]).toEqual([filterCase, model([filterCase])])
})

test('every pair of filters', async () => {
  for (const [index, filterCase] of cases.entries())
    for (const otherCase of cases.slice(index + 1)) {
      if (filterCase[0] === otherCase[0] || (filterCase[0] === 'agentClass' && otherCase[0] === 'class'))
        continue
      expect([filterCase, otherCase, await walk(queryOf([filterCase, otherCase]))]).toEqual([
        filterCase,
        otherCase,
        model([filterCase, otherCase]),
      ])
    }
})

test('the alias is the same parameter: both together match any of their values', async () => {
  expect(await walk('class=dom&agentClass=crawler')).toEqual(model([['class', ['dom', 'crawler']]]))
})

test('a cursor contains its filters', async () => {
  const vendors = Array.from({ length: 40 }, (_, n) => `vendor=${'v'.repeat(50)}${n}`).join('&')
  expect(await walk(`vendor=openai&vendor=&${vendors}`)).toEqual(model([['vendor', ['openai', '']]]))
  const cursor = async (query: string) =>
    ((await (await get(query)).json()) as { nextCursor: string }).nextCursor
  const first = await cursor('?limit=1&siteId=Shop&siteId=blog')
  expect((await get(`?cursor=${first}&siteId=blog&siteId=Shop`)).status).toBe(200)
  expect((await get(`?cursor=${first}&siteId=blog`)).status).toBe(400)
})

test('q finds a part of any text in any case, from since on, and pages to the end', async () => {
  expect(await walk(`since=2026-01-01&q=${encodeURIComponent('grüsse, "WELT')}`)).toEqual(['f_17'])
  expect(await walk(`since=2026-01-01&q=${encodeURIComponent('GRÜSSE, "welt')}`)).toEqual(['f_17'])
  expect(await walk('since=2026-01-01&q=NOTE%201&outcome=error')).toEqual(
    sentEvents
      .filter(
        (sentEvent) =>
          String(sentEvent.metadata['note' as 'page']).includes('note 1') && sentEvent.outcome === 'error',
      )
      .map((sentEvent) => sentEvent.id)
      .toReversed(),
  )
  expect(await walk(`since=${new Date(startMs + 100 * 60_000).toISOString()}&q=note%2017`)).toEqual([])
  expect((await walk('since=2026-01-01&q=evaluated')).length).toBe(60)
  expect(await walk('since=2026-01-01&q=siteId')).toEqual([]) // a field name, not a value
})

test('invalid parameters are 400 and named', async () => {
  const wrong: [string, string, string][] = [
    ['?q=x', 'since', 'required'],
    [`?q=${'x'.repeat(201)}&since=2026-01-01`, 'q', 'wrong_length'],
    ['?q=a&q=b&since=2026-01-01', 'q', 'repeated'],
    ['?outcome=Not%20One', 'outcome', 'wrong_format'],
    ['?type=a..b', 'type', 'wrong_format'],
    [`?vendor=${'v'.repeat(201)}`, 'vendor', 'too_long'],
    [`?siteId=${'v'.repeat(201)}`, 'siteId', 'too_long'],
    [`?class=${'v'.repeat(65)}`, 'class', 'too_long'],
    [`?${Array.from({ length: 60 }, (_, n) => `tool=${'t'.repeat(90)}${n}`).join('&')}`, 'tool', 'too_long'],
    ['?until=2026-13-01', 'until', 'wrong_format'],
    ['?raw=true', 'raw', 'wrong_format'],
    ['?Class=x', 'Class', 'unknown'],
  ]
  for (const [query, path, code] of wrong) {
    const response = await get(query)
    const body = (await response.json()) as { error: string; issues: { path: string; code: string }[] }
    expect([query, response.status, body.error, body.issues?.[0]?.path, body.issues?.[0]?.code]).toEqual([
      query,
      400,
      'invalid_query',
      path,
      code,
    ])
  }
})
