/** Detect counts the requests of an access log by verdict, agent and page, and names impostors with the evidence. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type {
  DetectClaims,
  DetectCounts,
  DetectRequests,
  DetectResponses,
} from '../../server/counts/shapes.ts'
import { agentsLog, logged, loggedAgents, pageOf, statusOf } from '../support/agents-log.ts'
import { event } from '../support/events.ts'
import { person, type Person } from '../support/people.ts'
import { testServer, type TestServer } from '../support/server.ts'

setDefaultTimeout(60_000) // PostgreSQL may have to start

let server: TestServer
let viewer: Person
let key: string

beforeAll(async () => {
  server = await testServer()
  viewer = await person(server, server.org, 'viewer')
  key = await server.key('ingest')
  const headers = { 'content-type': 'text/plain' }
  const body = agentsLog(server.clock.now())
  const answer = await server.call('/v1/sdk/access-logs?siteId=shop', { method: 'POST', key, body, headers })
  expect(await answer.json()).toMatchObject({ ok: true, lines: body.split('\n').length - 1 })
})
afterAll(() => server[Symbol.asyncDispose]())

async function read<T>(path: string, query = ''): Promise<T> {
  const response = await viewer.call(`/api/${path}?range=24h${query}`)
  expect([path, query, response.status]).toEqual([path, query, 200])
  return (await response.json()) as T
}

const total = (isCounted: (loggedAgent: (typeof loggedAgents)[number]) => boolean = () => true): number =>
  loggedAgents.filter(isCounted).reduce((sum, { requests }) => sum + requests, 0)
const sums = (rows: { value: string | null; count: number }[]) =>
  Object.fromEntries(rows.map(({ value, count }) => [value, count]))

test('requests, referrals and all requests of the logs, by verdict, purpose and assistant', async () => {
  const { requested, referred } = await read<DetectCounts>('detect')
  expect([requested.count, referred.count]).toEqual([total(), logged.referrals])
  const { verdicts, purposes, referrers, all: allRequests } = await read<DetectRequests>('detect/requests')
  expect(sums(verdicts.rows)).toEqual({
    verified: total(({ verdict }) => verdict === 'verified'),
    contradicted: total(({ verdict }) => verdict === 'contradicted'),
    unverifiable: total(({ verdict }) => verdict === 'unverifiable'),
  })
  expect(verdicts.rows[0]!.steps!.reduce((sum, count) => sum + count, 0)).toBe(verdicts.rows[0]!.count)
  expect(sums(purposes.rows)).toEqual({
    training: total(({ purpose }) => purpose === 'training'),
    assistant: total(({ purpose }) => purpose === 'assistant'),
  })
  expect(sums(referrers.rows)).toEqual({ ChatGPT: logged.referrals })
  const requests = total() + logged.people + logged.assets + logged.programs
  expect(allRequests).toEqual({
    requests: { count: requests, before: 0 },
    agents: { count: total(), before: 0 },
  })
})

const outcomesOf = (requests: number) => {
  const statuses = Array.from({ length: requests }, (_, n) => statusOf(n))
  const count = (status: number): number => statuses.filter((loggedStatus) => loggedStatus === status).length
  return { requests, refused: count(403), failed: count(404) }
}

test('agents with verdicts and outcomes, pages folded, and no count of what a filter excludes', async () => {
  const { agents, pages, complete } = await read<DetectClaims>('detect/claims')
  expect(complete).toBe(true)
  const byName = new Map(agents.map((agentRow) => [(agentRow.name as { name: string }).name, agentRow]))
  expect(byName.size).toBe(agents.length)
  for (const name of new Set(loggedAgents.map((loggedAgent) => loggedAgent.name))) {
    const namesakes = loggedAgents.filter((loggedAgent) => loggedAgent.name === name)
    const parts = namesakes.map(({ requests }) => outcomesOf(requests))
    const sum = (field: 'requests' | 'refused' | 'failed') =>
      parts.reduce((fieldSum, part) => fieldSum + part[field], 0)
    const counted = (...verdicts: string[]) =>
      total((loggedAgent) => loggedAgent.name === name && verdicts.includes(loggedAgent.verdict))
    expect(byName.get(name)).toEqual({
      vendor: { name: namesakes[0]!.vendor },
      name: { name },
      requests: sum('requests'),
      refused: sum('refused'),
      failed: sum('failed'),
      verified: counted('verified'),
      contradicted: counted('contradicted'),
      claimed: counted('consistent', 'unverifiable'),
      disallowed: 0,
    })
  }
  const askedPages = loggedAgents.flatMap(({ requests }) =>
    Array.from({ length: requests }, (_, n) => pageOf(n)),
  )
  const aboutCount = askedPages.filter((page) => page === '/about').length
  expect(pages.map(({ page, requests, pages: count }) => [page, requests, count])).toEqual([
    ['/products/*', askedPages.length - aboutCount, new Set(askedPages).size - 1],
    ['/about', aboutCount, 1],
  ])
  const verified = await read<DetectClaims>('detect/claims', '&filter=verdict:verified&filter=name:ClaudeBot')
  expect(verified.agents).toMatchObject([{ name: { name: 'ClaudeBot' }, requests: 9, contradicted: 0 }])
  expect(verified.impostors).toEqual([])
  for (const query of ['&filter=type:agent.detected', '&siteId=other'])
    expect(await read<DetectClaims>('detect/claims', query)).toMatchObject({ agents: [], pages: [] })
  const filtered = await read<DetectRequests>('detect/requests', '&filter=purpose:training')
  expect([filtered.all, sums(filtered.verdicts.rows)['unverifiable']]).toEqual([null, 5])
})

test('responses by agent: classes of status, and the bytes that the log names', async () => {
  const { agents, looked, complete } = await read<DetectResponses>('detect/responses')
  expect([looked, complete]).toEqual([total(), true])
  const expectedRows = new Map<
    string,
    { requests: number; success: number; refusal: number; bytes: number }
  >()
  let line = 0
  for (const { name, requests } of loggedAgents) {
    const sum = expectedRows.get(name) ?? { requests: 0, success: 0, refusal: 0, bytes: 0 }
    expectedRows.set(name, sum)
    for (let n = 0; n < requests; n++) {
      sum.requests++
      sum[statusOf(n) === 200 ? 'success' : 'refusal']++
      sum.bytes += 100 + line++
    }
  }
  const zeroCounts = { redirect: 0, failure: 0 }
  expect(new Map(agents.map(({ vendor: _vendor, name, ...counts }) => [name, counts]))).toEqual(
    new Map(Array.from(expectedRows, ([name, counts]) => [name, { ...zeroCounts, ...counts }])),
  )
  const claude = await read<DetectResponses>('detect/responses', '&filter=name:ClaudeBot')
  expect([claude.looked, claude.agents.map(({ name }) => name)]).toEqual([12, ['ClaudeBot']])
})

test('impostors are named with requests, time, pages and the list that contradicts them', async () => {
  const { impostors } = await read<DetectClaims>('detect/claims')
  expect(impostors).toMatchObject([
    {
      vendor: 'OpenAI',
      name: 'GPTBot',
      requests: 12,
      pages: [{ name: '/about', count: 4 }, { count: 1 }, { count: 1 }],
      evidence: { method: 'address', list: 'gptbot', listDate: '2025-10-30', networks: 17 },
    },
    { vendor: 'Anthropic', name: 'ClaudeBot', requests: 3, evidence: { list: 'anthropic' } },
  ])
  expect(Date.parse(impostors[0]!.lastAt!)).toBeLessThan(server.clock.now())
})

test('verdicts and evidence of a sender can be anything and name no impostor', async () => {
  const agents = [
    { evidence: '\u202e<script>', name: '' },
    { evidence: [1, 2], name: '<b>bot</b>', robots: 'disallowed' },
    {
      evidence: { method: 'address', list: 'x'.repeat(400), networks: {}, __proto__: { keyId: 'k' } },
      name: 'n',
    },
    { evidence: null, name: '__proto__' },
  ]
  const events = agents.map((agentFields, n) =>
    event(`hostile-${n}`, {
      type: 'agent.requested',
      siteId: 'hostile',
      outcome: 'success',
      occurredAt: new Date(server.clock.now()).toISOString(),
      agent: { vendor: 'constructor', verdict: 'contradicted', ...agentFields },
      metadata: {},
    }),
  )
  expect((await server.call('/v1/sdk/events', { key, body: { events } })).status).toBe(202)
  const { agents: agentRows, impostors, pages } = await read<DetectClaims>('detect/claims', '&siteId=hostile')
  expect(pages).toEqual([])
  expect(agentRows.filter(({ disallowed }) => disallowed > 0)).toMatchObject([
    { name: { name: '<b>bot</b>' }, disallowed: 1 },
  ])
  // What a sender says of itself names no impostor.
  expect(impostors).toEqual([])
  expect(agentRows.every(({ contradicted }) => contradicted === 0)).toBe(true)
})

test('the command that imports a first log has paths of the server for its operators only', async () => {
  expect(await (await viewer.call('/api/sources/first')).json()).toEqual({
    executable: 'sightglass',
    dataDir: null,
    org: null,
    log: '/var/log/nginx/access.log',
  })
})
