/** The counts of each page: its events, the breakdowns by field, durations of tool calls and active agents. */
import { agentRows } from './detections.ts'
import {
  fieldBreakdown,
  emptyCounts,
  filteredCounts,
  totalsOf,
  typeCounts,
  type FieldBreakdownQuery,
  type Filtered,
  type TypeCounts,
} from './period-counts.ts'
import { hourlyFilter, periodView, stepAt, stepCount, type CountScope, type Period } from './period.ts'
import { headlineCounts } from './headlines.ts'
import { rangeUnit } from './unit.ts'
import { judgedSince } from '../evidence/judged-since.ts'
import { isoTime } from '../clock.ts'
import { edgesOf, steps } from '../text/time-zone.ts'
import type { Judgement } from '../../db/contract/provenance.ts'
import type { Durations } from '../../db/contract/store.ts'
import type {
  ActiveAgents,
  AnalyticsCounts,
  AuthCounts,
  AuthzCounts,
  CallDurations,
  BreakdownView,
  DetectCounts,
  DetectRequests,
  JudgementCount,
  Totals,
  Unit,
  Unjudged,
  WeekCounts,
} from './shapes.ts'
import { dayMs } from '../../db/contract/units.ts'

/** The counts of a page and its breakdowns, from hourly counts, or under filters from the events. */
async function counted<K extends string>(
  scope: CountScope,
  queries: { [name in K]: FieldBreakdownQuery },
  decidedUnit?: Unit,
) {
  const { store, orgId, period, rowsMax } = scope
  const names = Object.keys(queries) as K[]
  const fieldQueries = names.map((name): FieldBreakdownQuery => ({
    ...(rowsMax !== undefined && { rowsMax }),
    ...queries[name],
  }))
  const [sites, unit, { counts, breakdowns, ...limits }] = await Promise.all([
    store.sites.list(orgId),
    decidedUnit ?? rangeUnit(store.events, orgId, period),
    fromHours(scope, fieldQueries) ??
      filteredCounts(store.events, orgId, period, period.filter!, fieldQueries),
  ])
  return {
    shared: { period: { ...periodView(period, sites), ...limits }, totals: totalsOf(counts), unit },
    counts,
    countsOf: (type: string) => counts.types.get(type) ?? emptyCounts(period),
    found: Object.fromEntries(names.map((name, index) => [name, breakdowns[index]])) as {
      [name in K]: BreakdownView
    },
  }
}

/** Null where hourly counts do not suffice. They include events that retention deleted since. */
function fromHours(
  { store, orgId, period }: CountScope,
  queries: FieldBreakdownQuery[],
): Promise<Filtered> | null {
  const only = period.filter === undefined ? {} : hourlyFilter(period.filter)
  if (only === null) return null
  return Promise.all([
    typeCounts(store.events, orgId, period, only),
    Promise.all(queries.map((query) => fieldBreakdown(store.events, orgId, period, query, only))),
  ]).then(([counts, breakdowns]) => ({ counts, breakdowns, expired: 0, complete: true }))
}

/** Events by type, as GET /v1/metrics counts them, for pages without counts of their own. */
export async function periodTotals(scope: CountScope): Promise<Totals> {
  const { store, orgId, period } = scope
  const { sinceMs, untilMs, siteIds } = period
  const [sites, unit, { byType }] = await Promise.all([
    store.sites.list(orgId),
    rangeUnit(store.events, orgId, period),
    store.events.metrics({ orgId, sinceMs, untilMs, ...(siteIds && { siteIds }), rowsMax: 1 }),
  ])
  return { period: periodView(period, sites), totals: byType, unit }
}

