/**
 * Events of a period and the previous one by type, outcome and step, and by the values of one field: from the exact
 * hourly counts, or under filters from one scan of the stored events.
 */
import { sharedTypes, stepAt, stepCount, type CountFilter, type Period } from './period.ts'
import { limits } from '../limits.ts'
import type {
  Breakdown,
  CountedMember,
  EventFilter,
  EventStore,
  EventTally,
  MetricsRow,
} from '../../db/contract/store.ts'
import type { BreakdownView, BreakdownRow, OutcomeTally, Tally, Totals } from './shapes.ts'

export interface TypeCounts {
  all: Tally
  types: Map<string, Tally>
}

/** Types with events in the period; types of the previous period alone are omitted. */
export function totalsOf({ types }: TypeCounts): Totals['totals'] {
  return Object.fromEntries([...types].flatMap(([type, { count }]) => (count > 0 ? [[type, count]] : [])))
}

const hourMs = 3_600_000

export async function typeCounts(
  events: Pick<EventStore, 'metrics'>,
  orgId: string,
  period: Period,
  only: Pick<EventFilter, 'types' | 'outcomes'> = {},
): Promise<TypeCounts> {
  const { before, untilMs, siteIds } = period
  const time = { sinceMs: before.sinceMs, untilMs, ...(siteIds && { siteIds }) }
  const rows = await hourRows(events, orgId, time)
  const matching = rows.filter(
    ({ type, outcome }) =>
      sharedTypes([type], only.types)?.length !== 0 && only.outcomes?.includes(outcome) !== false,
  )
  return tallyTypes(matching, period)
}

/** All rows of a range, queried in halves when one response cannot hold them. */
async function hourRows(
  events: Pick<EventStore, 'metrics'>,
  orgId: string,
  time: { sinceMs: number; untilMs: number; siteIds?: string[] },
): Promise<MetricsRow[]> {
  const found = await events.metrics({ orgId, ...time, rowsMax: limits.metricsRowsMax })
  const hours = (time.untilMs - time.sinceMs) / hourMs
  if (!found.truncated || hours <= 1) return found.rows
  const middleMs = time.sinceMs + Math.floor(hours / 2) * hourMs
  const first = await hourRows(events, orgId, { ...time, untilMs: middleMs })
  return first.concat(await hourRows(events, orgId, { ...time, sinceMs: middleMs }))
}

const noCount = (steps: number): OutcomeTally => ({
  count: 0,
  before: 0,
  steps: Array<number>(steps).fill(0),
})

/** Zero counts, for a type without events. */
export function emptyTally(period: Period): Tally {
  return { ...noCount(stepCount(period)), outcomes: {} }
}

function tallyTypes(rows: readonly MetricsRow[], period: Period): TypeCounts {
  const steps = stepCount(period)
  const all = emptyTally(period)
  const types = new Map<string, Tally>()
  const outcomeOf = (tally: Tally, outcome: string): OutcomeTally => {
    // Own properties only: an outcome may have the name of a property that every object has.
    if (!Object.hasOwn(tally.outcomes, outcome)) tally.outcomes[outcome] = noCount(steps)
    return tally.outcomes[outcome] as OutcomeTally
  }
  for (const { type, outcome, bucketStartMs, count } of rows) {
    // A current range leaves a few hours between the two periods uncounted.
    if (bucketStartMs >= period.before.untilMs && bucketStartMs < period.sinceMs) continue
    const tallyOfType = types.get(type) ?? emptyTally(period)
    types.set(type, tallyOfType)
    for (const tally of [all, outcomeOf(all, outcome), tallyOfType, outcomeOf(tallyOfType, outcome)]) {
      if (bucketStartMs < period.sinceMs) tally.before += count
      else {
        const step = stepAt(period, bucketStartMs)
        tally.count += count
        tally.steps[step] = (tally.steps[step] ?? 0) + count
      }
    }
  }
  return { all, types }
}

/** Rows per response: a thousand vendors per hour would otherwise grow without bound. */
export const cutRowsMax = 500
const steppedRowsMax = 8

