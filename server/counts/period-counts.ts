/**
 * Events of a period and the previous one by type, outcome and step, and by the values of one field: from the exact
 * hourly counts, or under filters from one scan of the stored events.
 */
import { sharedTypes, stepAt, stepCount, type CountFilter, type Period } from './period.ts'
import { limits } from '../limits.ts'
import type {
  Breakdown,
  CountedBy,
  EventFilter,
  EventStore,
  FilteredCounts,
  MetricsQuery,
  MetricsRow,
} from '../../db/contract/store.ts'
import type { BreakdownView, BreakdownRow, PeriodCount, EventCounts, Totals } from './shapes.ts'
import { hourMs } from '../../db/contract/units.ts'

export interface TypeCounts {
  all: EventCounts
  types: Map<string, EventCounts>
}

/** Types with events in the period; types of the previous period alone are omitted. */
export function totalsOf({ types }: TypeCounts): Totals['totals'] {
  return Object.fromEntries([...types].flatMap(([type, { count }]) => (count > 0 ? [[type, count]] : [])))
}

export async function typeCounts(
  events: Pick<EventStore, 'metrics'>,
  orgId: string,
  period: Period,
  only: Pick<EventFilter, 'types' | 'outcomes'> = {},
): Promise<TypeCounts> {
  const { before: previousPeriod, untilMs, siteIds } = period
  const time = { sinceMs: previousPeriod.sinceMs, untilMs, ...(siteIds && { siteIds }) }
  const rows = await hourRows(events, orgId, time)
  const matching = rows.filter(
    ({ type, outcome }) =>
      sharedTypes([type], only.types)?.length !== 0 && only.outcomes?.includes(outcome) !== false,
  )
  return countTypes(matching, period)
}

/** All rows of a range, queried in halves when one response cannot hold them. */
export async function hourRows(
  events: Pick<EventStore, 'metrics'>,
  orgId: string,
  time: Omit<MetricsQuery, 'orgId' | 'untilMs' | 'rowsMax'> & { untilMs: number },
): Promise<MetricsRow[]> {
  const metrics = await events.metrics({ orgId, ...time, rowsMax: limits.metricsRowsMax })
  const hours = (time.untilMs - time.sinceMs) / hourMs
  if (!metrics.truncated || hours <= 1) return metrics.rows
  const middleMs = time.sinceMs + Math.floor(hours / 2) * hourMs
  const first = await hourRows(events, orgId, { ...time, untilMs: middleMs })
  return first.concat(await hourRows(events, orgId, { ...time, sinceMs: middleMs }))
}

const noCount = (steps: number): PeriodCount => ({
  count: 0,
  before: 0,
  steps: Array<number>(steps).fill(0),
})

/** Zero counts, for a type without events. */
export function emptyCounts(period: Period): EventCounts {
  return { ...noCount(stepCount(period)), outcomes: {} }
}

function countTypes(rows: readonly MetricsRow[], period: Period): TypeCounts {
  const steps = stepCount(period)
  const totals = emptyCounts(period)
  const types = new Map<string, EventCounts>()
  const outcomeOf = (counts: EventCounts, outcome: string): PeriodCount => {
    // Own properties only: an outcome may have the name of a property that every object has.
    if (!Object.hasOwn(counts.outcomes, outcome)) counts.outcomes[outcome] = noCount(steps)
    return counts.outcomes[outcome] as PeriodCount
  }
  for (const { type, outcome, bucketStartMs, count } of rows) {
    // A current range leaves a few hours between the two periods uncounted.
    if (bucketStartMs >= period.before.untilMs && bucketStartMs < period.sinceMs) continue
    const ofType = types.get(type) ?? emptyCounts(period)
    types.set(type, ofType)
    for (const counts of [totals, outcomeOf(totals, outcome), ofType, outcomeOf(ofType, outcome)]) {
      if (bucketStartMs < period.sinceMs) counts.before += count
      else {
        const step = stepAt(period, bucketStartMs)
        counts.count += count
        counts.steps[step] = (counts.steps[step] ?? 0) + count
      }
    }
  }
  return { all: totals, types }
}

/** Rows per response: a thousand vendors per hour would otherwise grow without bound. */
export const breakdownRowsMax = 500
const steppedRowsMax = 8

export interface FieldBreakdownQuery {
  by: CountedBy
  types?: string[]
  stepped?: boolean
  rowsMax?: number // default: `breakdownRowsMax`
}

