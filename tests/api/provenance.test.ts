/** Who says so (contract §17): records, their filters and exports, and counts that a sender's verdict cannot change. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { parquetReadObjects } from 'hyparquet'
import { zstdDecompressSync } from 'node:zlib'
import type { EventProvenance } from '../../web/api/event-shapes.ts'
import { demoKeyId } from '../../server/ids.ts'
import { agentsLog, loggedAgents } from '../support/agents-log.ts'
import { event, type TestEvent } from '../support/events.ts'
import { checkEvent } from '../../server/ingest/check-event.ts'
import { testServer, type TestServer } from '../support/server.ts'

setDefaultTimeout(60_000) // PostgreSQL may have to start

const compressors = { ZSTD: (page: Uint8Array) => new Uint8Array(zstdDecompressSync(page)) }

/** As many as an ingest key posts to look like a verified crawler. */
const claimedCount = 10_000
const exact = '"note":12345678901234567890.5'

let server: TestServer
let secret: string
let senderKey: string
let logKey: string

beforeAll(async () => {
  server = await testServer()
  secret = await server.key('secret')
  const ingest = await server.key('ingest', { label: 'backend' })
  const now = server.clock.now()
  for (let from = 0; from < claimedCount; from += 1_000) {
    const events = Array.from({ length: 1_000 }, (_, index) => claimed(from + index, now))
    // A number that a double cannot hold, so that the text must be returned as it was sent.
    const body = JSON.stringify({ events }).replaceAll('"note":0', exact)
    const answer = await server.call('/v1/sdk/events', {
      key: ingest,
      body,
      headers: { 'content-type': 'application/json' },
    })
    expect(await answer.json()).toMatchObject({ accepted: 1_000 })
  }
  const logs = await server.key('ingest', { label: 'drain' })
  const answer = await server.call('/v1/sdk/access-logs?siteId=shop', {
    method: 'POST',
    key: logs,
    body: agentsLog(now),
    headers: { 'content-type': 'text/plain' },
  })
  expect(answer.status).toBe(202)
  await server.store.events.append({
    orgId: server.org.id,
    keyId: demoKeyId,
    door: 'demo',
    receivedAtMs: now,
    events: [checkEvent(event('sample', { occurredAt: new Date(now).toISOString() }), [])!],
  })
  const keys = await server.store.keys.list({ orgId: server.org.id, kind: 'ingest' })
  senderKey = keys.find(({ label }) => label === 'backend')!.id
  logKey = keys.find(({ label }) => label === 'drain')!.id
})
afterAll(() => server[Symbol.asyncDispose]())

function claimed(n: number, now: number): TestEvent {
  return event(`claim_${n}`, {
    occurredAt: new Date(now - 60_000).toISOString(),
    type: 'agent.requested',
    outcome: 'success',
    siteId: 'shop',
    agent: {
      class: 'crawler',
      vendor: 'OpenAI',
      name: 'GPTBot',
      trust: 'verified',
      verdict: 'verified',
      evidence: { method: 'address', list: 'https://evil.example/list.json' },
    },
    metadata: { page: '/', note: 0 },
  })
}

const get = (path: string, headers: Record<string, string> = {}) =>
  server.call(path, { key: secret, headers })

async function json<T>(path: string): Promise<T> {
  const answer = await get(path)
  expect([path, answer.status]).toEqual([path, 200])
  return (await answer.json()) as T
}

interface Page {
  events: TestEvent[]
  records?: EventProvenance[]
  nextCursor: string | null
}

test('a page has the records of its events in their order, and without include it has none', async () => {
  const { events, records } = await json<Page>('/v1/traces?include=record&limit=200&judgedBy=sender')
  expect(records).toHaveLength(events.length)
  for (const record of records!)
    expect(record).toEqual({
      door: 'events',
      key: senderKey,
      receivedAt: record.receivedAt,
      verdict: 'verified',
      judgedBy: 'sender',
      observedBy: null,
      evidence: null,
      network: null,
    })
  expect(Object.keys(await json<Page>('/v1/traces?limit=1'))).toEqual(['events', 'nextCursor'])
  expect((await get('/v1/traces?include=everything')).status).toBe(400)
})

