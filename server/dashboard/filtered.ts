/** The counts of a page under filters: one scan of the stored events yields all its counts and breakdowns. */
import type { EventStore, EventTally } from '../../db/contract/store.ts'
import { limits } from '../limits.ts'
import { type CutQuery, makeCut } from './cut.ts'
import type { CountFilter } from './dimensions.ts'
import type { Period } from './period.ts'
import type { Cut } from './shapes.ts'
import { tallyTypes, type TypeCounts } from './period-counts.ts'

export interface Filtered {
  counts: TypeCounts
  cuts: Cut[]
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

function cutOf(rows: EventTally['cuts'][number], period: Period, query: CutQuery): Cut {
  const of = rows.map(({ value, outcome, startMs, count }) => ({
    ...{ value, outcome, startMs, count },
    ...{ firstMs: startMs, lastMs: startMs },
  }))
  const now = of.filter(({ startMs }) => startMs >= period.sinceMs)
  const before = of.filter(({ startMs }) => startMs < period.before.untilMs && startMs < period.sinceMs)
  return makeCut({ rows: now }, { rows: before }, period, query)
}
