/** Detections by class and vendor. */
import type { ClassVendor, EventStore } from '../../db/contract/store.ts'
import { limits } from '../limits.ts'
import type { CountScope } from './counts.ts'
import { cutRowsMax } from './cut.ts'
import type { CountFilter } from './dimensions.ts'
import type { DetectMatrix } from './shapes.ts'

export async function detectMatrix({ store, orgId, period, rowsMax }: CountScope): Promise<DetectMatrix> {
  const { sinceMs, untilMs, siteIds } = period
  const query = { orgId, sinceMs, untilMs, types: ['agent.detected'], ...(siteIds && { siteIds }) }
  const rows = period.filter
    ? await filteredPairs(store.events, orgId, period, period.filter)
    : (await store.events.classVendor(query)).rows
  return { counted: rows.reduce((sum, { count }) => sum + count, 0), cells: largestVendors(rows, rowsMax) }
}

/** The same under filters, counted event by event. */
async function filteredPairs(
  events: Pick<EventStore, 'tally'>,
  orgId: string,
  { sinceMs, untilMs, siteIds }: CountScope['period'],
  { filter, also }: CountFilter,
): Promise<ClassVendor['rows']> {
  const { cuts } = await events.tally({
    ...{ orgId, also, edges: [sinceMs, untilMs], budgetMs: limits.filteredCountMsMax },
    filter: { ...filter, ...(siteIds && { siteIds }) },
    cuts: [{ by: 'class', and: 'vendor', types: ['agent.detected'] }],
  })
  const nameOf = (value: string | null) =>
    value === null ? 'other' : value === '' ? 'missing' : { name: value }
  const pairs = new Map<string, ClassVendor['rows'][number]>()
  for (const { value, and, count } of cuts[0] ?? []) {
    const key = JSON.stringify([value, and])
    const row = pairs.get(key) ?? { class: nameOf(value), vendor: nameOf(and), count: 0 }
    pairs.set(key, { ...row, count: row.count + count })
  }
  return [...pairs.values()].sort((a, b) => b.count - a.count)
}

/** As many vendors as a page can show; the rest as one row, so that the sums stay complete. */
export function largestVendors(
  rows: ClassVendor['rows'],
  vendorsMax: number = cutRowsMax,
): DetectMatrix['cells'] {
  const totals = new Map<string, number>()
  const keyOf = (value: unknown): string => JSON.stringify(value)
  for (const { vendor, count } of rows) totals.set(keyOf(vendor), (totals.get(keyOf(vendor)) ?? 0) + count)
  const sorted = [...totals].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
  const shown = new Set(sorted.slice(0, vendorsMax).map(([key]) => key))
  const cells = new Map<string, DetectMatrix['cells'][number]>()
  for (const row of rows) {
    const vendor = shown.has(keyOf(row.vendor)) ? row.vendor : 'other'
    const key = keyOf([row.class, vendor])
    const cell = cells.get(key)
    if (cell) cell.count += row.count
    else cells.set(key, { ...row, vendor })
  }
  return [...cells.values()]
}
