/** Computes the alerts that a rule would have raised in the last thirty days, before it is saved. */
import type { MeasureDefinition } from '../../../db/contract/alerts.ts'
import type { Series, Store } from '../../../db/contract/store.ts'
import { isoTime } from '../../clock.ts'
import { isAdditive, seriesOf } from './definition.ts'
import { judge, replay, valueOf, type Judgement, type PastAlert, type Reading } from './judge.ts'
import { baselinesOf, comparedSince, hourEdges, hourlyReadings, hoursBefore } from './measures.ts'
import { hourMs, minuteMs } from '../../../db/contract/units.ts'

interface BacktestServices {
  store: Pick<Store, 'health'> & {
    events: Pick<Store['events'], 'series'>
    retention: Pick<Store['retention'], 'firstHour'>
  }
}

const days = 30
/** Distinct values of 30 days with ten million events take less than a second of an idle processor. */
const budgetMs = 3_000
/** Of five minutes. */
const stepsMax = 8_640
const pointsMax = 720
const alertsMax = 200
const groupsShown = 20
/** About two alerts a week are as many as people read. */
const noisyAlerts = 9

interface GroupRun {
  group: string
  events: number
  points: Point[]
  alerts: PastAlert[]
}

interface Point {
  atMs: number // the end of the window
  judgement: Judgement
}

export async function backtest(
  { store }: BacktestServices,
  orgId: string,
  measureDefinition: MeasureDefinition,
  now: number,
): Promise<BacktestView> {
  const definition = { ...measureDefinition, groupsMax: Math.min(measureDefinition.groupsMax, groupsShown) }
  const stepMs = stepOf(definition)
  const untilMs = Math.floor(now / stepMs) * stepMs
  const sinceMs = untilMs - Math.min(days * 24 * hourMs, stepsMax * stepMs)
  const comparedMs = await comparedSince(store, definition)
  const firstStoredMs = (await store.retention.firstHour(orgId)) ?? untilMs
  // Windows that reach before the upgrade are not evaluated either.
  const firstMs = Math.max(firstStoredMs, comparedMs === null ? 0 : Math.ceil(comparedMs / stepMs) * stepMs)
  const isHourly = stepMs === hourMs
  const extraHours = isHourly ? hoursBefore(definition) : 0
  const edges = isHourly
    ? hourEdges(sinceMs / hourMs - extraHours, untilMs / hourMs)
    : Array.from({ length: Math.round((untilMs - sinceMs) / stepMs) + 1 }, (_, n) => sinceMs + n * stepMs)
  const series = await store.events.series({ ...seriesOf(orgId, definition), edges, budgetMs })
  const coveredMs = Math.min(
    untilMs,
    Math.max(sinceMs, series.sinceMs, Math.floor(firstMs / stepMs) * stepMs),
  )
  const runs: GroupRun[] = []
  for (const { group, events } of series.groups) {
    if (group === null) continue
    const points = isHourly
      ? hourlyPoints(definition, series, group, {
          first: edges[0]! / hourMs,
          firstHour: Math.floor(firstMs / hourMs),
        })
      : stepPoints(definition, series, group, edges)
    const shown = points.filter(({ atMs }) => atMs > coveredMs)
    const alerts = replay(shown, definition, stepMs)
    runs.push({ group, events: events.reduce((sum, count) => sum + count, 0), points: shown, alerts })
    await Bun.sleep(0) // other requests come first
  }
  const judgedSinceMs = comparedMs !== null && comparedMs > sinceMs ? comparedMs : null
  return viewOf({
    definition,
    runs,
    series,
    stepMs,
    sinceMs: coveredMs,
    untilMs,
    wantedMs: sinceMs,
    judgedSinceMs,
  })
}

/** Hours slide; windows below an hour, and measures that hours do not add up to, follow one another. */
function stepOf({ measure, windowMinutes }: MeasureDefinition): number {
  if (windowMinutes < 60) return windowMinutes * minuteMs
  return isAdditive(measure) ? hourMs : Math.min(windowMinutes, 24 * 60) * minuteMs
}

