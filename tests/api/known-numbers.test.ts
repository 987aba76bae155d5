/** Numbers of agents and pages are those of a plan at every door: in requests, else in visits, and never in both. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type {
  AnalyticsCounts,
  BreakdownView,
  Changes,
  DetectClaims,
  DetectCounts,
  Totals,
  Unit,
  VendorDetail,
  WeekCounts,
} from '../../server/counts/shapes.ts'
import { mintKey } from '../../server/identity/keys/keys.ts'
import { event } from '../support/events.ts'
import {
  beforeOf,
  countBy,
  inRange,
  lastDays,
  planTraffic,
  type Plan,
  type Planned,
} from '../support/known-traffic.ts'
import { ask } from '../support/mcp.ts'
import { makeOrg, person, type Person } from '../support/people.ts'
import { testServer, type TestServer } from '../support/server.ts'

setDefaultTimeout(60_000) // PostgreSQL may have to start

let server: TestServer
let admin: Person
let plan: Plan
let secret: string

beforeAll(async () => {
  server = await testServer()
  admin = await person(server, server.org, 'admin')
  const key = await server.key('ingest')
  secret = await server.key('secret')
  plan = planTraffic(server.clock.now())
  const headers = { 'content-type': 'text/plain' }
  const path = '/v1/sdk/access-logs?siteId=shop'
  const logged = await server.call(path, { method: 'POST', key, body: plan.log, headers })
  expect(await logged.json()).toMatchObject({ ok: true, bad: 0 })
  const sent = await server.call('/v1/sdk/events', { key, body: { events: plan.events } })
  expect(await sent.json()).toMatchObject({ ok: true })
})
afterAll(() => server[Symbol.asyncDispose]())

interface Truth {
  site: string | null
  unit: 'requests' | 'visits'
  counted: Planned[]
  before: Planned[]
  count(type: Planned['type'], outcome?: Planned['outcome']): number
}

/** What the plan says of a site, null for all, in the last 7 days. */
function truthOf(site: string | null): Truth {
  const range = lastDays(server.clock.now())
  const unit = site === 'blog' ? 'visits' : 'requests'
  const type = unit === 'visits' ? 'agent.detected' : 'agent.requested'
  const isOfSite = (one: Planned) => site === null || one.siteId === site
  const isCounted = (one: Planned) => isOfSite(one) && one.type === type
  return {
    site,
    unit,
    counted: inRange(plan, range, isCounted),
    before: inRange(plan, beforeOf(range), isCounted),
    count: (wanted, outcome) => {
      const isWanted = (one: Planned) => one.type === wanted && (outcome ?? one.outcome) === one.outcome
      return inRange(plan, range, (one) => isOfSite(one) && isWanted(one)).length
    },
  }
}

const sites: [name: string, site: string | null][] = [
  ['shop', 'shop'],
  ['blog', 'blog'],
  ['all sites', null],
]
const queryOf = (site: string | null) => (site === null ? '?range=7d' : `?range=7d&siteId=${site}`)

async function read<T>(path: string, reader = admin): Promise<T> {
  const answer = await reader.call(path)
  expect([path, answer.status]).toEqual([path, 200])
  return (await answer.json()) as T
}

const valuesOf = ({ rows }: BreakdownView) =>
  Object.fromEntries(rows.filter(({ count }) => count > 0).map(({ value, count }) => [value, count]))

const valuesBefore = ({ rows }: BreakdownView) =>
  Object.fromEntries(rows.filter(({ before }) => before > 0).map(({ value, before }) => [value, before]))

/** All sites: visits of the site without requests stand beside. */
function expectUnit(unit: Unit, { site, unit: name }: Truth): void {
  const visits = truthOf('blog').counted.length
  expect([unit.name, unit.comparable]).toEqual([name, true])
  expect(unit.beside).toEqual(site === null ? { visits, sites: 1 } : null)
}

test('the plan has what would be counted twice: every page of a visit is a request and a detection', () => {
  const { counted, count } = truthOf('shop')
  expect(counted.length).toBeGreaterThan(40)
  expect(count('agent.detected')).toBeGreaterThan(20)
  expect(truthOf('blog').counted).toHaveLength(9)
})

