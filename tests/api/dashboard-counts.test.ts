/** The counts of Detect, Auth, Authz and Analytics equal a recount of the posted events, by range and by site. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type {
  ActiveAgents,
  AnalyticsCounts,
  AuthCounts,
  AuthzCounts,
  CallDurations,
  BreakdownView,
  DetectCounts,
  DetectMatrix,
  DetectTrust,
  IdentityDetail,
  PeriodView,
  EventCounts,
  Unit,
  VendorDetail,
  Why,
} from '../../server/counts/shapes.ts'
import { mintKey } from '../../server/identity/keys/keys.ts'
import { event, type TestEvent } from '../support/events.ts'
import { makeOrg, person, type Person } from '../support/people.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { trustModel } from '../support/trust-model.ts'
import { passes, traffic, types } from './dashboard-traffic.ts'

let server: TestServer
let viewer: Person
let key: string
const sentEvents: TestEvent[] = []

const hourMs = 3_600_000
beforeAll(async () => {
  server = await testServer()
  key = await server.key('ingest')
  viewer = await person(server, server.org, 'viewer')
  sentEvents.push(...traffic(Date.now()))
  for (let from = 0; from < sentEvents.length; from += 700) {
    const body = { events: sentEvents.slice(from, from + 700) }
    expect(await (await server.call('/v1/sdk/events', { key, body })).json()).toMatchObject({ ok: true })
  }
})
afterAll(() => server[Symbol.asyncDispose]())

async function ask<T>(path: string): Promise<T> {
  const answer = await viewer.call(path)
  expect([path, answer.status]).toEqual([path, 200])
  return (await answer.json()) as T
}

interface Range {
  since: string
  until: string
}

/** Of the range under test. */
let filters: { name: string; value: string }[] = []

function filterEvents({ since, until }: Range, sites: string[]): TestEvent[] {
  return sentEvents.filter((sentEvent) => {
    const { occurredAt, siteId } = sentEvent
    const occurredMs = Date.parse(occurredAt)
    if (!passes(sentEvent, filters)) return false
    return (
      occurredMs >= Date.parse(since) &&
      occurredMs < Date.parse(until) &&
      (sites.length === 0 || sites.includes(siteId))
    )
  })
}

const seenOf = ({ sessionId, siteId, type, occurredAt, agent }: TestEvent) => ({
  sessionId,
  siteId,
  type,
  atMs: Date.parse(occurredAt),
  trust: agent?.trust ?? null,
})

function countsOf(period: PeriodView, isMember: (sentEvent: TestEvent) => boolean): EventCounts {
  const [now, eventsBefore] = [period, period.before].map((range) =>
    filterEvents(range, period.siteIds).filter(isMember),
  )
  const { edges } = period
  const count = (outcome: string | null) => {
    const steps = Array<number>(edges.length - 1).fill(0)
    const hasOutcome = (sentEvent: TestEvent) => outcome === null || sentEvent.outcome === outcome
    for (const sentEvent of now!.filter(hasOutcome)) {
      steps[edges.findLastIndex((edge) => edge <= Date.parse(sentEvent.occurredAt))]! += 1
    }
    return { count: now!.filter(hasOutcome).length, before: eventsBefore!.filter(hasOutcome).length, steps }
  }
  const outcomes = [...new Set([...now!, ...eventsBefore!].map((sentEvent) => sentEvent.outcome))]
  return {
    ...count(null),
    outcomes: Object.fromEntries(outcomes.map((outcomeName) => [outcomeName, count(outcomeName)])),
  }
}

/** `readValue` returns the value of an event; undefined and '' count as a missing field. */
function expectBreakdown(
  breakdown: BreakdownView,
  period: PeriodView,
  readValue: (sentEvent: TestEvent) => string | null | undefined,
): void {
  const values = new Map<string, { count: number; before: number; blocked: number; steps: number[] }>()
  const findCounts = (value: string) => {
    const counts = values.get(value) ?? { count: 0, before: 0, blocked: 0, steps: [] }
    values.set(value, counts)
    return counts
  }
  for (const sentEvent of filterEvents(period, period.siteIds)) {
    const value = readValue(sentEvent)
    if (value == null || value === '') continue
    findCounts(value).count += 1
    if (sentEvent.outcome === 'blocked') findCounts(value).blocked += 1
  }
  for (const sentEvent of filterEvents(period.before, period.siteIds)) {
    const value = readValue(sentEvent)
    if (value != null && value !== '') findCounts(value).before += 1
  }
  const returned = breakdown.rows.map(({ value, count, before: countBefore, outcomes, steps }) => {
    if (steps) expect([value, steps.reduce((sum, stepCount) => sum + stepCount, 0)]).toEqual([value, count])
    return [value, count, countBefore, outcomes['blocked'] ?? 0]
  })
  const counted = [...values].map(([value, valueCounts]) => [
    value,
    valueCounts.count,
    valueCounts.before,
    valueCounts.blocked,
  ])
  const order = (a: unknown[], b: unknown[]) => (String(a[0]) < String(b[0]) ? -1 : 1)
  expect(returned.sort(order)).toEqual(counted.sort(order) as never)
}

