/** Which hours a dashboard page is about, in which steps, and the hours before that it is compared with. */
import { isoTime } from '../clock.ts'
import { invalidQuery, type ParameterKind, type Query } from '../http/query.ts'
import { parseQueryTime } from '../http/query-time.ts'
import type { PeriodView, RangeName } from './shapes.ts'

export const periodParameters: Record<string, ParameterKind> = {
  range: 'one',
  since: 'one',
  until: 'one',
  siteId: 'many',
}

/** Both ends are whole hours, because that is how events are counted. */
export interface Period {
  range: RangeName
  sinceMs: number // inclusive, the beginning of a step
  untilMs: number // exclusive; inside the last step while that one runs
  /** What it is compared with: the same hours, as much earlier as the range is long. */
  before: { sinceMs: number; untilMs: number }
  stepMs: number
  nowMs: number
  siteIds?: string[]
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const rangeDays: { readonly [range: string]: number } = { '24h': 1, '7d': 7, '30d': 30 }
/** Counts by hour are kept this long. */
const daysMax = 400

/** Steps are so long that a chart has at most about 170 of them, and so that whole ones make a UTC day. */
function stepFor(lengthMs: number): number {
  if (lengthMs <= 3 * dayMs) return hourMs
  if (lengthMs <= 8 * dayMs) return 3 * hourMs
  if (lengthMs <= 42 * dayMs) return 6 * hourMs
  return dayMs
}

const down = (ms: number, stepMs: number): number => Math.floor(ms / stepMs) * stepMs
const up = (ms: number, stepMs: number): number => Math.ceil(ms / stepMs) * stepMs

/** `range` of 24h, 7d or 30d up to the running hour, or `since` and `until`. Throws 400 `invalid_query`. */
export function readPeriod(query: Query, nowMs: number): Period {
  const siteIds = query.many('siteId')?.filter((siteId) => siteId !== '')
  const of = siteIds === undefined || siteIds.length === 0 ? {} : { siteIds }
  const since = query.one('since')
  const until = query.one('until')
  if (since === undefined && until === undefined) {
    return { ...runningPeriod(query.one('range') ?? '7d', nowMs), ...of }
  }
  if (query.one('range') !== undefined) throw invalidQuery('range', 'range does not go with since and until')
  if (since === undefined) throw invalidQuery('since', 'until needs since', 'required')
  return { ...chosenPeriod(since, until, nowMs), ...of }
}

function runningPeriod(range: string, nowMs: number): Period {
  const days = Object.hasOwn(rangeDays, range) ? rangeDays[range] : undefined
  if (days === undefined)
    throw invalidQuery('range', `range must be one of ${Object.keys(rangeDays).join(', ')}`)
  const untilMs = down(nowMs, hourMs) + hourMs
  const lengthMs = days * dayMs
  const stepMs = stepFor(lengthMs)
  const sinceMs = up(untilMs, stepMs) - lengthMs
  const before = { sinceMs: sinceMs - lengthMs, untilMs: untilMs - lengthMs }
  return { range: range as RangeName, sinceMs, untilMs, before, stepMs, nowMs }
}

/** A chosen time is widened to whole steps, so that no bar of a chart counts only a part of its time. */
function chosenPeriod(since: string, until: string | undefined, nowMs: number): Period {
  const fromMs = parseQueryTime('since', since)
  const toMs = until === undefined ? down(nowMs, hourMs) + hourMs : parseQueryTime('until', until)
  if (toMs <= fromMs) throw invalidQuery('until', 'until must be after since')
  if (toMs - fromMs > daysMax * dayMs)
    throw invalidQuery('since', `a range may have at most ${daysMax} days: counts are kept that long`)
  const stepMs = stepFor(up(toMs, hourMs) - down(fromMs, hourMs))
  const sinceMs = down(fromMs, stepMs)
  const untilMs = up(toMs, stepMs)
  const before = { sinceMs: 2 * sinceMs - untilMs, untilMs: sinceMs }
  return { range: 'custom', sinceMs, untilMs, before, stepMs, nowMs }
}

export function periodView(
  period: Period,
  sites: { siteId: string; name: string | null; hidden: boolean }[],
): PeriodView {
  return {
    range: period.range,
    since: isoTime(period.sinceMs),
    until: isoTime(period.untilMs),
    before: { since: isoTime(period.before.sinceMs), until: isoTime(period.before.untilMs) },
    now: isoTime(period.nowMs),
    stepHours: period.stepMs / hourMs,
    siteIds: period.siteIds ?? [],
    sites: sites.filter((site) => !site.hidden).map(({ siteId, name }) => ({ siteId, name })),
  }
}

/** How many steps a chart of the period has. */
export function stepCount({ sinceMs, untilMs, stepMs }: Period): number {
  return Math.ceil((untilMs - sinceMs) / stepMs)
}