test.each(sites)('Analytics, Overview, Detect and the navigation: %s', async (_, site) => {
  const truth = truthOf(site)
  const range = lastDays(server.clock.now())
  const analytics = await read<AnalyticsCounts>(`/api/analytics${queryOf(site)}`)
  expect(Date.parse(analytics.period.since)).toBe(range.sinceMs)
  expectUnit(analytics.unit, truth)
  expect([analytics.counted.count, analytics.counted.before]).toEqual([
    truth.counted.length,
    truth.before.length,
  ])
  expect(valuesOf(analytics.pages)).toEqual(countBy(truth.counted, 'page'))
  expect(valuesBefore(analytics.pages)).toEqual(countBy(truth.before, 'page'))
  expect(valuesOf(analytics.vendors)).toEqual(countBy(truth.counted, 'vendor'))
  const outcomes = Object.entries(analytics.counted.outcomes).filter(([, { count }]) => count > 0)
  expect(Object.fromEntries(outcomes.map(([name, { count }]) => [name, count]))).toEqual(
    countBy(truth.counted, 'outcome'),
  )

  const week = await read<WeekCounts>(`/api/week${queryOf(site)}`)
  expectUnit(week.unit, truth)
  expect(week.headlines).toEqual(analytics.headlines)
  const shown = Object.fromEntries(week.headlines.map(({ name, count }) => [name, count]))
  expect(shown).toEqual(headlinesOf(truth))

  const detect = await read<DetectCounts>(`/api/detect${queryOf(site)}`)
  expect([detect.requested.count, detect.detected.count, detect.referred.count]).toEqual([
    truth.count('agent.requested'),
    truth.count('agent.detected'),
    truth.count('agent.referred'),
  ])
  const totals = await read<Totals>(`/api/totals${queryOf(site)}`)
  expectUnit(totals.unit, truth)
  for (const { totals: byType } of [totals, detect, analytics])
    expect(byType[analytics.unit.type]).toBe(truth.counted.length)
  if (truth.unit === 'visits') return
  const claims = await read<DetectClaims>(`/api/detect/claims${queryOf(site)}`)
  expect(claims.agents.reduce((sum, { requests }) => sum + requests, 0)).toBe(truth.counted.length)
  expect(claims.pages.reduce((sum, { requests }) => sum + requests, 0)).toBe(truth.counted.length)
  expect(claims.pages.find(({ page }) => page === '/pricing')?.requests).toBe(
    countBy(truth.counted, 'page')['/pricing'],
  )
})

/** Each number is of one type; those without events are left out. */
function headlinesOf({ unit, count }: Truth): Record<string, number> {
  const all = {
    ...(unit === 'requests' && {
      Requests: count('agent.requested'),
      Refused: count('agent.requested', 'blocked'),
      Failed: count('agent.requested', 'error'),
    }),
    Visits: count('agent.detected'),
    ...(unit === 'requests' && {
      Referrals: count('agent.referred'),
      Decisions: count('authz.evaluated'),
      Blocked: count('authz.evaluated', 'blocked'),
      'Tool calls': count('tool.executed'),
      'Tool errors': count('tool.executed', 'error'),
    }),
  }
  return all
}

test.each(['OpenAI', 'Anthropic'])('the dialog of a vendor: %s', async (vendor) => {
  const detail = await read<VendorDetail>(`/api/detect/vendor?range=7d&siteId=shop&vendor=${vendor}`)
  const mine = truthOf('shop').counted.filter((one) => one.vendor === vendor)
  expect([detail.unit.name, detail.count]).toEqual(['requests', mine.length])
  const pages = Object.fromEntries(detail.pages.map(({ name, count }) => [name, count]))
  expect(pages).toEqual(countBy(mine, 'page'))
})

/** The rows of a table of a report or a shared page, as the numbers of their first column by name. */
function tableOf(html: string, title: string): { unit: string; rows: Record<string, number> } {
  const section = html.split('<section').find((text) => text.includes(`<h2>${title}</h2>`)) ?? ''
  const cellsOf = (row: string) =>
    [...row.matchAll(/<t[hd][^>]*>(.*?)<\/t[hd]>/g)].map(([, cell = '']) => cell.replace(/<[^>]*>/g, ''))
  const [head = [], ...rows] = section.split('<tr>').slice(1).map(cellsOf)
  const named = rows.map(([name = '', count = '']) => [name, Number(count.replaceAll(',', ''))])
  return { unit: head[1] ?? '', rows: Object.fromEntries(named) }
}