export async function detectCounts(scope: CountScope): Promise<DetectCounts> {
  const types = ['agent.detected']
  const [{ shared, countsOf, found: breakdowns }, agents] = await Promise.all([
    counted(scope, {
      classes: { by: 'class', types, stepped: true },
      vendors: { by: 'vendor', types, stepped: true },
      decided: { by: 'vendor', types: ['authz.evaluated'] },
      names: { by: 'name', types },
      purposes: { by: 'purpose', types, stepped: true },
    }),
    agentRows(scope.store.events, scope),
  ])
  return {
    ...shared,
    detected: countsOf('agent.detected'),
    missed: countsOf('agent.missed'),
    requested: countsOf('agent.requested'),
    referred: countsOf('agent.referred'),
    agents,
    ...breakdowns,
  }
}

export async function detectRequests(scope: CountScope): Promise<DetectRequests> {
  const types = ['agent.requested']
  const [{ found: breakdowns }, totals, judges] = await Promise.all([
    counted(scope, {
      verdicts: { by: 'vouched', types, stepped: true },
      judgements: { by: 'judgement', types, rowsMax: judgementsMax },
      purposes: { by: 'purpose', types, stepped: true },
      referrers: { by: 'name', types: ['agent.referred'], stepped: true },
    }),
    allRequests(scope),
    judgesOf(scope),
  ])
  return { ...breakdowns, ...judgementsOf(breakdowns, judges), all: totals }
}

/** As many as a breakdown has: verdicts times keys. */
const judgementsMax = 1_000

interface Judges {
  labels: ReadonlyMap<string, string> // of ingest keys, by id
  sinceMs: number | null
}

async function judgesOf({ store, orgId }: CountScope): Promise<Judges> {
  const [keys, sinceMs] = await Promise.all([store.keys.list({ orgId, kind: 'ingest' }), judgedSince(store)])
  return { labels: new Map(keys.map(({ id, label }) => [id, label])), sinceMs }
}

/** `verdicts` are those that the appliance vouches for: what exceeds its own was stored before judges were recorded. */
function judgementsOf(
  { verdicts, judgements }: { verdicts: BreakdownView; judgements: BreakdownView },
  { labels, sinceMs }: Judges,
): { judgements: JudgementCount[]; unjudged: Unjudged | null } {
  const counts = judgements.rows.flatMap(({ value, count, before: previousCount }): JudgementCount[] => {
    if (value === null) return []
    const judgement = JSON.parse(value) as Judgement
    const label = judgement.by === null ? null : (labels.get(judgement.by) ?? null)
    return [{ ...judgement, label, count, before: previousCount }]
  })
  const vouched = verdicts.rows.reduce((sum, { count }) => sum + count, verdicts.more?.count ?? 0)
  const applianceCount = counts.reduce(
    (sum, { judgedBy, count }) => (judgedBy === 'appliance' ? sum + count : sum),
    0,
  )
  // Between the two reads more events may arrive.
  const count = Math.max(0, vouched - applianceCount)
  const hasUnjudged = count > 0 && (sinceMs !== null || applianceCount === 0)
  const judgedSinceTime = sinceMs === null ? null : isoTime(sinceMs)
  return { judgements: counts, unjudged: hasUnjudged ? { count, before: judgedSinceTime } : null }
}

/** All requests of the access logs; they have no fields to filter by. */
async function allRequests({ store, orgId, period }: CountScope): Promise<DetectRequests['all']> {
  if (period.filter) return null
  const query = { orgId, ...(period.siteIds && { siteIds: period.siteIds }) }
  const [now, previousTotals] = await Promise.all(
    [period, period.before].map(async ({ sinceMs, untilMs }) => {
      const { bySite } = await store.accessLogs.counts({ ...query, sinceMs, untilMs })
      return bySite.reduce(
        ({ requests, agents }, { agent, person, asset, bot }) => ({
          requests: requests + agent.requests + person.requests + asset.requests + bot.requests,
          agents: agents + agent.requests,
        }),
        { requests: 0, agents: 0 },
      )
    }),
  )
  if (now!.requests === 0) return null
  const total = (measure: 'requests' | 'agents') => ({
    count: now![measure],
    before: previousTotals![measure],
  })
  return { requests: total('requests'), agents: total('agents') }
}

