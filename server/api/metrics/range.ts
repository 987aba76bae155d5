/** Which hours a question about counts is for: `since`, `until` and `siteId` read and cut down to the hour. */
import type { ParameterKind, Query } from '../../http/query.ts'
import { parseQueryTime } from '../../http/query-time.ts'
import { limits } from '../../limits.ts'

export const rangeParameters: Record<string, ParameterKind> = { since: 'one', until: 'one', siteId: 'many' }

export interface CountRange {
  sinceMs: number
  untilMs: number | null // null: without end
  siteIds?: string[]
}

const hourMs = 3_600_000

/** Throws 400 `invalid_query` naming a wrong parameter. Without `since`: the last 30 days. */
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
