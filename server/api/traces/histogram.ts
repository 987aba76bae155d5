/** Counts a filter's events by time and outcome: from hourly counts where they suffice, else from columns. */
import { isoTime } from '../../clock.ts'
import { stepAt } from '../../counts/period.ts'
import { limits } from '../../limits.ts'
import { edgesOf, steps } from '../../text/time-zone.ts'
import type { EventFilter, EventStore } from '../../../db/contract/store.ts'
import { dayMs, hourMs } from '../../../db/contract/units.ts'

const stepsMax = 102 // 25 hours and the running quarter of an hour fit
/** Shorter than an hour, steps are the same in every zone, because offsets are multiples of 15 minutes. */
const shortStepsMs = [1_000, 5_000, 15_000, 60_000, 300_000, 900_000]
const longSteps = ['hour', 'threeHours', 'sixHours', 'twelveHours', 'day', 'week', 'month', 'year'] as const

interface Span {
  edges: number[] // the starts of the steps, and the end of the last
  stepMs: number // approximate where days and months differ
}

/**
 * The filter's range, or the last 24 hours and the running one, in steps of a round length. The first and the last step
 * are cut at the ends of the range, so that the bars count the events of the table below them.
 */
export function spanOf(
  { sinceMs, untilMs }: EventFilter,
  now: number,
  zone: string,
  stepMsMin = 1_000,
): Span {
  const to = untilMs ?? now + 1
  const dayAgo = untilMs === undefined ? Math.floor(now / hourMs) * hourMs - dayMs : to - dayMs
  const from = Math.min(sinceMs ?? dayAgo, to - 1)
  const fits = (stepMs: number) => stepMs >= stepMsMin && (to - from) / stepMs <= stepsMax
  const short = shortStepsMs.find(fits)
  if (short !== undefined) {
    const first = Math.floor(from / short) * short
    const steps = Math.ceil((to - first) / short)
    const edges = Array.from({ length: steps + 1 }, (_, step) => first + step * short)
    return { edges: cutEdges(edges, from, untilMs), stepMs: short }
  }
  const long = longSteps.find((step) => fits(steps[step].hours * hourMs)) ?? 'year'
  const { edges } = edgesOf(from, to, long, zone)
  return { edges: cutEdges(edges, from, untilMs), stepMs: steps[long].hours * hourMs }
}

function cutEdges(edges: number[], fromMs: number, untilMs: number | undefined): number[] {
  const inner = edges.slice(1, -1).filter((edge) => edge > fromMs)
  const lastMs = edges.at(-1) ?? fromMs
  return [fromMs, ...inner, untilMs === undefined ? lastMs : Math.min(lastMs, untilMs)]
}

type Events = Pick<EventStore, 'metrics' | 'histogram'>

export async function histogram(
  events: Events,
  orgId: string,
  filter: EventFilter,
  now: number,
  zone: string,
): Promise<Histogram> {
  const hourly = hourlyCountsSuffice(filter, now)
  const span = spanOf(filter, now, zone, hourly ? hourMs : undefined)
  if (hourly) return fromCounts(events, orgId, filter, span)
  return fromColumns(events, orgId, filter, span)
}

const hoursWorthCounting = 12

/** Whether hourly counts suffice: they have type, outcome and site, in whole hours. */
function hourlyCountsSuffice(filter: EventFilter, now: number): boolean {
  const { types: _types, outcomes: _outcomes, siteIds: _siteIds, sinceMs, untilMs, ...otherFilters } = filter
  const onTheHour = [sinceMs, untilMs].every((ms) => ms === undefined || ms % hourMs === 0)
  const lengthMs = (untilMs ?? now) - (sinceMs ?? (untilMs ?? now) - dayMs)
  return onTheHour && lengthMs >= hoursWorthCounting * hourMs && Object.keys(otherFilters).length === 0
}

function matcher(types: string[] | undefined): (type: string) => boolean {
  if (types === undefined || types.length === 0) return () => true
  return (type) =>
    types.some((pattern) =>
      pattern.endsWith('.*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern,
    )
}

function counter({ edges, stepMs }: Span) {
  const steps = edges.length - 1
  const [sinceMs, untilMs] = endsOf(edges)
  const counts = new Map<string, number[]>()
  let total = 0
  return {
    add(outcome: string, atMs: number, count: number): void {
      if (atMs < sinceMs || atMs >= untilMs) return
      const step = stepAt({ edges }, atMs)
      const row = counts.get(outcome) ?? Array<number>(steps).fill(0)
      counts.set(outcome, row)
      row[step] = (row[step] ?? 0) + count
      total += count
    },
    done: () => ({
      since: isoTime(sinceMs),
      until: isoTime(untilMs),
      stepMs,
      edges,
      counts: Object.fromEntries(counts),
      total,
    }),
  }
}

const endsOf = (edges: number[]): [number, number] => [edges[0] ?? 0, edges.at(-1) ?? 0]

/** Without a range: the newest 24 hours, the current hour included. */
async function fromCounts(
  events: Events,
  orgId: string,
  filter: EventFilter,
  span: Span,
): Promise<Histogram> {
  const { types, outcomes = [], siteIds } = filter
  const [sinceMs, untilMs] = endsOf(span.edges)
  const { rows, truncated } = await events.metrics({
    orgId,
    sinceMs,
    untilMs,
    rowsMax: limits.metricsRowsMax,
    ...(siteIds && { siteIds }),
  })
  if (truncated) return fromColumns(events, orgId, filter, span)
  const hasType = matcher(types)
  const count = counter(span)
  for (const row of rows) {
    if (hasType(row.type) && (outcomes.length === 0 || outcomes.includes(row.outcome)))
      count.add(row.outcome, row.bucketStartMs, row.count)
  }
  return { ...count.done(), complete: true, lookedSince: isoTime(sinceMs) }
}

/** Exact unless counting takes longer than `histogramMsMax`; then steps before `lookedSince` are incomplete. */
async function fromColumns(
  events: Events,
  orgId: string,
  filter: EventFilter,
  span: Span,
): Promise<Histogram> {
  const { edges } = span
  const { rows, exactSinceMs } = await events.histogram({
    orgId,
    filter,
    edges,
    budgetMs: limits.histogramMsMax,
  })
  const count = counter(span)
  for (const row of rows) count.add(row.outcome, row.startMs, row.count)
  const complete = exactSinceMs <= (edges[0] ?? 0)
  return { ...count.done(), complete, lookedSince: isoTime(exactSinceMs) }
}

/** The response behind the chart above the Logs table; the dashboard imports this type. */
export interface Histogram {
  since: string // start of the first step
  until: string // end of the last step
  stepMs: number // approximate where days and months differ
  edges: number[] // in milliseconds: the starts of the steps, and the end of the last
  counts: { [outcome: string]: number[] } // by step
  total: number
  complete: boolean // false: steps before `lookedSince` contain events that were not counted
  lookedSince: string
}
