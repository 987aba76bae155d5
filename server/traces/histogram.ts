/** How the events that a filter takes lie in time: from the hourly counts where they can say it, else by looking. */
import type { EventFilter, EventStore, StoredEvent } from '../../db/store.ts'
import { isoTime } from '../clock.ts'
import { limits } from '../limits.ts'
import type { Histogram } from './histogram-shapes.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const stepsMax = 96
const stepChoicesMs = [
  ...[1_000, 5_000, 15_000, 60_000, 300_000, 900_000],
  ...[1, 3, 6, 12, 24, 72, 168, 720].map((hours) => hours * hourMs),
]

export interface Span {
  sinceMs: number
  untilMs: number
  stepMs: number
}

/** The filter's own time, or the last day, in whole steps of a length that people count in. */
export function spanOf({ sinceMs, untilMs }: EventFilter, now: number, stepMsMin = 1_000): Span {
  const to = untilMs ?? now + 1
  const from = Math.min(sinceMs ?? to - dayMs, to - 1)
  const stepMs =
    stepChoicesMs.find((step) => step >= stepMsMin && (to - from) / step <= stepsMax) ??
    Math.ceil((to - from) / stepsMax)
  return { sinceMs: Math.floor(from / stepMs) * stepMs, untilMs: Math.ceil(to / stepMs) * stepMs, stepMs }
}

type Events = Pick<EventStore, 'page' | 'metrics'>

export async function histogram(
  events: Events,
  orgId: string,
  filter: EventFilter,
  now: number,
): Promise<Histogram> {
  const hourly = countsCanSay(filter, now)
  const span = spanOf(filter, now, hourly ? hourMs : undefined)
  return hourly ? fromCounts(events, orgId, filter, span) : byLooking(events, orgId, filter, span)
}

const hoursWorthCounting = 12

/** Hourly counts know type, outcome and site; and a long time that begins and ends on the hour, or is not bounded. */
function countsCanSay(filter: EventFilter, now: number): boolean {
  const { types: _types, outcomes: _outcomes, siteIds: _siteIds, sinceMs, untilMs, ...others } = filter
  const onTheHour = [sinceMs, untilMs].every((ms) => ms === undefined || ms % hourMs === 0)
  const lengthMs = (untilMs ?? now) - (sinceMs ?? (untilMs ?? now) - dayMs)
  return onTheHour && lengthMs >= hoursWorthCounting * hourMs && Object.keys(others).length === 0
}

function matcher(types: string[] | undefined): (type: string) => boolean {
  if (types === undefined || types.length === 0) return () => true
  return (type) =>
    types.some((wanted) => (wanted.endsWith('.*') ? type.startsWith(wanted.slice(0, -1)) : type === wanted))
}

function counter({ sinceMs, untilMs, stepMs }: Span) {
  const steps = Math.round((untilMs - sinceMs) / stepMs)
  const counts = new Map<string, number[]>()
  let total = 0
  return {
    add(outcome: string, atMs: number, count: number): void {
      const step = Math.floor((atMs - sinceMs) / stepMs)
      if (step < 0 || step >= steps) return
      const row = counts.get(outcome) ?? Array<number>(steps).fill(0)
      counts.set(outcome, row)
      row[step] = (row[step] ?? 0) + count
      total += count
    },
    done: () => ({
      since: isoTime(sinceMs),
      until: isoTime(untilMs),
      stepMs,
      counts: Object.fromEntries(counts),
      total,
    }),
  }
}

/** Without a time of its own the newest day is shown, hours begun included: the hour that just began counts too. */
async function fromCounts(
  events: Events,
  orgId: string,
  filter: EventFilter,
  span: Span,
): Promise<Histogram> {
  const { types, outcomes = [], siteIds } = filter
  const { rows, truncated } = await events.metrics({
    orgId,
    sinceMs: span.sinceMs,
    untilMs: span.untilMs,
    rowsMax: limits.metricsRowsMax,
    ...(siteIds && { siteIds }),
  })
  if (truncated) return byLooking(events, orgId, filter, span)
  const takes = matcher(types)
  const count = counter(span)
  for (const row of rows) {
    if (takes(row.type) && (outcomes.length === 0 || outcomes.includes(row.outcome)))
      count.add(row.outcome, row.bucketStartMs, row.count)
  }
  return { ...count.done(), complete: true, lookedSince: isoTime(span.sinceMs) }
}

const pageEvents = 2_000
const lookedMax = 10_000

/** The newest matches; what is older is said to be not looked at. */
async function byLooking(events: Events, orgId: string, filter: EventFilter, span: Span): Promise<Histogram> {
  const within = {
    ...filter,
    sinceMs: filter.sinceMs ?? span.sinceMs,
    untilMs: filter.untilMs ?? span.untilMs,
  }
  const count = counter(span)
  let looked = 0
  let lookedSinceMs = span.untilMs
  let before: Awaited<ReturnType<EventStore['page']>>['next'] = null
  let ceilingSeq: number | null = null
  do {
    const page: Awaited<ReturnType<EventStore['page']>> = await events.page({
      orgId,
      filter: within,
      limit: pageEvents,
      before,
      ceilingSeq,
    })
    for (const event of page.events) count.add(outcomeOf(event), event.occurredAtMs, 1)
    looked += page.events.length
    before = page.next
    ceilingSeq = page.ceilingSeq
    lookedSinceMs = before?.occurredAtMs ?? span.sinceMs
  } while (before !== null && looked < lookedMax && within.text === undefined)
  return { ...count.done(), complete: before === null, lookedSince: isoTime(lookedSinceMs) }
}

function outcomeOf(event: StoredEvent): string {
  return (JSON.parse(event.json) as { outcome: string }).outcome
}