/** Names and numbers of the headlines of a report or a shared page. */
function shownHeadlines(html: string): Record<string, number> {
  const found = [...html.matchAll(/<dt>(.*?)<\/dt><dd>(?:<b>)?([\d,]+)/g)]
  return Object.fromEntries(
    found.map(([, name = '', count = '']) => [
      name.replace(/<[^>]*>/g, ''),
      Number(count.replaceAll(',', '')),
    ]),
  )
}

const label = { requests: 'Requests', visits: 'Visits' } as const

function expectTables(html: string, truth: Truth, vendors: string): void {
  const unit = label[truth.unit]
  expect(tableOf(html, 'Pages')).toEqual({ unit, rows: countBy(truth.counted, 'page') })
  expect(tableOf(html, vendors)).toEqual({ unit, rows: countBy(truth.counted, 'vendor') })
  expect(html).toContain(`${unit} per 3 hours, by outcome`)
  expect(html.includes('without requests are not included')).toBe(truth.site === null)
}

test.each(sites)('the report and the shared pages: %s', async (_, site) => {
  const truth = truthOf(site)
  const report = await admin.post(`/api/reports${queryOf(site)}`)
  const html = await report.text()
  expectTables(html, truth, 'Operators')
  expect(shownHeadlines(html)).toEqual(headlinesOf(truth))

  const share = async (fields: object) => {
    const made = await admin.post('/api/share-links', { name: 'Known', days: 7, ...fields })
    const { token } = (await made.json()) as { token: string }
    return (await server.call(`/share/${token}`)).text()
  }
  const shared = await share({ page: 'analytics', search: queryOf(site) })
  expectTables(shared, truth, 'Vendors')
  expect(shownHeadlines(shared)).toEqual(headlinesOf(truth))
  if (site !== null) return
  const overview = await share({ page: 'overview', search: '' })
  expect(shownHeadlines(overview)).toEqual(headlinesOf(truth))
})

test.each(sites)('MCP: %s', async (_, site) => {
  const truth = truthOf(site)
  const range = { last: '7d', ...(site !== null && { siteId: [site] }) }
  const visits = truthOf('blog').counted.length
  const expected = {
    count: truth.counted.length,
    unit: truth.unit,
    beside: site === null ? { visits, sites: 1 } : null,
    range: { since: new Date(lastDays(server.clock.now()).sinceMs).toISOString() },
  }
  for (const by of ['page', 'vendor'] as const) {
    const answer = await ask(server.call, secret, 'count', { ...range, by })
    expect(answer).toMatchObject(expected)
    const rows = answer['rows'] as { untrusted: string; count: number }[]
    expect(Object.fromEntries(rows.map((row) => [row.untrusted, row.count]))).toEqual(
      countBy(truth.counted, by),
    )
  }
  const timeline = await ask(server.call, secret, 'timeline', range)
  expect(timeline).toMatchObject(expected)
  const points = timeline['points'] as { count: number }[]
  expect(points.reduce((sum, { count }) => sum + count, 0)).toBe(truth.counted.length)
  expect(await ask(server.call, secret, 'describe_record', range)).toMatchObject(expected)
  const asked = { ...range, vendor: 'OpenAI' }
  const mine = truth.counted.filter(({ vendor }) => vendor === 'OpenAI').length
  expect(await ask(server.call, secret, 'count', asked)).toMatchObject({ count: mine, unit: truth.unit })
  const type = ['agent.requested', 'agent.detected']
  const both = truth.count('agent.requested') + truth.count('agent.detected')
  const events = await ask(server.call, secret, 'count', { ...range, type })
  expect(events).toMatchObject({ count: both, unit: 'events', beside: null })
})

