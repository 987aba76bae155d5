/** The counts of a range as GET /v1/metrics answers them (contract §7). */
import type { Store } from '../../../db/contract/store.ts'
import { isoTime } from '../../clock.ts'
import { limits } from '../../limits.ts'
import type { CountRange } from './range.ts'

/** What the text says once it is parsed. */
export interface MetricsAnswer {
  since: string
  until: string | null
  total: number
  byType: { [type: string]: number }
  byOutcome: { [outcome: string]: number }
  byHour: { hour: string; count: number }[]
  rows: {
    orgId: string
    siteId: string
    bucketStart: string
    type: string
    outcome: string
    count: number
  }[]
  truncated?: true
}

/** JSON text of a `MetricsAnswer`; its rows, thousands of them, come as text and are passed on as they are. */
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