export async function authCounts(scope: CountScope): Promise<AuthCounts> {
  const types = ['auth.identity_presented']
  const {
    shared,
    countsOf,
    found: breakdowns,
  } = await counted(scope, {
    protocols: { by: 'protocol', types, stepped: true },
    trusts: { by: 'trust', types, stepped: true },
    vendors: { by: 'vendor', types },
  })
  return {
    ...shared,
    presented: countsOf('auth.identity_presented'),
    cleared: countsOf('auth.identity_cleared'),
    ...breakdowns,
  }
}

/** A denial is one `authz.evaluated`; the blocked tool call that follows does not count again. */
export async function authzCounts(scope: CountScope): Promise<AuthzCounts> {
  const types = ['authz.evaluated']
  const {
    shared,
    countsOf,
    found: breakdowns,
  } = await counted(scope, {
    decisions: { by: 'decision', types, stepped: true },
    tools: { by: 'tool', types },
    rules: { by: 'ruleId', types },
    reasons: { by: 'reason', types },
    vendors: { by: 'vendor', types },
  })
  return { ...shared, evaluated: countsOf('authz.evaluated'), ...breakdowns }
}

function byType(unit: Unit, counts: TypeCounts): Pick<WeekCounts, 'all' | 'types' | 'headlines'> {
  const types = Object.fromEntries(counts.types)
  return { all: counts.all, types, headlines: headlineCounts({ types, unit }) }
}

/** Overview's week: counts by type, without breakdowns. */
export async function weekCounts(scope: CountScope): Promise<WeekCounts> {
  const { shared, counts, countsOf } = await counted(scope, {})
  return { ...shared, ...byType(shared.unit, counts), counted: countsOf(shared.unit.type) }
}

export async function analyticsCounts(scope: CountScope): Promise<AnalyticsCounts> {
  const unit = await rangeUnit(scope.store.events, scope.orgId, scope.period)
  const types = [unit.type]
  const queries = {
    classes: { by: 'class', types },
    vendors: { by: 'vendor', types },
    tools: { by: 'tool', types: ['tool.executed'] },
    pages: { by: 'page', types },
    protocols: { by: 'protocol', types: ['auth.identity_presented'] },
    rules: { by: 'ruleId', types: ['authz.evaluated'] },
  } satisfies { [name: string]: FieldBreakdownQuery }
  const { shared, counts, countsOf, found } = await counted(scope, queries, unit)
  return { ...shared, ...byType(unit, counts), counted: countsOf(unit.type), ...found }
}

/**
 * The store has sketches per UTC day beside those per hour, and reads a month of them thirty times as fast. Ranges that
 * are long enough to need them use UTC steps in every time zone.
 */
function stepsOf(period: Period): Period {
  const days = (period.untilMs - period.sinceMs) / dayMs
  if (days <= 8) return period
  const zone = days <= 42 ? period.zone : 'UTC'
  const step = steps[period.step].hours > steps.day.hours ? period.step : 'day'
  const { sinceMs, untilMs } = period
  const whole = edgesOf(sinceMs, untilMs, step, zone)
  // The first step is cut, as on the page, so that both count the same range.
  const edges = [sinceMs, ...whole.edges.filter((edge) => edge > sinceMs)]
  return { ...period, zone, step, edges, onTheHour: whole.onTheHour }
}

/** All tools together, over the whole period and per step. */
export async function callDurations({ store, orgId, period: scope }: CountScope): Promise<CallDurations> {
  const period = stepsOf(scope)
  const { sinceMs, untilMs, edges, siteIds } = period
  const query = {
    orgId,
    types: ['tool.executed'],
    sinceMs,
    untilMs,
    together: true,
    ...(siteIds && { siteIds }),
  }
  const [sites, whole, stepped] = await Promise.all([
    store.sites.list(orgId),
    store.events.durations({ ...query, stepMs: null }),
    store.events.durations({ ...query, stepMs: null, edges }),
  ])
  const stepQuantiles = Array<CallDurations['whole']>(stepCount(period)).fill(null)
  for (const row of stepped.rows) stepQuantiles[stepAt(period, row.startMs)] = quantiles(row)
  return {
    period: periodView(period, sites),
    whole: whole.rows[0] ? quantiles(whole.rows[0]) : null,
    steps: stepQuantiles,
  }
}