function hourlyPoints(
  definition: MeasureDefinition,
  series: Series,
  group: string,
  { first, firstHour }: { first: number; firstHour: number },
): Point[] {
  const readings = hourlyReadings(definition, series, group, { first, firstHour })
  const values = readings.map((reading) => (reading === null ? null : valueOf(definition.measure, reading)))
  const baselineAt = baselinesOf(definition, values)
  const firstIndex = firstSeen(readings)
  return readings.flatMap((reading, index) => {
    if (reading === null) return []
    const judgement = judge(definition, reading, { baseline: baselineAt(index), isKnown: index > firstIndex })
    return [{ atMs: (first + index + 1) * hourMs, judgement }]
  })
}

function firstSeen(readings: readonly (Reading | null)[]): number {
  const index = readings.findIndex((reading) => reading !== null && reading.events > 0)
  return index === -1 ? Infinity : index
}

function stepPoints(definition: MeasureDefinition, series: Series, group: string, edges: number[]): Point[] {
  const groupSeries = series.groups.find((seriesGroup) => seriesGroup.group === group)
  const readings = edges.slice(1).map((_, step): Reading | null => {
    if (edges[step]! < series.sinceMs) return null
    return {
      events: groupSeries?.events[step] ?? 0,
      part: groupSeries?.part[step] ?? 0,
      value: groupSeries?.values[step] ?? 0,
    }
  })
  const firstIndex = firstSeen(readings)
  return readings.flatMap((reading, step) => {
    if (reading === null) return []
    const judgement = judge(definition, reading, { baseline: null, isKnown: step > firstIndex })
    return [{ atMs: edges[step + 1]!, judgement }]
  })
}

interface Ran {
  definition: MeasureDefinition
  runs: GroupRun[]
  series: Series
  stepMs: number
  sinceMs: number
  untilMs: number
  wantedMs: number
  judgedSinceMs: number | null // verdicts before it are not compared
}

/** The chart shows the group with the most alerts. */
function viewOf({ definition, runs, series, stepMs, sinceMs, untilMs, wantedMs, judgedSinceMs }: Ran) {
  const shown = runs.toSorted((a, b) => b.alerts.length - a.alerts.length || b.events - a.events)[0]
  const allAlerts = runs.flatMap(({ group, alerts }) => alerts.map((alert) => ({ group, ...alert })))
  const { condition } = definition
  // A change is judged as soon as there are two weeks to compare with.
  const judged = (shown?.points ?? []).find(({ judgement }) => judgement.baseline !== null)?.atMs ?? untilMs
  const fromMs = condition.kind === 'change' ? Math.max(sinceMs, judged - stepMs) : sinceMs
  return {
    since: isoTime(fromMs),
    until: isoTime(untilMs),
    complete: fromMs <= wantedMs,
    judgedSince: judgedSinceMs === null ? null : isoTime(judgedSinceMs),
    hourly: series.rollups,
    stepMinutes: stepMs / minuteMs,
    fired: allAlerts.length,
    noisy: allAlerts.length >= noisyAlerts,
    groups: runs.map(({ group, alerts }) => ({ group, fired: alerts.length })),
    threshold: condition.kind === 'above' || condition.kind === 'below' ? condition.value : null,
    group: shown?.group ?? '',
    points: thinned(shown?.points ?? []).map(({ atMs, judgement: { value, baseline, holds } }) => ({
      at: isoTime(atMs),
      value,
      holds,
      ...(condition.kind === 'change' && {
        expected: baseline?.expected ?? null,
        low:
          baseline === null
            ? null
            : Math.max(0, baseline.expected - condition.deviations * baseline.deviation),
        high: baseline === null ? null : baseline.expected + condition.deviations * baseline.deviation,
      }),
    })),
    incidents: allAlerts
      .toSorted((a, b) => b.sinceMs - a.sinceMs)
      .slice(0, alertsMax)
      .map(({ group, sinceMs: from, untilMs: to, value, expected, isNoData }) => ({
        group,
        from: isoTime(from),
        to: to === null ? null : isoTime(to),
        value,
        expected,
        noData: isNoData,
      })),
  }
}

/** At most one point per pixel; of several, the one with the highest value. */
function thinned(points: Point[]): Point[] {
  const size = Math.ceil(points.length / pointsMax)
  if (size <= 1) return points
  return Array.from({ length: Math.ceil(points.length / size) }, (_, n) => {
    const bucketPoints = points.slice(n * size, (n + 1) * size)
    return bucketPoints.reduce((highest, point) =>
      (point.judgement.value ?? -1) > (highest.judgement.value ?? -1) ? point : highest,
    )
  })
}

export type BacktestView = ReturnType<typeof viewOf>
