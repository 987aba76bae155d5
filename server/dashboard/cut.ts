/** Events by the values of one field over a period and the previous one; the largest values also per step. */
import type { Breakdown, CountedMember, EventFilter, EventStore } from '../../db/contract/store.ts'
import { sharedTypes } from './dimensions.ts'
import { type Period, stepAt, stepCount } from './period.ts'
import type { Cut, CutRow } from './shapes.ts'

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
  { by, types: wanted, stepped = false, rowsMax = cutRowsMax }: CutQuery,
  only: Pick<EventFilter, 'types' | 'outcomes'> = {},
): Promise<Cut> {
  const types = sharedTypes(wanted, only.types)
  if (types?.length === 0) return { rows: [], more: null }
  const of = { orgId, by, ...(types && { types }), ...(period.siteIds && { siteIds: period.siteIds }) }
  const { sinceMs, untilMs, edges } = period
  const [now, before] = await Promise.all([
    events.breakdown({ ...of, sinceMs, untilMs, stepMs: null, ...(stepped && { edges }) }),
    events.breakdown({ ...of, ...period.before, stepMs: null }),
  ])
  const taken = ({ rows }: Breakdown) => ({
    rows: rows.filter(({ outcome }) => only.outcomes?.includes(outcome) !== false),
  })
  return makeCut(taken(now), taken(before), period, { stepped, rowsMax })
}

export function makeCut(
  now: Breakdown,
  before: Breakdown,
  period: Period,
  { stepped = false, rowsMax = cutRowsMax }: Pick<CutQuery, 'stepped' | 'rowsMax'> = {},
): Cut {
  const rows = new Map<string | null, CutRow>()
  const rowOf = (value: string | null): CutRow => {
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

function addSteps(largest: CutRow[], { rows }: Breakdown, period: Period): void {
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