test('a new operator is counted in its unit, not in events', async () => {
  const org = await makeOrg(server, 'Newcomers')
  const key = await keyOf(org.id)
  const reader = await person(server, org, 'viewer')
  const now = server.clock.now()
  const at = (hours: number) => new Date(now - hours * 3_600_000).toISOString()
  const one = (id: string, type: string, vendor: string, hours: number) =>
    event(id, { type, occurredAt: at(hours), outcome: 'success', agent: { class: 'crawler', vendor } })
  const events = [
    one('known', 'agent.requested', 'Known', 40),
    ...['a', 'b', 'c'].map((id) => one(id, 'agent.requested', 'Asker', 2)),
    one('d', 'agent.detected', 'Asker', 2),
    one('e', 'agent.detected', 'Visitor', 2),
    one('f', 'tool.executed', 'Visitor', 2),
  ]
  expect((await server.call('/v1/sdk/events', { key, body: { events } })).status).toBe(202)
  const { changes } = await read<Changes>('/api/changes', reader)
  const counts = changes.filter(({ kind }) => kind === 'operator')
  expect(counts.map(({ name, count, unit }) => [name, count, unit])).toEqual([
    ['Asker', 3, 'requests'],
    ['Visitor', 1, 'visits'],
  ])
  for (const { count, steps } of counts) expect(steps.reduce((sum, step) => sum + step, 0)).toBe(count)
})

async function keyOf(orgId: string): Promise<string> {
  const request = { orgId, kind: 'ingest' as const, label: 'test', actor: 'cli' }
  return (await mintKey(server.store, request, server.clock)).secret
}

test('a site that had only visits before and has requests now is not compared, nor one that lost its requests', async () => {
  const org = await makeOrg(server, 'Switched')
  const key = await keyOf(org.id)
  const reader = await person(server, org, 'analyst')
  const now = server.clock.now()
  const made = (siteId: string, type: string, daysAgo: number, n: number) =>
    event(`${siteId}-${type}-${daysAgo}-${n}`, {
      siteId,
      type,
      outcome: 'success',
      metadata: { page: '/' },
      occurredAt: new Date(now - daysAgo * 86_400_000).toISOString(),
      agent: { class: 'crawler', vendor: 'OpenAI' },
    })
  const several = (count: number, ...[siteId, type, daysAgo]: [string, string, number]) =>
    Array.from({ length: count }, (_, n) => made(siteId, type, daysAgo, n))
  const events = [
    ...several(8, 'began', 'agent.requested', 2),
    ...several(3, 'began', 'agent.detected', 9),
    ...several(2, 'ended', 'agent.detected', 2),
    ...several(5, 'ended', 'agent.requested', 9),
    ...several(4, 'silent', 'agent.requested', 9),
    ...several(6, 'steady', 'agent.requested', 2),
    ...several(7, 'steady', 'agent.requested', 9),
  ]
  expect((await server.call('/v1/sdk/events', { key, body: { events } })).status).toBe(202)
  const unitOf = async (site: string | null) => {
    const { unit, counted, headlines } = await read<WeekCounts>(`/api/week${queryOf(site)}`, reader)
    const { before } = headlines[0]!
    return [unit.name, counted.count, unit.comparable ? counted.before : null, before]
  }
  expect(await unitOf('began')).toEqual(['requests', 8, null, null])
  expect(await unitOf('ended')).toEqual(['visits', 2, null, null])
  expect(await unitOf('silent')).toEqual(['requests', 0, 4, 4])
  expect(await unitOf('steady')).toEqual(['requests', 6, 7, 7])
  expect(await unitOf(null)).toEqual(['requests', 14, null, null])
  const report = async (site: string) => (await reader.post(`/api/reports${queryOf(site)}`)).text()
  expect(await report('began')).toContain('<td>not comparable</td>')
  expect(await report('steady')).not.toContain('not comparable')
})

test('the table of doors in web/DESIGN.md names every door', async () => {
  const text = await Bun.file(new URL('../../web/DESIGN.md', import.meta.url).pathname).text()
  const table = text.slice(text.indexOf('| where '), text.indexOf('| word '))
  const doors = [...table.matchAll(/^\| (.+?) +\|/gm)].map(([, name]) => name)
  expect(doors.slice(2)).toEqual([
    'Navigation',
    'Overview',
    'Analytics',
    'Detect',
    'Dialog of a vendor',
    'Report, its mail and message',
    'Share links',
    'CSV of Analytics and of Detect',
    'MCP `count` and `timeline`',
    'Alert rules and their texts',
    'Logs, Explore',
  ])
})