function quantiles({ count, p50Ms, p95Ms, p99Ms }: Durations['rows'][number]) {
  return { count, p50Ms, p95Ms, p99Ms }
}

const monthsShown = 12
const daysShown = 30

/** A month is not the sum of its days: an agent active on several days counts once. */
export async function activeAgents(scope: CountScope): Promise<ActiveAgents> {
  const { period } = scope
  const now = new Date(period.nowMs)
  const startOf = (back: number) => Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back, 1)
  const backs = Array.from({ length: monthsShown }, (_, index) => monthsShown - 1 - index)
  const today = Math.floor(period.nowMs / dayMs) * dayMs
  const firstDay = today - (daysShown - 1) * dayMs
  const edges = [...backs, -1].map(startOf)
  const [vendors, detections, monthly, daily] = await Promise.all([
    vendorsByStep(scope, edges),
    Promise.all(backs.map((back) => detectionsIn(scope, startOf(back), startOf(back - 1)))),
    distinct(scope, startOf(monthsShown - 1), startOf(-1), 'month'),
    distinct(scope, firstDay, today + dayMs, 'day'),
  ])
  return {
    months: backs.map((back, index) => ({
      month: isoTime(startOf(back)).slice(0, 7),
      vendors: vendors(startOf(back)),
      detections: detections[index]!,
      ...monthly(startOf(back)),
    })),
    days: Array.from({ length: daysShown }, (_, index) => {
      const startMs = firstDay + index * dayMs
      return { day: isoTime(startMs).slice(0, 10), ...daily(startMs) }
    }),
    now: isoTime(period.nowMs),
  }
}

const detected = ['agent.detected']

/** How many vendors were detected in each step, by its start. */
async function vendorsByStep({ store, orgId, period }: CountScope, edges: number[]) {
  const query = { orgId, sinceMs: edges[0]!, untilMs: edges.at(-1)!, edges, stepMs: null }
  const sites = period.siteIds && { siteIds: period.siteIds }
  const { rows } = await store.events.breakdown({ ...query, ...sites, by: 'vendor', types: detected })
  const byStep = Map.groupBy(
    rows.filter(({ value }) => value !== null),
    ({ startMs }) => startMs,
  )
  return (startMs: number): number => new Set(byStep.get(startMs)?.map(({ value }) => value)).size
}

/** With and without a vendor, from the sums of whole days. */
async function detectionsIn({ store, orgId, period }: CountScope, sinceMs: number, untilMs: number) {
  const query = { orgId, sinceMs, untilMs, ...(period.siteIds && { siteIds: period.siteIds }) }
  const { rows } = await store.events.classVendor({ ...query, types: detected })
  return rows.reduce((sum, { count }) => sum + count, 0)
}

async function distinct(
  { store, orgId, period: { siteIds } }: CountScope,
  sinceMs: number,
  untilMs: number,
  step: 'day' | 'month',
) {
  const query = { orgId, sinceMs, untilMs, step, ...(siteIds && { siteIds }) }
  const [sessions, subjects] = await Promise.all([
    store.events.distinct({ ...query, of: 'session' }),
    store.events.distinct({ ...query, of: 'subject' }),
  ])
  const countAt = (rows: typeof sessions.rows, startMs: number) =>
    rows.find((row) => row.startMs === startMs)?.count ?? 0
  return (startMs: number) => ({
    sessions: countAt(sessions.rows, startMs),
    subjects: countAt(subjects.rows, startMs),
  })
}