const ranges = [
  '?range=24h',
  '?range=7d',
  '?range=30d',
  '?range=30d&siteId=shop',
  '?range=7d&zone=America/St_Johns',
  '?range=90d&zone=Europe/Berlin',
  '?range=12m&zone=Asia/Kathmandu',
  '?range=all&zone=America/New_York',
  '?range=7d&filter=outcome:blocked',
  '?range=30d&filter=type:agent.*&filter=type:authz.evaluated&filter=outcome:success',
  '?range=30d&siteId=shop&filter=vendor:GPTBot&filter=vendor:Operator&filter=tool:cart.add',
  '?range=90d&zone=Europe/Berlin&filter=class:dom&filter=page:/p1',
  '?range=all&filter=vendor:',
  '?range=90d&filter=rule:r1&filter=trust:verified&filter=vendor:constructor',
  `?since=${new Date(Date.now() - 50 * 86_400_000).toISOString().slice(0, 10)}&siteId=shop&siteId=blog`,
]
const isVisit = (one: TestEvent) => one.type === 'agent.detected'
const only =
  (type: string, readValue: (sentEvent: TestEvent) => string | null | undefined) => (sentEvent: TestEvent) =>
    sentEvent.type === type ? readValue(sentEvent) : undefined

test.each(ranges)(
  'every page in %s',
  async (range) => {
    const detect = await ask<DetectCounts>(`/api/detect${range}`)
    const detectPeriod = detect.period
    filters = detectPeriod.filters
    expect([detectPeriod.filters.length, detectPeriod.complete, detectPeriod.expired]).toEqual([
      range.split('filter=').length - 1,
      true,
      0,
    ])
    expect(detect.detected).toEqual(
      countsOf(detectPeriod, (sentEvent) => sentEvent.type === 'agent.detected'),
    )
    expect(detect.missed).toEqual(countsOf(detectPeriod, (sentEvent) => sentEvent.type === 'agent.missed'))
    expect(filterEvents(detectPeriod, detectPeriod.siteIds).length).toBeGreaterThan(
      filters.length > 2 ? 1 : 3,
    )
    expectBreakdown(
      detect.classes,
      detectPeriod,
      only('agent.detected', (sentEvent) => sentEvent.agent?.class),
    )
    expectBreakdown(
      detect.vendors,
      detectPeriod,
      only('agent.detected', (sentEvent) => sentEvent.agent?.vendor),
    )
    expect(await ask<DetectTrust>(`/api/detect/trust${range}`)).toEqual({
      rows: trustModel(sentEvents.map(seenOf), detectPeriod, (index) =>
        passes(sentEvents[index]!, filters),
      ).map(({ events: count, ...row }) => ({ ...row, count })),
      complete: true,
      isTooMuch: false,
    })
    expectBreakdown(
      detect.decided,
      detectPeriod,
      only('authz.evaluated', (sentEvent) => sentEvent.agent?.vendor),
    )
    const auth = await ask<AuthCounts>(`/api/auth${range}`)
    expect(auth.presented).toEqual(
      countsOf(auth.period, (sentEvent) => sentEvent.type === 'auth.identity_presented'),
    )
    expectBreakdown(
      auth.protocols,
      auth.period,
      only('auth.identity_presented', (sentEvent) => sentEvent.metadata.protocol),
    )
    const authz = await ask<AuthzCounts>(`/api/authz${range}`)
    expect(authz.evaluated).toEqual(
      countsOf(authz.period, (sentEvent) => sentEvent.type === 'authz.evaluated'),
    )
    expectBreakdown(
      authz.tools,
      authz.period,
      only('authz.evaluated', (sentEvent) => sentEvent.tool),
    )
    expectBreakdown(
      authz.rules,
      authz.period,
      only('authz.evaluated', (sentEvent) => sentEvent.policy?.ruleId),
    )
    const derived: { [outcome: string]: string } = { blocked: 'deny', success: 'allow' }
    expectBreakdown(
      authz.decisions,
      authz.period,
      only('authz.evaluated', (sentEvent) => sentEvent.policy?.decision ?? derived[sentEvent.outcome]),
    )
    const analytics = await ask<AnalyticsCounts>(`/api/analytics${range}`)
    expect(analytics.all).toEqual(countsOf(analytics.period, () => true))
    for (const type of types) {
      const expected = countsOf(analytics.period, (sentEvent) => sentEvent.type === type)
      if (expected.count + expected.before === 0) expect(analytics.types[type]).toBeUndefined()
      else expect(analytics.types[type]).toEqual(expected)
    }
    // None of these sites has requests, so visits are the unit: other events do not count a page again.
    const { unit, counted, period } = analytics
    const isVisits: Unit = {
      name: 'visits',
      type: 'agent.detected',
      label: 'Visits',
      comparable: true,
      beside: null,
    }
    expect(unit).toEqual(isVisits)
    expect(counted).toEqual(countsOf(period, isVisit))
    expectBreakdown(
      analytics.pages,
      period,
      only('agent.detected', (sentEvent) => sentEvent.metadata.page),
    )
    expectBreakdown(
      analytics.vendors,
      period,
      only('agent.detected', (sentEvent) => sentEvent.agent?.vendor),
    )
    const matrix = await ask<DetectMatrix>(`/api/detect/matrix${range}`)
    expect(matrix.counted).toBe(detect.detected.count)
    expect(matrix.cells.reduce((sum, { count }) => sum + count, 0)).toBe(detect.detected.count)
    filters = []
  },
  30_000,
)

