/** GET /api/changes reports what a recount of the posted events finds new, refused or failing, and nothing else. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Change, Changes, WeekCounts } from '../../server/counts/shapes.ts'
import { event, type TestEvent } from '../support/events.ts'
import { caller, cookieOf, makeOrg, password, person, type Person } from '../support/people.ts'
import { storeVouched } from '../support/vouched.ts'
import { testServer, type TestServer } from '../support/server.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const nowMs = Date.now()

let server: TestServer
let viewer: Person
const sentEvents: TestEvent[] = []

/** `count` events spread over the days from `fromDay` to `toDay` ago. */
function createEvents(
  name: string,
  count: number,
  fromDay: number,
  toDay: number,
  overrides: Record<string, unknown>,
): TestEvent[] {
  return Array.from({ length: count }, (_, index) => {
    const ageMs = (toDay + ((fromDay - toDay) * index) / count) * dayMs + hourMs
    return event(`${name}-${fromDay}-${index}`, {
      occurredAt: new Date(nowMs - ageMs).toISOString(),
      ...overrides,
    })
  })
}

const call = (tool: string, outcome: string, vendor = 'OpenAI') => ({
  type: 'tool.executed',
  tool,
  outcome,
  policy: undefined,
  agent: { class: 'dom', trust: 'detected', vendor },
})

const request = (vendor: string, outcome: string, verdict = 'unknown') => ({
  type: 'agent.requested',
  outcome,
  tool: undefined,
  policy: undefined,
  agent: { class: 'crawler', trust: 'declared', vendor, name: `${vendor}Bot`, verdict },
})

const decision = (ruleId: string, outcome: string) => ({
  type: 'authz.evaluated',
  outcome,
  policy: { decision: outcome === 'blocked' ? 'deny' : 'allow', ruleId },
})

beforeAll(async () => {
  server = await testServer()
  viewer = await person(server, server.org, 'viewer')
  sentEvents.push(
    ...createEvents('steady', 300, 28, 0, call('search', 'success')),
    ...createEvents('old', 50, 20, 10, call('gone', 'success')),
    ...createEvents('new', 30, 0.9, 0, call('pay', 'success', 'Manus')),
    ...createEvents('returns', 5, 60, 45, call('yearly', 'success')),
    ...createEvents('returned', 5, 0.9, 0, call('yearly', 'success')),
    ...createEvents('fine', 200, 20, 2, call('cart', 'success')),
    ...createEvents('broken', 40, 0.9, 0, call('cart', 'error')),
    ...createEvents('works', 60, 0.9, 0, call('cart', 'success')),
    ...createEvents('served', 100, 20, 2, request('ByteDance', 'success')),
    ...createEvents('refused', 12, 0.9, 0, request('ByteDance', 'blocked')),
    ...createEvents('true', 20, 20, 0, request('Google', 'success', 'verified')),
    ...createEvents('claims', 9, 0.9, 0, request('Google', 'success', 'contradicted')),
    // A sender's own verdict names no impostor.
    ...createEvents('reported', 9, 0.9, 0, request('ByteDance', 'success', 'contradicted')),
    ...createEvents('allowed', 40, 20, 0, decision('by-purpose', 'success')),
    ...createEvents('denied', 7, 0.9, 0, decision('by-purpose', 'blocked')),
    ...createEvents('always', 60, 20, 0, decision('no-admin', 'blocked')),
  )
  await storeVouched(
    server,
    sentEvents.filter(({ id }) => /^(?:claims|true)-/.test(id)),
  )
  const key = await server.key('ingest')
  for (let from = 0; from < sentEvents.length; from += 500) {
    const body = { events: sentEvents.slice(from, from + 500) }
    expect(await (await server.call('/v1/sdk/events', { key, body })).json()).toMatchObject({ ok: true })
  }
})
afterAll(() => server[Symbol.asyncDispose]())

async function changes(search = '', reader = viewer): Promise<Changes> {
  const answer = await reader.call(`/api/changes${search}`)
  expect(answer.status).toBe(200)
  return (await answer.json()) as Changes
}

function expectCounted(
  change: Change,
  { since, edges }: Changes,
  isMember: (sentEvent: TestEvent) => boolean,
): void {
  const readMs = ({ occurredAt }: TestEvent): number => Date.parse(occurredAt)
  const sinceMs = Date.parse(since)
  const matches = sentEvents.filter(isMember)
  const steps = Array<number>(edges.length - 1).fill(0)
  for (const sentEvent of matches)
    if (readMs(sentEvent) >= edges[0]!) steps[edges.findLastIndex((edge) => edge <= readMs(sentEvent))]! += 1
  const isBefore = (sentEvent: TestEvent): boolean =>
    readMs(sentEvent) < sinceMs && readMs(sentEvent) >= sinceMs - 30 * dayMs
  expect(change).toMatchObject({
    count: matches.filter((sentEvent) => readMs(sentEvent) >= sinceMs).length,
    before: matches.filter(isBefore).length,
    steps,
  })
}

