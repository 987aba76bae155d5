/** Tool calls over a period, by site. Counted from events, so unregistered tools appear too. */
import { isoTime } from '../../clock.ts'
import { emptyTally, totalsOf, typeCounts } from '../../dashboard/period-counts.ts'
import { periodView, type Period } from '../../dashboard/period.ts'
import { limits } from '../../limits.ts'
import type { Breakdown, Durations, Store } from '../../../db/contract/store.ts'
import type { Quantiles, Tally, Totals } from '../../dashboard/shapes.ts'

/** Calls of one tool name at one site, registered or not. */
export interface ToolCallRow {
  siteId: string
  name: string | null // null: all names beyond 1,000 per hour
  count: number
  before: number // in the previous period
  outcomes: { [outcome: string]: number }
  lastHour: string | null // the hour of the last call in the period
  took: Quantiles | null // null: no call had a duration
}

export interface ToolCalls extends Totals {
  executed: Tally
  rows: ToolCallRow[]
  sitesLeftOut: number // sites with tools that were not counted
}

const types = ['tool.executed']

/** A breakdown does not separate sites, so each site has its own query. */
export async function toolCalls(
  { store }: { store: Pick<Store, 'events' | 'sites'> },
  orgId: string,
  period: Period,
): Promise<ToolCalls> {
  const sites = await store.sites.list(orgId)
  const siteIds = period.siteIds ?? sites.map((site) => site.siteId)
  const counted = siteIds.slice(0, limits.toolSitesCountedMax)
  const [counts, ...rows] = await Promise.all([
    typeCounts(store.events, orgId, period),
    ...counted.map((siteId) => siteCalls(store.events, orgId, siteId, period)),
  ])
  return {
    period: periodView(period, sites),
    totals: totalsOf(counts),
    executed: counts.types.get('tool.executed') ?? emptyTally(period),
    rows: rows.flat(),
    sitesLeftOut: siteIds.length - counted.length,
  }
}

async function siteCalls(
  events: Pick<Store['events'], 'breakdown' | 'durations'>,
  orgId: string,
  siteId: string,
  { sinceMs, untilMs, before: earlier }: Period,
): Promise<ToolCallRow[]> {
  const of = { orgId, by: 'tool' as const, types, siteIds: [siteId] }
  const [now, before, durations] = await Promise.all([
    events.breakdown({ ...of, sinceMs, untilMs, stepMs: null }),
    events.breakdown({ ...of, ...earlier, stepMs: null }),
    events.durations({ orgId, types, siteIds: [siteId], sinceMs, untilMs, stepMs: null }),
  ])
  return callRows(siteId, now, before, durations)
}

function callRows(siteId: string, now: Breakdown, before: Breakdown, durations: Durations): ToolCallRow[] {
  const rows = new Map<string | null, ToolCallRow & { lastMs: number }>()
  const rowOf = (name: string | null) => {
    const row = rows.get(name) ?? {
      siteId,
      name,
      count: 0,
      before: 0,
      outcomes: {},
      lastHour: null,
      took: null,
      lastMs: -1,
    }
    rows.set(name, row)
    return row
  }
  for (const { value, outcome, lastMs, count } of now.rows) {
    const row = rowOf(value)
    row.count += count
    // Own properties only: an outcome may have the name of a property that every object has.
    row.outcomes[outcome] = (Object.hasOwn(row.outcomes, outcome) ? (row.outcomes[outcome] ?? 0) : 0) + count
    row.lastMs = Math.max(row.lastMs, lastMs)
  }
  for (const { value, count } of before.rows) rowOf(value).before += count
  for (const { tool, startMs: _, ...took } of durations.rows) rowOf(tool).took = took
  return [...rows.values()].map(({ lastMs, ...row }) => ({
    ...row,
    lastHour: lastMs < 0 ? null : isoTime(lastMs),
  }))
}