test('days follow the time zone: two events around its midnight are in two days, in UTC in one', async () => {
  const org = await makeOrg(server, 'zones')
  const reader = await person(server, org, 'viewer')
  const late = '2026-10-24T21:59:59.999Z'
  const early = '2026-10-24T22:00:00.000Z' // midnight of Berlin, in summer
  const body = { events: [event('late', { occurredAt: late }), event('early', { occurredAt: early })] }
  const request = { orgId: org.id, kind: 'ingest' as const, label: 'zones', actor: 'cli' }
  const { secret } = await mintKey(server.store, request, server.clock)
  await server.call('/v1/sdk/events', { key: secret, body })
  const time = 'since=2026-09-01T00:00:00Z&until=2026-11-30T00:00:00Z'
  const days = async (zone: string) => {
    const { all: allCounts, period } = (await (
      await reader.call(`/api/analytics?${time}&zone=${zone}`)
    ).json()) as AnalyticsCounts
    const hours = period.edges.slice(1).map((edge, index) => (edge - period.edges[index]!) / hourMs)
    return {
      counts: allCounts.steps.filter((count) => count > 0),
      long: hours.filter((length) => length !== 24),
    }
  }
  expect(await days('Europe/Berlin')).toEqual({ counts: [1, 1], long: [25] })
  expect(await days('UTC')).toEqual({ counts: [2], long: [] })
})

test('invalid filters are rejected by name, and the vendor page uses the vendor of the filters', async () => {
  for (const wrong of ['vendor', 'colour:red', 'constructor:x', `vendor:${'v'.repeat(201)}`]) {
    const answer = await viewer.call(`/api/detect?filter=${encodeURIComponent(wrong)}`)
    expect([wrong, answer.status]).toEqual([wrong, 400])
    expect(await answer.json()).toMatchObject({ error: 'invalid_query', issues: [{ path: 'filter' }] })
  }
  const manyFilters = Array.from({ length: 21 }, (_, n) => `filter=vendor:v${n}`).join('&')
  expect((await viewer.call(`/api/detect?${manyFilters}`)).status).toBe(400)
  const query = 'range=30d&filter=class:dom&filter=page:/p1'
  const detail = await ask<VendorDetail>(`/api/detect/vendor?${query}&vendor=GPTBot`)
  const { period } = await ask<DetectCounts>(`/api/detect?${query}`)
  filters = [...period.filters, { name: 'vendor', value: 'GPTBot' }]
  const periodEvents = filterEvents(period, [])
  filters = []
  expect([detail.unit.name, detail.count]).toEqual(['visits', periodEvents.filter(isVisit).length])
  expect([detail.looked, detail.complete]).toEqual([periodEvents.length, true])
  expect(periodEvents.length).toBeGreaterThan(1)
})

