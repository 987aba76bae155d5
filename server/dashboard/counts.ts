/** The counts of each page: its events, and the breakdowns by field. */
import type { Store } from '../../db/contract/store.ts'
import { agentRows } from './detections.ts'
import { cut, type CutQuery } from './cut.ts'
import { hourlyFilter } from './dimensions.ts'
import { type Filtered, filteredCounts } from './filtered.ts'
import { type Period, periodView } from './period.ts'
import type { AnalyticsCounts, AuthCounts, AuthzCounts, Cut, DetectCounts, Totals } from './shapes.ts'
import { emptyTally, totalsOf, typeCounts } from './period-counts.ts'

export interface CountScope {
  store: Pick<Store, 'events' | 'sites'>
  orgId: string
  period: Period
  rowsMax?: number // of each breakdown
}

/** The counts of a page and its breakdowns, from hourly counts, or under filters from the events. */
async function counted<K extends string>(scope: CountScope, queries: { [name in K]: CutQuery }) {
  const { store, orgId, period, rowsMax } = scope
  const names = Object.keys(queries) as K[]
  const all = names.map((name): CutQuery => ({ ...queries[name], ...(rowsMax !== undefined && { rowsMax }) }))
  const [sites, { counts, cuts, ...limits }] = await Promise.all([
    store.sites.list(orgId),
    fromHours(scope, all) ?? filteredCounts(store.events, orgId, period, period.filter!, all),
  ])
  return {
    shared: { period: { ...periodView(period, sites), ...limits }, totals: totalsOf(counts) },
    counts,
    tally: (type: string) => counts.types.get(type) ?? emptyTally(period),
    found: Object.fromEntries(names.map((name, index) => [name, cuts[index]])) as { [name in K]: Cut },
  }
}

/** Null where hourly counts do not suffice. They include events that retention deleted since. */
function fromHours({ store, orgId, period }: CountScope, queries: CutQuery[]): Promise<Filtered> | null {
  const only = period.filter === undefined ? {} : hourlyFilter(period.filter)
  if (only === null) return null
  return Promise.all([
    typeCounts(store.events, orgId, period, only),
    Promise.all(queries.map((query) => cut(store.events, orgId, period, query, only))),
  ]).then(([counts, cuts]) => ({ counts, cuts, expired: 0, complete: true }))
}

/** Events by type, as GET /v1/metrics counts them, for pages without counts of their own. */
export async function periodTotals({ store, orgId, period }: CountScope): Promise<Totals> {
  const { sinceMs, untilMs, siteIds } = period
  const [sites, { byType }] = await Promise.all([
    store.sites.list(orgId),
    store.events.metrics({ orgId, sinceMs, untilMs, ...(siteIds && { siteIds }), rowsMax: 1 }),
  ])
  return { period: periodView(period, sites), totals: byType }
}

export async function detectCounts(scope: CountScope): Promise<DetectCounts> {
  const types = ['agent.detected']
  const [{ shared, tally, found }, agents] = await Promise.all([
    counted(scope, {
      classes: { by: 'class', types, stepped: true },
      vendors: { by: 'vendor', types, stepped: true },
      decided: { by: 'vendor', types: ['authz.evaluated'] },
      names: { by: 'name', types },
      purposes: { by: 'purpose', types },
    }),
    agentRows(scope.store.events, scope),
  ])
  const detected = tally('agent.detected')
  return { ...shared, detected, missed: tally('agent.missed'), agents, ...found }
}

export async function authCounts(scope: CountScope): Promise<AuthCounts> {
  const types = ['auth.identity_presented']
  const { shared, tally, found } = await counted(scope, {
    protocols: { by: 'protocol', types, stepped: true },
    trusts: { by: 'trust', types, stepped: true },
    vendors: { by: 'vendor', types },
  })
  return {
    ...shared,
    presented: tally('auth.identity_presented'),
    cleared: tally('auth.identity_cleared'),
    ...found,
  }
}

/** A denial is one `authz.evaluated`; the blocked tool call that follows does not count again. */
export async function authzCounts(scope: CountScope): Promise<AuthzCounts> {
  const types = ['authz.evaluated']
  const { shared, tally, found } = await counted(scope, {
    decisions: { by: 'decision', types, stepped: true },
    tools: { by: 'tool', types },
    rules: { by: 'ruleId', types },
    reasons: { by: 'reason', types },
    vendors: { by: 'vendor', types },
  })
  return { ...shared, evaluated: tally('authz.evaluated'), ...found }
}

export async function analyticsCounts(scope: CountScope): Promise<AnalyticsCounts> {
  const { shared, counts, found } = await counted(scope, {
    classes: { by: 'class' },
    vendors: { by: 'vendor' },
    tools: { by: 'tool', types: ['tool.executed'] },
    pages: { by: 'page' },
    protocols: { by: 'protocol', types: ['auth.identity_presented'] },
    rules: { by: 'ruleId', types: ['authz.evaluated'] },
  })
  return { ...shared, all: counts.all, types: Object.fromEntries(counts.types), ...found }
}
