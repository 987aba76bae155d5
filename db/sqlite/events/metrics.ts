/** Counts by hour for GET /v1/metrics: rollups and what is not folded yet, exact at every moment. */
import type { Database } from 'bun:sqlite'
import type { Metrics, MetricsQuery, MetricsRow } from '../../store.ts'
import { countUnfolded } from './fold.ts'
import { member } from './members.ts'
import { hourRange, siteCodes, type HourRange } from './rollup-range.ts'
import { hourMs } from './rollup-counts.ts'
import { termTexts } from './term-texts.ts'

interface Count {
  hour: number
  site: number
  type: number
  outcome: number
  events: number
}

export function readMetrics(db: Database, org: number, query: MetricsQuery): Metrics {
  const range = hourRange(query.sinceMs, query.untilMs)
  const sites = siteCodes(db, org, query.siteIds)
  const counts = addUnfolded(db, org, range, sites, foldedCounts(db, org, range, sites))
  const names = {
    site: termTexts(db, org, member.siteId),
    type: termTexts(db, org, member.type),
    outcome: termTexts(db, org, member.outcome),
  }
  const rows = counts.map(({ hour, site, type, outcome, events }): MetricsRow => ({
    siteId: names.site.get(site) ?? '',
    bucketStartMs: hour * hourMs,
    type: names.type.get(type) ?? '',
    outcome: names.outcome.get(outcome) ?? '',
    count: events,
  }))
  rows.sort(
    (a, b) =>
      a.bucketStartMs - b.bucketStartMs ||
      compare(a.siteId, b.siteId) ||
      compare(a.type, b.type) ||
      compare(a.outcome, b.outcome),
  )
  return {
    total: rows.reduce((sum, { count }) => sum + count, 0),
    byType: Object.fromEntries(sums(rows, ({ type }) => type)),
    byOutcome: Object.fromEntries(sums(rows, ({ outcome }) => outcome)),
    byHour: sums(rows, ({ bucketStartMs }) => bucketStartMs).map(([hourStartMs, count]) => ({
      hourStartMs,
      count,
    })),
    rows: rows.slice(0, query.rowsMax),
    truncated: rows.length > query.rowsMax,
  }
}

function foldedCounts(
  db: Database,
  org: number,
  { from, until }: HourRange,
  sites: ReadonlySet<number> | null,
): Count[] {
  const sql = `SELECT hour, site, type, outcome, live + expired AS events FROM rollup_metric
               WHERE org = ? AND hour >= ? AND hour < ?`
  const counts = db.query<Count, [number, number, number]>(sql).all(org, from, until)
  return sites === null ? counts : counts.filter(({ site }) => sites.has(site))
}

function addUnfolded(
  db: Database,
  org: number,
  { from, until }: HourRange,
  sites: ReadonlySet<number> | null,
  folded: Count[],
): Count[] {
  const keyOf = ({ hour, site, type, outcome }: Count) => `${hour} ${site} ${type} ${outcome}`
  const fresh = new Map<string, Count>()
  for (const group of countUnfolded(db, org, []).groups()) {
    if (group.hour < from || group.hour >= until || sites?.has(group.site) === false) continue
    fresh.set(keyOf(group), group)
  }
  if (fresh.size > 0) {
    for (const count of folded) {
      const key = keyOf(count)
      count.events += fresh.get(key)?.events ?? 0
      fresh.delete(key)
    }
  }
  return [...folded, ...fresh.values()]
}

/** Sums by a key, ascending. */
function sums<K extends string | number>(rows: MetricsRow[], keyOf: (row: MetricsRow) => K): [K, number][] {
  const totals = new Map<K, number>()
  for (const row of rows) totals.set(keyOf(row), (totals.get(keyOf(row)) ?? 0) + row.count)
  return [...totals].sort(([a], [b]) => compare(a, b))
}

function compare<T extends string | number>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0
}
