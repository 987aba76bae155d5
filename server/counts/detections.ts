/** The detections of a period: by agent with those blocked and before, by class and vendor, by trust. */
import { limits } from '../limits.ts'
import { breakdownRowsMax, edgesFor } from './period-counts.ts'
import type { AgentCounts, AgentNames, ClassVendor, EventStore } from '../../db/contract/store.ts'
import type { CountFilter, CountScope, Period } from './period.ts'
import type { AgentRow, DetectMatrix, DetectTrust } from './shapes.ts'

export async function agentRows(
  events: Pick<EventStore, 'agents' | 'filteredCounts'>,
  { orgId, period, rowsMax = breakdownRowsMax }: { orgId: string; period: Period; rowsMax?: number },
): Promise<AgentRow[]> {
  if (period.filter) return agentRowsOf(await filteredAgents(events, orgId, period, period.filter), rowsMax)
  const query = { orgId, types: ['agent.detected'], ...(period.siteIds && { siteIds: period.siteIds }) }
  const range = { sinceMs: period.sinceMs, untilMs: period.untilMs }
  const [now, previousCounts, blocked] = await Promise.all([
    events.agents({ ...query, ...range }),
    events.agents({ ...query, ...period.before }),
    events.agents({ ...query, ...range, types: ['authz.evaluated'], outcome: 'blocked' }),
  ])
  return agentRowsOf({ count: now.rows, before: previousCounts.rows, blocked: blocked.rows }, rowsMax)
}

/** The same under filters, counted event by event. */
async function filteredAgents(
  events: Pick<EventStore, 'filteredCounts'>,
  orgId: string,
  period: Period,
  { filter, also }: CountFilter,
): Promise<Found> {
  const { breakdowns } = await events.filteredCounts({
    orgId,
    also,
    edges: edgesFor(period),
    budgetMs: limits.filteredCountMsMax,
    filter: { ...filter, ...(period.siteIds && { siteIds: period.siteIds }) },
    breakdowns: [
      { by: 'agent', types: ['agent.detected'] },
      { by: 'agent', types: ['authz.evaluated'] },
    ],
  })
  const rowsOf = (index: number, isMeant: (startMs: number, outcome: string) => boolean) =>
    (breakdowns[index] ?? [])
      .filter(({ startMs, outcome }) => isMeant(startMs, outcome))
      .map(({ value, count }) => ({ ...(JSON.parse(value ?? otherKey) as AgentNames), count }))
  const isNow = (startMs: number): boolean => startMs >= period.sinceMs
  return {
    count: rowsOf(0, isNow),
    before: rowsOf(0, (startMs) => !isNow(startMs) && startMs < period.before.untilMs),
    blocked: rowsOf(1, (startMs, outcome) => isNow(startMs) && outcome === 'blocked'),
  }
}

const otherKey = JSON.stringify({ vendor: 'other', name: 'other', purpose: 'other' } satisfies AgentNames)
const measures = ['count', 'before', 'blocked'] as const
type Found = { [measure in (typeof measures)[number]]: AgentCounts['rows'] }

/** Most frequent first; agents beyond `rowsMax` count as "other" of their vendor, so that sums stay complete. */
export function agentRowsOf(counts: Found, rowsMax: number): AgentRow[] {
  const rows = new Map<string, AgentRow>()
  const rowOf = ({ vendor, name, purpose }: AgentNames): AgentRow => {
    const key = JSON.stringify([vendor, name, purpose])
    const row = rows.get(key) ?? { vendor, name, purpose, count: 0, before: 0, blocked: 0 }
    rows.set(key, row)
    return row
  }
  for (const measure of measures)
    for (const { count, ...agent } of counts[measure]) rowOf(agent)[measure] += count
  const sorted = [...rows.values()].sort((a, b) => b.count - a.count || b.before - a.before)
  for (const row of sorted.splice(rowsMax)) {
    rows.delete(JSON.stringify([row.vendor, row.name, row.purpose]))
    const otherRow = rowOf({ vendor: row.vendor, name: 'other', purpose: 'other' })
    for (const measure of measures) otherRow[measure] += row[measure]
    if (!sorted.includes(otherRow)) sorted.push(otherRow)
  }
  return sorted
}

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
  events: Pick<EventStore, 'filteredCounts'>,
  orgId: string,
  { sinceMs, untilMs, siteIds }: CountScope['period'],
  { filter, also }: CountFilter,
): Promise<ClassVendor['rows']> {
  const { breakdowns } = await events.filteredCounts({
    orgId,
    also,
    edges: [sinceMs, untilMs],
    budgetMs: limits.filteredCountMsMax,
    filter: { ...filter, ...(siteIds && { siteIds }) },
    breakdowns: [{ by: 'class', and: 'vendor', types: ['agent.detected'] }],
  })
  const nameOf = (value: string | null) =>
    value === null ? 'other' : value === '' ? 'missing' : { name: value }
  const pairs = new Map<string, ClassVendor['rows'][number]>()
  for (const { value, and, count } of breakdowns[0] ?? []) {
    const key = JSON.stringify([value, and])
    const row = pairs.get(key) ?? { class: nameOf(value), vendor: nameOf(and), count: 0 }
    pairs.set(key, { ...row, count: row.count + count })
  }
  return [...pairs.values()].sort((a, b) => b.count - a.count)
}

/** As many vendors as a page can show; the rest as one row, so that the sums stay complete. */
export function largestVendors(
  rows: ClassVendor['rows'],
  vendorsMax: number = breakdownRowsMax,
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

/** The trust that sessions with detections reached: an agent is detected first and verified later. */
export async function detectTrust({ store, orgId, period }: CountScope): Promise<DetectTrust> {
  const { sinceMs, untilMs, siteIds, filter } = period
  const trustReached = await store.events.trustReached({
    orgId,
    sinceMs,
    untilMs,
    types: ['agent.detected'],
    deadlineMs: limits.trustReachedMs,
    ...(siteIds && { siteIds }),
    ...(filter && { filter: filter.filter, also: filter.also }),
  })
  if (trustReached === null) return { rows: [], complete: false, isTooMuch: true }
  const rows = trustReached.rows.map(({ trust, events, sessions }) => ({ trust, count: events, sessions }))
  return { rows, complete: trustReached.complete, isTooMuch: false }
}
