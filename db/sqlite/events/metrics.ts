/** Counts by hour for GET /v1/metrics: rollups and what is not folded yet, exact at every moment. */
import type { Database } from 'bun:sqlite'
import type { Metrics, MetricsQuery, MetricsText } from '../../store.ts'
import { countUnfolded } from './fold.ts'
import { member } from './members.ts'
import { hourMs, outcomesSpan, typesSpan } from './rollup-counts.ts'
import { hourRange, siteCodes, type HourRange } from './rollup-range.ts'
import { termTexts } from './term-texts.ts'

/** Numbers only, as SQLite gives them: an object for each row takes three times as long. */
type Count = [hour: number, site: number, type: number, outcome: number, events: number]

interface Texts {
  site: Map<number, string>
  type: Map<number, string>
  outcome: Map<number, string>
}

export function readMetrics(db: Database, org: number, query: MetricsQuery): Metrics {
  const { counts, texts, ...sums } = countsOf(db, org, query)
  const rows = counts.map(([hour, site, type, outcome, count]) => ({
    siteId: texts.site.get(site) ?? '',
    bucketStartMs: hour * hourMs,
    type: texts.type.get(type) ?? '',
    outcome: texts.outcome.get(outcome) ?? '',
    count,
  }))
  return { ...sums, rows }
}

export function readMetricsText(db: Database, org: number, query: MetricsQuery): MetricsText {
  const { counts, texts, ...sums } = countsOf(db, org, query)
  const orgId = JSON.stringify(query.orgId)
  const [site, type, outcome] = [jsonOf(texts.site), jsonOf(texts.type), jsonOf(texts.outcome)]
  const rows: string[] = []
  let hour = NaN
  let start = ''
  for (const count of counts) {
    if (count[0] !== hour) {
      hour = count[0]
      start = new Date(hour * hourMs).toISOString()
    }
    const names = `"siteId":${site(count[1])},"bucketStart":"${start}","type":${type(count[2])}`
    rows.push(`{"orgId":${orgId},${names},"outcome":${outcome(count[3])},"count":${count[4]}}`)
  }
  return { ...sums, rowsJson: `[${rows.join(',')}]` }
}

function jsonOf(texts: Map<number, string>): (code: number) => string {
  const json = new Map([...texts].map(([code, text]) => [code, JSON.stringify(text)]))
  return (code) => json.get(code) ?? '""'
}

/** The first `rowsMax` counts in the order of their texts, and sums over all of them. */
function countsOf(db: Database, org: number, query: MetricsQuery) {
  const range = hourRange(query.sinceMs, query.untilMs)
  const sites = siteCodes(db, org, query.siteIds)
  const all = addUnfolded(db, org, range, sites, foldedCounts(db, org, range, sites))
  const texts: Texts = {
    site: termTexts(db, org, member.siteId),
    type: termTexts(db, org, member.type),
    outcome: termTexts(db, org, member.outcome),
  }
  const byHour = new Map<number, number>()
  const byType = new Map<number, number>()
  const byOutcome = new Map<number, number>()
  let total = 0
  for (const [hour, , type, outcome, events] of all) {
    total += events
    addTo(byHour, hour, events)
    addTo(byType, type, events)
    addTo(byOutcome, outcome, events)
  }
  const hours = [...byHour].sort(([a], [b]) => a - b)
  return {
    total,
    byType: namedSums(byType, texts.type),
    byOutcome: namedSums(byOutcome, texts.outcome),
    byHour: hours.map(([hour, count]) => ({ hourStartMs: hour * hourMs, count })),
    counts: inOrder(all, texts).slice(0, query.rowsMax),
    texts,
    truncated: all.length > query.rowsMax,
  }
}

function foldedCounts(
  db: Database,
  org: number,
  { from, until }: HourRange,
  sites: ReadonlySet<number> | null,
): Count[] {
  const sql = `SELECT hour, site, type, outcome, live + expired FROM rollup_metric
               WHERE org = ? AND hour >= ? AND hour < ?`
  const counts = db.query<unknown, [number, number, number]>(sql).values(org, from, until) as Count[]
  return sites === null ? counts : counts.filter(([, site]) => sites.has(site))
}

function addUnfolded(
  db: Database,
  org: number,
  { from, until }: HourRange,
  sites: ReadonlySet<number> | null,
  folded: Count[],
): Count[] {
  const keyOf = (hour: number, site: number, type: number, outcome: number): string =>
    `${hour} ${site} ${type} ${outcome}`
  const fresh = new Map<string, Count>()
  const hours = new Set<number>()
  for (const { hour, site, type, outcome, events } of countUnfolded(db, org, []).groups()) {
    if (hour < from || hour >= until || sites?.has(site) === false) continue
    fresh.set(keyOf(hour, site, type, outcome), [hour, site, type, outcome, events])
    hours.add(hour)
  }
  for (const count of folded) {
    if (!hours.has(count[0])) continue
    const key = keyOf(count[0], count[1], count[2], count[3])
    count[4] += fresh.get(key)?.[4] ?? 0
    fresh.delete(key)
  }
  return [...folded, ...fresh.values()]
}

/** Ascending by hour, site, type, outcome: by their texts, whose places in the alphabet are one number together. */
function inOrder(counts: Count[], texts: Texts): Count[] {
  const [site, type, outcome] = [ranksOf(texts.site), ranksOf(texts.type), ranksOf(texts.outcome)]
  const rank = ([, siteCode, typeCode, outcomeCode]: Count): number =>
    (site(siteCode) * typesSpan + type(typeCode)) * outcomesSpan + outcome(outcomeCode)
  return counts
    .map((count) => ({ count, rank: rank(count) }))
    .sort((a, b) => a.count[0] - b.count[0] || a.rank - b.rank)
    .map(({ count }) => count)
}

/** From 1 on; what has no text comes first. */
function ranksOf(texts: Map<number, string>): (code: number) => number {
  const sorted = [...texts].sort(([, a], [, b]) => compare(a, b))
  const ranks = new Map(sorted.map(([code], index) => [code, index + 1]))
  return (code) => ranks.get(code) ?? 0
}

function addTo(sums: Map<number, number>, key: number, events: number): void {
  sums.set(key, (sums.get(key) ?? 0) + events)
}

/** Ascending by name. */
function namedSums(sums: Map<number, number>, texts: Map<number, string>): { [name: string]: number } {
  const named = [...sums].map(([code, count]): [string, number] => [texts.get(code) ?? '', count])
  return Object.fromEntries(named.sort(([a], [b]) => compare(a, b)))
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