export async function fieldBreakdown(
  events: Pick<EventStore, 'breakdown'>,
  orgId: string,
  period: Period,
  { by: dimension, types: queried, stepped = false, rowsMax = breakdownRowsMax }: FieldBreakdownQuery,
  only: Pick<EventFilter, 'types' | 'outcomes'> = {},
): Promise<BreakdownView> {
  const types = sharedTypes(queried, only.types)
  if (types?.length === 0) return { rows: [], more: null }
  const query = {
    orgId,
    by: dimension,
    ...(types && { types }),
    ...(period.siteIds && { siteIds: period.siteIds }),
  }
  const { sinceMs, untilMs, edges } = period
  const [now, previousBreakdown] = await Promise.all([
    events.breakdown({ ...query, sinceMs, untilMs, stepMs: null, ...(stepped && { edges }) }),
    events.breakdown({ ...query, ...period.before, stepMs: null }),
  ])
  const matching = ({ rows }: Breakdown) => ({
    rows: rows.filter(({ outcome }) => only.outcomes?.includes(outcome) !== false),
  })
  return makeBreakdown(matching(now), matching(previousBreakdown), period, { stepped, rowsMax })
}

export function makeBreakdown(
  now: Breakdown,
  previousBreakdown: Breakdown,
  period: Period,
  { stepped = false, rowsMax = breakdownRowsMax }: Pick<FieldBreakdownQuery, 'stepped' | 'rowsMax'> = {},
): BreakdownView {
  const rows = new Map<string | null, BreakdownRow>()
  const rowOf = (value: string | null): BreakdownRow => {
    const row = rows.get(value) ?? { value, count: 0, before: 0, outcomes: {}, steps: null }
    rows.set(value, row)
    return row
  }
  for (const { value, outcome, count } of now.rows) {
    const row = rowOf(value)
    row.count += count
    row.outcomes[outcome] = (Object.hasOwn(row.outcomes, outcome) ? (row.outcomes[outcome] ?? 0) : 0) + count
  }
  for (const { value, count } of previousBreakdown.rows) rowOf(value).before += count
  const sorted = [...rows.values()].sort(
    (a, b) => b.count - a.count || b.before - a.before || compare(a.value ?? '', b.value ?? ''),
  )
  if (stepped) addSteps(sorted.slice(0, steppedRowsMax), now, period)
  const hiddenRows = sorted.slice(rowsMax)
  if (hiddenRows.length === 0) return { rows: sorted, more: null }
  const sum = (measure: 'count' | 'before') => hiddenRows.reduce((total, row) => total + row[measure], 0)
  return {
    rows: sorted.slice(0, rowsMax),
    more: { values: hiddenRows.length, count: sum('count'), before: sum('before') },
  }
}

function addSteps(largest: BreakdownRow[], { rows }: Breakdown, period: Period): void {
  const byValue = new Map(largest.map((row) => [row.value, row]))
  for (const row of largest) row.steps = Array<number>(stepCount(period)).fill(0)
  for (const { value, startMs, count } of rows) {
    const steps = byValue.get(value)?.steps
    const step = stepAt(period, startMs)
    if (steps) steps[step] = (steps[step] ?? 0) + count
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

export interface Filtered {
  counts: TypeCounts
  breakdowns: BreakdownView[]
  /** Upper bound of the matching events that retention deleted. */
  expired: number
  complete: boolean
}

/** The bounds between which events are counted: the previous period, and the steps of this one. */
export function edgesFor({ before: previousPeriod, edges, untilMs }: Period): number[] {
  const steps = [...edges.slice(0, -1), Math.min(untilMs, edges.at(-1) ?? untilMs)]
  const first =
    previousPeriod.sinceMs < previousPeriod.untilMs ? [previousPeriod.sinceMs, previousPeriod.untilMs] : []
  return [...new Set([...first, ...steps])]
}

export async function filteredCounts(
  events: Pick<EventStore, 'filteredCounts'>,
  orgId: string,
  period: Period,
  { filter, also }: CountFilter,
  queries: FieldBreakdownQuery[],
): Promise<Filtered> {
  const result = await events.filteredCounts({
    orgId,
    also,
    edges: edgesFor(period),
    budgetMs: limits.filteredCountMsMax,
    filter: { ...filter, ...(period.siteIds && { siteIds: period.siteIds }) },
    breakdowns: queries.map(({ by: dimension, types }) => ({ by: dimension, ...(types && { types }) })),
  })
  const { rows, expired, complete } = result
  const counted = rows.map(({ startMs, ...row }) => ({ ...row, siteId: '', bucketStartMs: startMs }))
  const breakdowns = queries.map((query, index) => breakdownOf(result.breakdowns[index] ?? [], period, query))
  return { counts: countTypes(counted, period), breakdowns, expired, complete }
}

function breakdownOf(
  rows: FilteredCounts['breakdowns'][number],
  period: Period,
  query: FieldBreakdownQuery,
): BreakdownView {
  const breakdownRows = rows.map(({ value, outcome, startMs, count }) => ({
    value,
    outcome,
    startMs,
    count,
    firstMs: startMs,
    lastMs: startMs,
  }))
  const now = breakdownRows.filter(({ startMs }) => startMs >= period.sinceMs)
  const previousRows = breakdownRows.filter(
    ({ startMs }) => startMs < period.before.untilMs && startMs < period.sinceMs,
  )
  return makeBreakdown({ rows: now }, { rows: previousRows }, period, query)
}
