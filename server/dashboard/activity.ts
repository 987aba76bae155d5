/** The durations of tool calls and the active agents on the Analytics page. */
import type { Durations } from '../../db/contract/store.ts'
import { isoTime } from '../clock.ts'
import type { CountScope } from './counts.ts'
import { edgesOf, steps } from '../text/time-zone.ts'
import { type Period, periodView, stepAt, stepCount } from './period.ts'
import type { ActiveAgents, CallDurations } from './shapes.ts'

const dayMs = 86_400_000

/**
 * The store has sketches per UTC day beside those per hour, and reads a month of them thirty times as fast. Ranges that
 * are long enough to need them use UTC steps in every time zone.
 */
function stepsOf(period: Period): Period {
  const days = (period.untilMs - period.sinceMs) / dayMs
  if (days <= 8) return period
  const zone = days <= 42 ? period.zone : 'UTC'
  const step = steps[period.step].hours > steps.day.hours ? period.step : 'day'
  const { edges, onTheHour } = edgesOf(period.sinceMs, period.untilMs, step, zone)
  return { ...period, zone, step, edges, onTheHour, sinceMs: edges[0] ?? period.sinceMs }
}

/** All tools together, over the whole period and per step. */
export async function callDurations({ store, orgId, period: scope }: CountScope): Promise<CallDurations> {
  const period = stepsOf(scope)
  const { sinceMs, untilMs, edges, siteIds } = period
  const of = {
    orgId,
    types: ['tool.executed'],
    sinceMs,
    untilMs,
    together: true,
    ...(siteIds && { siteIds }),
  }
  const [sites, whole, stepped] = await Promise.all([
    store.sites.list(orgId),
    store.events.durations({ ...of, stepMs: null }),
    store.events.durations({ ...of, stepMs: null, edges }),
  ])
  const found = Array<CallDurations['whole']>(stepCount(period)).fill(null)
  for (const row of stepped.rows) found[stepAt(period, row.startMs)] = quantiles(row)
  return {
    period: periodView(period, sites),
    whole: whole.rows[0] ? quantiles(whole.rows[0]) : null,
    steps: found,
  }
}

function quantiles({ count, p50Ms, p95Ms, p99Ms }: Durations['rows'][number]) {
  return { count, p50Ms, p95Ms, p99Ms }
}

const monthsShown = 12
const daysShown = 30

/** A month is not the sum of its days: an agent active on several days counts once. */
export async function activeAgents(scope: CountScope): Promise<ActiveAgents> {
  const { period } = scope
  const now = new Date(period.nowMs)
  const startOf = (back: number) => Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back, 1)
  const backs = Array.from({ length: monthsShown }, (_, index) => monthsShown - 1 - index)
  const today = Math.floor(period.nowMs / dayMs) * dayMs
  const firstDay = today - (daysShown - 1) * dayMs
  const [vendors, monthly, daily] = await Promise.all([
    Promise.all(backs.map((back) => vendorsOf(scope, startOf(back), startOf(back - 1)))),
    distinct(scope, startOf(monthsShown - 1), startOf(-1), 'month'),
    distinct(scope, firstDay, today + dayMs, 'day'),
  ])
  return {
    months: backs.map((back, index) => ({
      month: isoTime(startOf(back)).slice(0, 7),
      ...vendors[index]!,
      ...monthly(startOf(back)),
    })),
    days: Array.from({ length: daysShown }, (_, index) => {
      const startMs = firstDay + index * dayMs
      return { day: isoTime(startMs).slice(0, 10), ...daily(startMs) }
    }),
    now: isoTime(period.nowMs),
  }
}

async function vendorsOf({ store, orgId, period }: CountScope, sinceMs: number, untilMs: number) {
  const of = { orgId, sinceMs, untilMs, ...(period.siteIds && { siteIds: period.siteIds }) }
  const [{ rows }, { byType }] = await Promise.all([
    store.events.breakdown({ ...of, by: 'vendor', types: ['agent.detected'], stepMs: null }),
    store.events.metrics({ ...of, rowsMax: 1 }), // detections without a vendor are detections too
  ])
  return {
    vendors: new Set(rows.filter((row) => row.value !== null).map((row) => row.value)).size,
    detections: byType['agent.detected'] ?? 0,
  }
}

async function distinct(
  { store, orgId, period: { siteIds } }: CountScope,
  sinceMs: number,
  untilMs: number,
  step: 'day' | 'month',
) {
  const of = { orgId, sinceMs, untilMs, step, ...(siteIds && { siteIds }) }
  const [sessions, subjects] = await Promise.all([
    store.events.distinct({ ...of, of: 'session' }),
    store.events.distinct({ ...of, of: 'subject' }),
  ])
  const countAt = (rows: typeof sessions.rows, startMs: number) =>
    rows.find((row) => row.startMs === startMs)?.count ?? 0
  return (startMs: number) => ({
    sessions: countAt(sessions.rows, startMs),
    subjects: countAt(subjects.rows, startMs),
  })
}