test('the last 24 hours: new, refused and failing values, each with the counts of a recount', async () => {
  const changesAnswer = await changes()
  expect(changesAnswer).toMatchObject({ compared: true, complete: true, more: {} })
  expect(changesAnswer.changes.map(({ kind, name }) => [kind, name])).toEqual([
    ['impostor', 'GoogleBot'],
    ['refusedOperator', 'ByteDance'],
    ['refusingRule', 'by-purpose'],
    ['failingTool', 'cart'],
    ['operator', 'Manus'],
    ['tool', 'pay'],
    ['tool', 'yearly'],
  ])
  const [impostor, refused, rule, failing, operator, pay] = changesAnswer.changes
  expectCounted(impostor!, changesAnswer, ({ id }) => id.startsWith('claims-'))
  expect(impostor!.claims).toEqual({ vendor: 'Google', agent: 'GoogleBot' })
  expectCounted(
    refused!,
    changesAnswer,
    (sentEvent) => sentEvent.agent.vendor === 'ByteDance' && sentEvent.outcome === 'blocked',
  )
  expectCounted(
    rule!,
    changesAnswer,
    (sentEvent) => sentEvent.policy?.ruleId === 'by-purpose' && sentEvent.outcome === 'blocked',
  )
  expectCounted(
    failing!,
    changesAnswer,
    (sentEvent) => sentEvent.tool === 'cart' && sentEvent.outcome === 'error',
  )
  expectCounted(operator!, changesAnswer, (sentEvent) => sentEvent.agent.vendor === 'Manus')
  expectCounted(pay!, changesAnswer, (sentEvent) => sentEvent.tool === 'pay')
  expect(failing!.of).toEqual({ count: 100, before: 200 })
})

test('a longer period reports nothing that was known before it, and has the same counts', async () => {
  const since = new Date(nowMs - 15 * dayMs).toISOString()
  const changesAnswer = await changes(`?since=${since}`)
  expect(changesAnswer.changes.map(({ kind, name }) => [kind, name])).not.toContainEqual(['tool', 'gone'])
  const pay = changesAnswer.changes.find(({ name }) => name === 'pay')
  expectCounted(pay!, changesAnswer, (sentEvent) => sentEvent.tool === 'pay')
})

test('an organization without events before has nothing to compare, and sees no other organization', async () => {
  const org = await makeOrg(server, 'Empty')
  const otherViewer = await person(server, org, 'viewer')
  expect(await changes('', otherViewer)).toMatchObject({ changes: [], more: {}, compared: false })
})

test('the week is counted as on Analytics', async () => {
  const week = (await (await viewer.call('/api/week?range=7d')).json()) as WeekCounts
  const analytics = (await (await viewer.call('/api/analytics?range=7d')).json()) as WeekCounts
  expect([week.all, week.types]).toEqual([analytics.all, analytics.types])
  expect(week.all.count).toBeGreaterThan(0)
})

test('a visit is known to the account on every device, per organization, and never to others', async () => {
  const { server: visitServer, viewer: visitor } = { server, viewer }
  const visit = async (member: Person) =>
    ((await (await member.call('/api/overview/visit')).json()) as { visit: unknown }).visit
  expect(await visit(visitor)).toBeNull()
  const [since, last] = [nowMs - 2 * hourMs, nowMs - hourMs].map((ms) => new Date(ms).toISOString())
  const first = { since, at: last, hidden: ['operator <b>'], shown: ['tool pay'] }
  const noted = await visitor.post('/api/overview/visit', first)
  expect([noted.status, await noted.json()]).toEqual([200, { visit: first }])
  const signedIn = await visitServer.call('/api/sign-in', { body: { email: visitor.email, password } })
  const phone = { ...visitor, ...caller(visitServer, cookieOf(signedIn)) }
  expect(await visit(phone)).toEqual(first)
  const seenVisit = { ...first, since: last, hidden: ['tool pay'], shown: [] }
  await phone.post('/api/overview/visit', seenVisit)
  // The page that is still open at the first device brings nothing back.
  expect(await (await visitor.post('/api/overview/visit', first)).json()).toEqual({ visit: seenVisit })
  expect(await visit(await person(visitServer, visitServer.org, 'viewer'))).toBeNull()
  const future = { since: '2199-01-01T00:00:00Z', at: '2199-01-01T00:00:00Z', hidden: [], shown: [] }
  const { visit: now } = (await (await visitor.post('/api/overview/visit', future)).json()) as {
    visit: typeof first
  }
  expect(Math.abs(Date.parse(now.since!) - visitServer.clock.now())).toBeLessThan(60_000)
  for (const wrong of [
    {},
    { ...first, since: 'yesterday' },
    { ...first, shown: 'tool' },
    { ...first, more: 1 },
    { ...first, hidden: Array(101).fill('x') },
    { ...first, shown: ['x'.repeat(301)] },
  ])
    expect((await visitor.post('/api/overview/visit', wrong)).status).toBe(400)
  expect((await visitServer.call('/api/overview/visit', { body: first })).status).toBe(401)
})

test('invalid times and strangers are refused', async () => {
  for (const since of ['2020-01-01', '2999-01-01', 'x'])
    expect((await viewer.call(`/api/changes?since=${since}`)).status).toBe(400)
  expect((await viewer.call('/api/changes?range=7d')).status).toBe(400)
  expect((await server.call('/api/changes')).status).toBe(401)
})
