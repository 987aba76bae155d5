/** Events by type, outcome and step over a period and the previous one, from the exact hourly counts. */
import type { EventFilter, EventStore, MetricsRow } from '../../db/contract/store.ts'
import { sharedTypes } from './dimensions.ts'
import { limits } from '../limits.ts'
import { type Period, stepAt, stepCount } from './period.ts'
import type { OutcomeTally, Tally, Totals } from './shapes.ts'

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
  const taken = rows.filter(
    ({ type, outcome }) =>
      sharedTypes([type], only.types)?.length !== 0 && only.outcomes?.includes(outcome) !== false,
  )
  return tallyTypes(taken, period)
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

export function tallyTypes(rows: readonly MetricsRow[], period: Period): TypeCounts {
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
    const known = types.get(type) ?? emptyTally(period)
    types.set(type, known)
    for (const tally of [all, outcomeOf(all, outcome), known, outcomeOf(known, outcome)]) {
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
