/** The counts of a range as GET /v1/metrics answers them (contract §7). */
import type { Store } from '../../db/store.ts'
import { isoTime } from '../clock.ts'
import { limits } from '../limits.ts'
import type { CountRange } from './range.ts'

export async function metricsAnswer(store: Pick<Store, 'events'>, orgId: string, range: CountRange) {
  const rowsMax = limits.metricsRowsMax
  const metrics = await store.events.metrics({ orgId, ...range, rowsMax })
  const { total, byType, byOutcome, byHour, rows, truncated } = metrics
  return {
    since: isoTime(range.sinceMs),
    until: range.untilMs === null ? null : isoTime(range.untilMs),
    total,
    byType,
    byOutcome,
    byHour: byHour.map(({ hourStartMs, count }) => ({ hour: isoTime(hourStartMs), count })),
    rows: rows.map(({ bucketStartMs, siteId, type, outcome, count }) => ({
      orgId,
      siteId,
      bucketStart: isoTime(bucketStartMs),
      type,
      outcome,
      count,
    })),
    ...(truncated ? { truncated: true } : {}),
  }
}