export interface CutQuery {
  by: CountedMember
  types?: string[]
  stepped?: boolean
  rowsMax?: number // default: `cutRowsMax`
}

export async function cut(
  events: Pick<EventStore, 'breakdown'>,
  orgId: string,
  period: Period,
  { by, types: queried, stepped = false, rowsMax = cutRowsMax }: CutQuery,
  only: Pick<EventFilter, 'types' | 'outcomes'> = {},
): Promise<BreakdownView> {
  const types = sharedTypes(queried, only.types)
  if (types?.length === 0) return { rows: [], more: null }
  const of = { orgId, by, ...(types && { types }), ...(period.siteIds && { siteIds: period.siteIds }) }
  const { sinceMs, untilMs, edges } = period
  const [now, before] = await Promise.all([
    events.breakdown({ ...of, sinceMs, untilMs, stepMs: null, ...(stepped && { edges }) }),
    events.breakdown({ ...of, ...period.before, stepMs: null }),
  ])
  const matching = ({ rows }: Breakdown) => ({
    rows: rows.filter(({ outcome }) => only.outcomes?.includes(outcome) !== false),
  })
  return makeCut(matching(now), matching(before), period, { stepped, rowsMax })
}

export function makeCut(
  now: Breakdown,
  before: Breakdown,
  period: Period,
  { stepped = false, rowsMax = cutRowsMax }: Pick<CutQuery, 'stepped' | 'rowsMax'> = {},
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
  for (const { value, count } of before.rows) rowOf(value).before += count
  const sorted = [...rows.values()].sort(
    (a, b) => b.count - a.count || b.before - a.before || compare(a.value ?? '', b.value ?? ''),
  )
  if (stepped) addSteps(sorted.slice(0, steppedRowsMax), now, period)
  const left = sorted.slice(rowsMax)
  if (left.length === 0) return { rows: sorted, more: null }
  const sum = (of: 'count' | 'before') => left.reduce((total, row) => total + row[of], 0)
  return {
    rows: sorted.slice(0, rowsMax),
    more: { values: left.length, count: sum('count'), before: sum('before') },
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
  cuts: BreakdownView[]
  /** Upper bound of the matching events that retention deleted. */
  expired: number
  complete: boolean
}

/** The bounds between which events are counted: the previous period, and the steps of this one. */
export function edgesFor({ before, edges, untilMs }: Period): number[] {
  const steps = [...edges.slice(0, -1), Math.min(untilMs, edges.at(-1) ?? untilMs)]
  const first = before.sinceMs < before.untilMs ? [before.sinceMs, before.untilMs] : []
  return [...new Set([...first, ...steps])]
}

export async function filteredCounts(
  events: Pick<EventStore, 'tally'>,
  orgId: string,
  period: Period,
  { filter, also }: CountFilter,
  queries: CutQuery[],
): Promise<Filtered> {
  const tally = await events.tally({
    ...{ orgId, also, edges: edgesFor(period), budgetMs: limits.filteredCountMsMax },
    filter: { ...filter, ...(period.siteIds && { siteIds: period.siteIds }) },
    cuts: queries.map(({ by, types }) => ({ by, ...(types && { types }) })),
  })
  const { rows, expired, complete } = tally
  const counted = rows.map(({ startMs, ...row }) => ({ ...row, siteId: '', bucketStartMs: startMs }))
  const cuts = queries.map((query, index) => cutOf(tally.cuts[index] ?? [], period, query))
  return { counts: tallyTypes(counted, period), cuts, expired, complete }
}

function cutOf(rows: EventTally['cuts'][number], period: Period, query: CutQuery): BreakdownView {
  const of = rows.map(({ value, outcome, startMs, count }) => ({
    ...{ value, outcome, startMs, count },
    ...{ firstMs: startMs, lastMs: startMs },
  }))
  const now = of.filter(({ startMs }) => startMs >= period.sinceMs)
  const before = of.filter(({ startMs }) => startMs < period.before.untilMs && startMs < period.sinceMs)
  return makeCut({ rows: now }, { rows: before }, period, query)
}
