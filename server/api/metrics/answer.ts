/** The counts of a range for GET /v1/metrics (contract §7). */
import { isoTime } from '../../clock.ts'
import { limits } from '../../limits.ts'
import { parseQueryTime, type ParameterKind, type Query } from '../../http/request.ts'
import type { Store } from '../../../db/contract/store.ts'
import { hourMs } from '../../../db/contract/units.ts'

/** The hours to count: `since` and `until` rounded down to the hour, and `siteId`. */
export const rangeParameters: Record<string, ParameterKind> = { since: 'one', until: 'one', siteId: 'many' }

interface CountRange {
  sinceMs: number
  untilMs: number | null // null: open end
  siteIds?: string[]
}

/** The last 30 days without `since`. Throws 400 `invalid_query` that names the wrong parameter. */
export function readRange(query: Query, now: number): CountRange {
  const since = query.one('since')
  const until = query.one('until')
  const siteIds = query.many('siteId')
  const sinceMs = since === undefined ? now - limits.metricsDefaultMs : parseQueryTime('since', since)
  const untilMs = until === undefined ? null : parseQueryTime('until', until)
  return {
    sinceMs: hourOf(sinceMs),
    untilMs: untilMs === null ? null : hourOf(untilMs),
    ...(siteIds === undefined ? {} : { siteIds }),
  }
}

function hourOf(ms: number): number {
  return Math.floor(ms / hourMs) * hourMs
}

/** The JSON text of a `MetricsAnswer`; the store returns its thousands of rows as text, which is passed through. */
export async function metricsAnswer(
  store: Pick<Store, 'events'>,
  orgId: string,
  range: CountRange,
): Promise<string> {
  const rowsMax = limits.metricsRowsMax
  const metrics = await store.events.metricsText({ orgId, ...range, rowsMax })
  const { total, byType, byOutcome, byHour, rowsJson, truncated } = metrics
  const sums = JSON.stringify({
    since: isoTime(range.sinceMs),
    until: range.untilMs === null ? null : isoTime(range.untilMs),
    total,
    byType,
    byOutcome,
    byHour: byHour.map(({ hourStartMs, count }) => ({ hour: isoTime(hourStartMs), count })),
  })
  return `${sums.slice(0, -1)},"rows":${rowsJson}${truncated ? ',"truncated":true' : ''}}`
}