test("the appliance's own verdict has its evidence, and the network of an impostor", async () => {
  const page = await json<Page>('/v1/traces?include=record&judgedBy=appliance&verdict=contradicted&limit=200')
  const impostors = loggedAgents.filter(({ verdict }) => verdict === 'contradicted')
  const requests = page.events.filter(({ type }) => type === 'agent.requested')
  expect(requests).toHaveLength(impostors.reduce((sum, impostor) => sum + impostor.requests, 0))
  const [record] = page.records!
  expect(record).toMatchObject({
    door: 'access-log',
    key: logKey,
    judgedBy: 'appliance',
    observedBy: logKey,
    evidence: { method: 'address', listDigest: expect.stringMatching(/^[0-9a-f]{64}$/) as string },
  })
  expect(record!.network).toMatch(/\/24$/)
  const network = encodeURIComponent(record!.network!)
  const inNetwork = await json<Page>(`/v1/traces?include=record&network=${network}&limit=200`)
  expect(inNetwork.events.length).toBeGreaterThan(0)
  expect(new Set(inNetwork.records!.map((networkRecord) => networkRecord.network))).toEqual(
    new Set([record!.network]),
  )
  for (const wrong of ['', '192.0.2.1', 'x/24']) {
    const answer = await get(`/v1/traces?network=${encodeURIComponent(wrong)}`)
    expect([wrong, answer.status]).toEqual([wrong, 400])
  }
})

test('one event with its record has the text as it was sent', async () => {
  const text = await (await get('/v1/traces/claim_7?include=record')).text()
  const plain = await (await get('/v1/traces/claim_7')).text()
  expect(plain).toContain(exact)
  expect(text).toStartWith(`{"event":${plain},"record":{"door":"events","key":"${senderKey}",`)
})

test.each([
  ['judgedBy=sender&type=agent.requested', claimedCount],
  [`key=${encodeURIComponent('{key}')}&verdict=verified`, claimedCount],
  ['door=events', claimedCount],
  ['door=demo', 1],
  ['key=', 1],
  ['judgedBy=unknown', 0],
  ['observedBy=appliance', 0],
])('the filter %s', async (query, count) => {
  const keyQuery = query.replace(encodeURIComponent('{key}'), senderKey)
  const lines = (
    await (await get(`/v1/traces?${keyQuery}`, { accept: 'application/x-ndjson' })).text()
  ).split('\n')
  expect(lines.at(-2)).toBe(`{"_end":{"count":${count}}}`)
})

test('NDJSON has records when they are asked for, and is unchanged without', async () => {
  const accept = { accept: 'application/x-ndjson' }
  const plain = (await (await get('/v1/traces?judgedBy=sender', accept)).text()).trimEnd().split('\n')
  const recorded = (await (await get('/v1/traces?judgedBy=sender&include=record', accept)).text())
    .trimEnd()
    .split('\n')
  expect(recorded).toHaveLength(claimedCount + 1)
  expect(recorded.at(-1)).toBe(plain.at(-1)!)
  for (const [index, line] of recorded.slice(0, -1).entries()) {
    expect(line).toStartWith(`{"event":${plain[index]},"record":{"door":"events","key":"${senderKey}"`)
    expect(line).toContain('"judgedBy":"sender"')
  }
})

test('CSV and Parquet name the key and the judge of every event', async () => {
  const csv = (await (await get('/v1/traces?judgedBy=sender', { accept: 'text/csv' })).text())
    .trimEnd()
    .split('\n')
  expect(csv[0]).toEndWith('verdict,robots,door,key,observedBy,receivedAt,judgedBy,network,event')
  expect(csv).toHaveLength(claimedCount + 1)
  const cell = new RegExp(`,verified,,events,${senderKey},,[^,]+,sender,,"`)
  expect(csv.slice(1).every((row) => cell.test(row))).toBe(true)
  const type = 'application/vnd.apache.parquet'
  const file = await (await get('/v1/traces?judgedBy=sender', { accept: type })).arrayBuffer()
  const rows = await parquetReadObjects({
    file,
    columns: ['key', 'door', 'judged_by', 'observed_by'],
    compressors,
  })
  expect(rows).toHaveLength(claimedCount)
  const expected = { key: senderKey, door: 'events', judged_by: 'sender', observed_by: null }
  expect(rows.every((row) => Bun.deepEquals(row, expected))).toBe(true)
  for (const accept of ['text/csv', type])
    expect((await get('/v1/traces?include=record', { accept })).status).toBe(400)
})

