/** The agents detected in a period and the previous one, by name and purpose, with how often each was blocked. */
import type { AgentCounts, AgentNames, EventStore } from '../../db/contract/store.ts'
import { limits } from '../limits.ts'
import { cutRowsMax } from './cut.ts'
import type { CountFilter } from './dimensions.ts'
import { edgesFor } from './filtered.ts'
import type { Period } from './period.ts'
import type { AgentRow } from './shapes.ts'

export async function agentRows(
  events: Pick<EventStore, 'agents' | 'tally'>,
  { orgId, period, rowsMax = cutRowsMax }: { orgId: string; period: Period; rowsMax?: number },
): Promise<AgentRow[]> {
  if (period.filter) return agentRowsOf(await filteredAgents(events, orgId, period, period.filter), rowsMax)
  const of = { orgId, types: ['agent.detected'], ...(period.siteIds && { siteIds: period.siteIds }) }
  const range = { sinceMs: period.sinceMs, untilMs: period.untilMs }
  const [now, before, blocked] = await Promise.all([
    events.agents({ ...of, ...range }),
    events.agents({ ...of, ...period.before }),
    events.agents({ ...of, ...range, types: ['authz.evaluated'], outcome: 'blocked' }),
  ])
  return agentRowsOf({ count: now.rows, before: before.rows, blocked: blocked.rows }, rowsMax)
}

/** The same under filters, counted event by event. */
async function filteredAgents(
  events: Pick<EventStore, 'tally'>,
  orgId: string,
  period: Period,
  { filter, also }: CountFilter,
): Promise<Found> {
  const { cuts } = await events.tally({
    ...{ orgId, also, edges: edgesFor(period), budgetMs: limits.filteredCountMsMax },
    filter: { ...filter, ...(period.siteIds && { siteIds: period.siteIds }) },
    cuts: [
      { by: 'agent', types: ['agent.detected'] },
      { by: 'agent', types: ['authz.evaluated'] },
    ],
  })
  const rowsOf = (cut: number, isMeant: (startMs: number, outcome: string) => boolean) =>
    (cuts[cut] ?? [])
      .filter(({ startMs, outcome }) => isMeant(startMs, outcome))
      .map(({ value, count }) => ({ ...(JSON.parse(value ?? others) as AgentNames), count }))
  const isNow = (startMs: number): boolean => startMs >= period.sinceMs
  return {
    count: rowsOf(0, isNow),
    before: rowsOf(0, (startMs) => !isNow(startMs) && startMs < period.before.untilMs),
    blocked: rowsOf(1, (startMs, outcome) => isNow(startMs) && outcome === 'blocked'),
  }
}

const others = JSON.stringify({ vendor: 'other', name: 'other', purpose: 'other' } satisfies AgentNames)
const measures = ['count', 'before', 'blocked'] as const
type Found = { [measure in (typeof measures)[number]]: AgentCounts['rows'] }

/** Most frequent first; agents beyond `rowsMax` count as "other" of their vendor, so that sums stay complete. */
export function agentRowsOf(found: Found, rowsMax: number): AgentRow[] {
  const rows = new Map<string, AgentRow>()
  const rowOf = ({ vendor, name, purpose }: AgentNames): AgentRow => {
    const key = JSON.stringify([vendor, name, purpose])
    const row = rows.get(key) ?? { vendor, name, purpose, count: 0, before: 0, blocked: 0 }
    rows.set(key, row)
    return row
  }
  for (const measure of measures)
    for (const { count, ...agent } of found[measure]) rowOf(agent)[measure] += count
  const sorted = [...rows.values()].sort((a, b) => b.count - a.count || b.before - a.before)
  for (const row of sorted.splice(rowsMax)) {
    rows.delete(JSON.stringify([row.vendor, row.name, row.purpose]))
    const others = rowOf({ vendor: row.vendor, name: 'other', purpose: 'other' })
    for (const measure of measures) others[measure] += row[measure]
    if (!sorted.includes(others)) sorted.push(others)
  }
  return sorted
}