test('months count distinct vendors, sessions and subjects; days count distinct sessions and subjects', async () => {
  const { months, days } = await ask<ActiveAgents>('/api/analytics/active?siteId=shop')
  expect(months).toHaveLength(12)
  const near = (count: number, sourceEvents: TestEvent[], member: (sentEvent: TestEvent) => string) => {
    const exact = new Set(sourceEvents.map(member)).size
    // Of 40 values, which differ every day, two pairs share one of 4,096 registers once in 200 times, four never.
    expect(Math.abs(count - exact)).toBeLessThanOrEqual(Math.max(3, exact * 0.05))
  }
  const ofShop = sentEvents.filter(({ siteId }) => siteId === 'shop')
  const shop = (start: string) => ofShop.filter(({ occurredAt }) => occurredAt.startsWith(start))
  for (const { month, sessions, subjects } of months) {
    near(sessions, shop(month), (sentEvent) => sentEvent.sessionId)
    near(subjects, shop(month), (dayRow) => String((dayRow.metadata as { subject?: unknown }).subject))
  }
  expect(days).toHaveLength(30)
  expect(days.some((sentEvent) => sentEvent.sessions > 5)).toBe(true)
  for (const { day, sessions, subjects } of days) {
    near(sessions, shop(day), (sentEvent) => sentEvent.sessionId)
    near(subjects, shop(day), (sentEvent) => String((sentEvent.metadata as { subject?: unknown }).subject))
  }
  for (const { month, vendors, detections } of months) {
    const detectedEvents = shop(month).filter(({ type }) => type === 'agent.detected')
    // A detection without a vendor counts, as on Detect.
    expect([month, vendors, detections]).toEqual([
      month,
      new Set(detectedEvents.flatMap((sentEvent) => sentEvent.agent?.vendor || [])).size,
      detectedEvents.length,
    ])
  }
})

test.each(['', '&siteId=shop', '&zone=Europe/Berlin'])(
  'durations of calls are within 2 %%, whole and by step%s',
  async (site) => {
    const { period, whole, steps } = await ask<CallDurations>(`/api/analytics/durations?range=30d${site}`)
    const calls = filterEvents(period, period.siteIds).filter(
      (sentEvent) => sentEvent.type === 'tool.executed',
    )
    const expectQuantiles = (quantiles: CallDurations['whole'], callEvents: TestEvent[]) => {
      const exact = callEvents.map((sentEvent) => sentEvent.durationMs).sort((a, b) => a - b)
      if (exact.length === 0) return expect(quantiles).toBeNull()
      expect(quantiles?.count).toBe(exact.length)
      for (const [share, value] of [
        [0.5, quantiles?.p50Ms],
        [0.95, quantiles?.p95Ms],
        [0.99, quantiles?.p99Ms],
      ] as const) {
        const expected = exact[Math.ceil(share * exact.length) - 1] ?? 0
        expect(Math.abs((value ?? 0) - expected)).toBeLessThanOrEqual(Math.max(0.01, expected * 0.0201))
      }
    }
    expect(calls.length).toBeGreaterThan(20)
    expectQuantiles(whole, calls)
    steps.forEach((step, index) => {
      const [startMs = 0, endMs = 0] = period.edges.slice(index, index + 2)
      expectQuantiles(
        step,
        calls.filter((cell) => Date.parse(cell.occurredAt) >= startMs && Date.parse(cell.occurredAt) < endMs),
      )
    })
  },
)

const nameOf = (name: string | null | undefined) => (name ? { name } : 'missing')

test.each(['', '&siteId=blog'])(
  'classes against vendors are those of the posted detections%s',
  async (site) => {
    const matrix = await ask<DetectMatrix>(`/api/detect/matrix?range=30d${site}`)
    const { period } = await ask<DetectCounts>(`/api/detect?range=30d${site}`)
    const detected = filterEvents(period, period.siteIds).filter(
      (sentEvent) => sentEvent.type === 'agent.detected',
    )
    const truth = new Map<string, number>()
    for (const { agent } of detected) {
      const key = JSON.stringify([nameOf(agent?.class), nameOf(agent?.vendor)])
      truth.set(key, (truth.get(key) ?? 0) + 1)
    }
    expect(matrix.counted).toBe(detected.length)
    expect(
      new Map(
        matrix.cells.map((sentEvent) => [
          JSON.stringify([sentEvent.class, sentEvent.vendor]),
          sentEvent.count,
        ]),
      ),
    ).toEqual(truth)
  },
)