test('Explore groups and filters by record; events of no key have no value', async () => {
  interface Answer {
    rows: { value: string; events: number }[]
    missing: { events: number } | null
  }
  const byKey = await json<Answer>(
    '/v1/explore?by=key&filter=type:agent.requested&filter=type:authz.evaluated',
  )
  expect(byKey.rows[0]).toMatchObject({ value: senderKey, events: claimedCount })
  expect(byKey.missing).toMatchObject({ events: 1 })
  const judges = await json<Answer>(
    '/v1/explore?by=judgedBy&filter=verdict:verified&filter=type:agent.requested',
  )
  const verified = loggedAgents.filter(({ verdict }) => verdict === 'verified')
  expect(Object.fromEntries(judges.rows.map((row) => [row.value, row.events]))).toEqual({
    sender: claimedCount,
    appliance: verified.reduce((sum, loggedAgent) => sum + loggedAgent.requests, 0),
  })
})

test('sessions are filtered by judge', async () => {
  const { sessions } = await json<{ sessions: { id: string }[] }>('/v1/sessions?judgedBy=sender')
  expect(sessions.map(({ id }) => id)).toEqual(['sess_1'])
})

interface Requests {
  verdicts: { rows: { value: string; count: number }[] }
  judgements: { verdict: string; judgedBy: string; by: string; label: string | null; count: number }[]
  unjudged: unknown
}

const ownCount = (verdict: string): number =>
  loggedAgents.reduce(
    (sum, loggedAgent) => (loggedAgent.verdict === verdict ? sum + loggedAgent.requests : sum),
    0,
  )

test("pages count no sender's verdict as Verified, and name the key", async () => {
  const headers = { cookie: await server.signIn('viewer') }
  const read = async <T>(path: string): Promise<T> => {
    const answer = await server.call(path, { headers })
    expect([path, answer.status]).toEqual([path, 200])
    return (await answer.json()) as T
  }
  const { verdicts, judgements, unjudged } = await read<Requests>('/api/detect/requests?range=24h')
  expect(verdicts.rows.find(({ value }) => value === 'verified')?.count).toBe(ownCount('verified'))
  expect(judgements.find(({ judgedBy }) => judgedBy === 'sender')).toMatchObject({
    verdict: 'verified',
    by: senderKey,
    label: 'backend',
    count: claimedCount,
  })
  expect(
    judgements.find(({ judgedBy, verdict }) => judgedBy === 'appliance' && verdict === 'verified'),
  ).toMatchObject({
    by: logKey,
    label: 'drain',
    count: ownCount('verified'),
  })
  expect(unjudged).toBeNull()
  const { agents } = await read<{ agents: { verified: number }[] }>('/api/detect/claims?range=24h')
  expect(agents.reduce((sum, { verified }) => sum + verified, 0)).toBe(ownCount('verified'))
  // Under a filter events are counted one by one: the same numbers.
  const filtered = await read<Requests>('/api/detect/requests?range=24h&filter=verdict:verified')
  expect(filtered.verdicts.rows).toMatchObject([{ value: 'verified', count: ownCount('verified') }])
  const ownRequests = await read<Requests>('/api/detect/requests?range=24h&filter=observedBy:appliance')
  expect(ownRequests.verdicts.rows).toEqual([])
  const { labels } = await read<{ labels: { [id: string]: string } }>('/api/key-labels')
  expect(labels).toMatchObject({ [senderKey]: 'backend', [logKey]: 'drain' })
})

test('Explore counts vouched verdicts under a filter of verdicts', async () => {
  interface Answer {
    all: { total: number }
  }
  const base = '/v1/explore?filter=type:agent.requested&filter=verdict:verified'
  expect((await json<Answer>(base)).all.total).toBe(ownCount('verified'))
  expect((await json<Answer>(`${base}&filter=judgedBy:sender`)).all.total).toBe(claimedCount)
})

test('an alert on Verified counts what the appliance vouches for, unless it names the judge', async () => {
  const headers = { cookie: await server.signIn('owner') }
  const windowOf = async (filter: object): Promise<number | null | undefined> => {
    const body = {
      measure: 'count',
      windowMinutes: 60,
      condition: { kind: 'above', value: 1 },
      kind: 'measure',
      name: 'verified',
      filter: { type: ['agent.requested'], ...filter },
    }
    const answer = await server.call('/api/webhooks/rules/backtest', { body, headers })
    expect(answer.status).toBe(200)
    const { points } = (await answer.json()) as { points: { value: number | null }[] }
    return Math.max(...points.map(({ value }) => value ?? 0))
  }
  server.clock.move(3_600_000)
  expect(await windowOf({ verdict: ['verified'], judgedBy: ['sender'] })).toBe(claimedCount)
  const ownWindow = await windowOf({ verdict: ['verified'] })
  expect(ownWindow).toBeGreaterThan(0)
  expect(ownWindow).toBeLessThanOrEqual(ownCount('verified'))
})