test('the detail of a vendor and the identities, from the newest events', async () => {
  const detail = await ask<VendorDetail>('/api/detect/vendor?range=30d&vendor=GPTBot&siteId=blog')
  const { period } = await ask<DetectCounts>('/api/detect?range=30d&siteId=blog')
  const blogEvents = filterEvents(period, ['blog']).filter(
    (sentEvent) => sentEvent.agent?.vendor === 'GPTBot',
  )
  expect([detail.looked, detail.complete, detail.sessions]).toEqual([
    blogEvents.length,
    true,
    new Set(blogEvents.map((classRow) => classRow.sessionId)).size,
  ])
  const times = blogEvents.map((sentEvent) => sentEvent.occurredAt).sort()
  const visits = blogEvents.filter(isVisit).length
  expect([detail.count, detail.firstAt, detail.lastAt]).toEqual([visits, times[0]!, times.at(-1)!])
  expect(detail.classes.reduce((sum, subjectRow) => sum + subjectRow.count, 0)).toBe(visits)
  const { failures, subjects } = await ask<IdentityDetail>('/api/auth/identities?range=30d&siteId=blog')
  const presented = filterEvents(period, ['blog']).filter(
    (sentEvent) => sentEvent.type === 'auth.identity_presented',
  )
  const accepted = presented.filter((sentEvent) => sentEvent.outcome === 'success').length
  expect(subjects.reduce((sum, failureRow) => sum + failureRow.count, 0)).toBe(accepted)
  expect(failures.reduce((sum, earlierEvent) => sum + earlierEvent.count, 0)).toBe(
    presented.length - accepted,
  )
})

test('why: the session before the decision, and the version of the tool at that time', async () => {
  const startMs = Date.now() + hourMs // after the push below
  const tool = (description: string) => ({ siteId: 'shop', tools: [{ name: 'pay', description }] })
  expect((await server.call('/v1/sdk/tools', { key, body: tool('pays') })).status).toBe(202)
  const baseFields = { siteId: 'shop', sessionId: 'why', tool: 'pay' }
  const isoAt = (ms: number) => new Date(startMs + ms).toISOString()
  const events = [
    event('w1', { ...baseFields, type: 'agent.detected', occurredAt: isoAt(0) }),
    event('w2', { ...baseFields, occurredAt: isoAt(10) }),
    event('w3', { ...baseFields, occurredAt: isoAt(20) }),
    event('w4', { ...baseFields, type: 'tool.executed', occurredAt: isoAt(30) }),
    event('w5', { ...baseFields, siteId: 'blog', occurredAt: isoAt(5) }),
  ]
  expect((await server.call('/v1/sdk/events', { key, body: { events } })).status).toBe(202)
  const explanation = await ask<Why>('/api/authz/why/w3')
  expect((explanation.event as { id: string }).id).toBe('w3')
  expect(explanation.earlier.map((one) => (one.event as { id: string }).id)).toEqual(['w2', 'w1'])
  expect(explanation.earlierComplete).toBe(true)
  expect(explanation.tool).toMatchObject({ version: 1, description: 'pays' })
  const early = await ask<Why>('/api/authz/why/e6')
  expect(early.tool).toBeNull()
  for (const id of ['nobody', 'w1']) {
    expect((await viewer.call(`/api/authz/why/${id}`)).status).toBe(404)
  }
})

test('invalid parameters are named; without a session and for another organization there is no data', async () => {
  for (const path of [
    'detect',
    'auth',
    'authz',
    'analytics',
    'analytics/active',
    'detect/matrix',
    'analytics/durations',
    'auth/identities',
  ]) {
    const wrong = await viewer.call(`/api/${path}?range=year`)
    const body = (await wrong.json()) as { error: string; issues: { path: string }[] }
    expect([path, wrong.status, body.error, body.issues[0]?.path]).toEqual([
      path,
      400,
      'invalid_query',
      'range',
    ])
    expect((await server.call(`/api/${path}`)).status).toBe(401)
  }
  const otherOwner = await person(server, await makeOrg(server, 'other'), 'owner')
  const detect = (await (await otherOwner.call('/api/detect?range=30d')).json()) as DetectCounts
  expect([detect.detected.count, detect.vendors.rows]).toEqual([0, []])
  expect((await otherOwner.call('/api/authz/why/w3')).status).toBe(404)
})
