/** Counts by hour for GET /v1/metrics, and an organization's totals, from rollups and the arrivals not folded yet. */
import type { Database } from '../../database.ts'
import type { Metrics, MetricsQuery, MetricsText } from '../../../contract/store.ts'
import { countUnfolded } from '../rollups/fold.ts'
import { foldedHours, type Count, type HourCounts, type Order } from '../rollups/hours.ts'
import { member, termTexts } from '../blocks/fields.ts'
import { outcomesSpan, typesSpan } from '../rollups/counts.ts'
import { hourRange, siteCodes, typeCodes, type HourRange } from '../rollups/range.ts'
import { isSliceOver, type Sliced } from '../../slices.ts'
import { hourMs } from '../../../contract/units.ts'

interface Texts {
  site: Map<number, string>
  type: Map<number, string>
  outcome: Map<number, string>
}

export function* readMetrics(db: Database, org: number, query: MetricsQuery): Sliced<Metrics> {
  const { hours, texts, ...sums } = yield* countsOf(db, org, query)
  const counts = hours.flatMap((hourCounts) => hourCounts.counts)
  const rows = counts.slice(0, query.rowsMax).map(([hour, site, type, outcome, count]) => ({
    siteId: texts.site.get(site) ?? '',
    bucketStartMs: hour * hourMs,
    type: texts.type.get(type) ?? '',
    outcome: texts.outcome.get(outcome) ?? '',
    count,
  }))
  return { ...sums, rows }
}

export function* readMetricsText(db: Database, org: number, query: MetricsQuery): Sliced<MetricsText> {
  const { hours, texts, ...sums } = yield* countsOf(db, org, query)
  const orgId = JSON.stringify(query.orgId)
  const site = jsonOf(texts.site)
  const type = jsonOf(texts.type)
  const outcome = jsonOf(texts.outcome)

  function jsonOfHour(hour: number, counts: Count[]): string {
    const start = new Date(hour * hourMs).toISOString()
    const rows = counts.map(([, siteCode, typeCode, outcomeCode, count]) => {
      const names = `"siteId":${site(siteCode)},"bucketStart":"${start}","type":${type(typeCode)}`
      return `{"orgId":${orgId},${names},"outcome":${outcome(outcomeCode)},"count":${count}}`
    })
    return rows.join(',')
  }

  const parts: string[] = []
  let remainingRows = query.rowsMax
  for (const hourCounts of hours) {
    if (remainingRows <= 0) break
    if (isSliceOver()) yield
    const isWhole = hourCounts.counts.length <= remainingRows
    parts.push(
      isWhole
        ? (hourCounts.json ??= jsonOfHour(hourCounts.hour, hourCounts.counts))
        : jsonOfHour(hourCounts.hour, hourCounts.counts.slice(0, remainingRows)),
    )
    remainingRows -= hourCounts.counts.length
  }
  return { ...sums, rowsJson: `[${parts.join(',')}]` }
}

function jsonOf(texts: Map<number, string>): (code: number) => string {
  const json = new Map([...texts].map(([code, text]) => [code, JSON.stringify(text)]))
  return (code) => json.get(code) ?? '""'
}

/** The counts of a query's hours, ascending, each sorted by its texts, and sums over all hours. */
function* countsOf(db: Database, org: number, query: MetricsQuery) {
  const range = hourRange(query.sinceMs, query.untilMs)
  const only: Only = {
    sites: siteCodes(db, org, query.siteIds),
    types: typeCodes(db, org, query.types),
    outcomes: query.outcomes === undefined ? null : outcomeCodes(db, org, query.outcomes),
  }
  const texts: Texts = {
    site: termTexts(db, org, member.siteId),
    type: termTexts(db, org, member.type),
    outcome: termTexts(db, org, member.outcome),
  }
  const order = orderBy(texts)
  const folded = yield* foldedHours(db, org, range, order)
  const hours = matching(yield* addUnfolded(db, org, range, folded, order), only)
  const byHour: { hourStartMs: number; count: number }[] = []
  const byType = new Map<number, number>()
  const byOutcome = new Map<number, number>()
  let total = 0
  let rows = 0
  for (const { hour, counts } of hours) {
    if (isSliceOver()) yield
    let count = 0
    for (const [, , type, outcome, events] of counts) {
      count += events
      addTo(byType, type, events)
      addTo(byOutcome, outcome, events)
    }
    byHour.push({ hourStartMs: hour * hourMs, count })
    total += count
    rows += counts.length
  }
  return {
    total,
    byType: namedSums(byType, texts.type),
    byOutcome: namedSums(byOutcome, texts.outcome),
    byHour,
    hours,
    texts,
    truncated: rows > query.rowsMax,
  }
}

interface Only {
  sites: ReadonlySet<number> | null
  types: ReadonlySet<number> | null
  outcomes: ReadonlySet<number> | null
}

function outcomeCodes(db: Database, org: number, outcomes: string[]): Set<number> {
  const texts = [...termTexts(db, org, member.outcome)]
  return new Set(texts.filter(([, text]) => outcomes.includes(text)).map(([code]) => code))
}

function matching(hours: HourCounts[], { sites, types, outcomes }: Only): HourCounts[] {
  if (sites === null && types === null && outcomes === null) return hours
  const matchingHours = hours.map(({ hour, counts }) => ({
    hour,
    counts: counts.filter(
      ([, site, type, outcome]) =>
        sites?.has(site) !== false && types?.has(type) !== false && outcomes?.has(outcome) !== false,
    ),
  }))
  return matchingHours.filter(({ counts }) => counts.length > 0)
}

/** Hours with unfolded arrivals are copied, because the folded ones are shared. */
function* addUnfolded(
  db: Database,
  org: number,
  { from, until }: HourRange,
  folded: HourCounts[],
  order: Order,
): Sliced<HourCounts[]> {
  const fresh = new Map<number, Count[]>()
  const unfolded = yield* countUnfolded(db, org, [])
  for (const { hour, site, type, outcome, events } of unfolded.groups()) {
    if (hour < from || hour >= until) continue
    const counts = fresh.get(hour)
    const count: Count = [hour, site, type, outcome, events]
    if (counts === undefined) fresh.set(hour, [count])
    else counts.push(count)
  }
  if (fresh.size === 0) return folded
  const hours = folded.filter(({ hour }) => !fresh.has(hour))
  for (const { hour, counts } of folded)
    if (fresh.has(hour)) fresh.set(hour, summed(counts, fresh.get(hour)!))
  for (const [hour, counts] of fresh) hours.push({ hour, counts: order(counts) })
  return hours.sort((a, b) => a.hour - b.hour)
}

function summed(folded: readonly Count[], fresh: readonly Count[]): Count[] {
  const keyOf = ([, site, type, outcome]: Count) => (site * typesSpan + type) * outcomesSpan + outcome
  const byKey = new Map(fresh.map((count) => [keyOf(count), count]))
  for (const count of folded) {
    const [hour, site, type, outcome, events] = count
    const freshEvents = byKey.get(keyOf(count))?.[4] ?? 0
    byKey.set(keyOf(count), [hour, site, type, outcome, events + freshEvents])
  }
  return [...byKey.values()]
}

/** Ascending by site, type, outcome: by their texts, whose alphabetic ranks form one number. */
function orderBy(texts: Texts): Order {
  const site = ranksOf(texts.site)
  const type = ranksOf(texts.type)
  const outcome = ranksOf(texts.outcome)
  const rank = ([, siteCode, typeCode, outcomeCode]: Count): number =>
    (site(siteCode) * typesSpan + type(typeCode)) * outcomesSpan + outcome(outcomeCode)
  return (counts) =>
    counts
      .map((count) => ({ count, rank: rank(count) }))
      .sort((a, b) => a.rank - b.rank)
      .map(({ count }) => count)
}

/** From 1 on. Codes without a text come first. */
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
  const namedEntries = [...sums].map(([code, count]): [string, number] => [texts.get(code) ?? '', count])
  return Object.fromEntries(namedEntries.sort(([a], [b]) => compare(a, b)))
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** Whether an organization has events, and how many of each type: folded totals and unfolded arrivals. */
export function* readOverview(
  db: Database,
  org: number,
): Sliced<{ total: number; byType: { [type: string]: number } }> {
  const counts = new Map<number, number>()
  const totals = db.query<{ type: number; events: number }, [number]>(
    'SELECT type, events FROM event_type_total WHERE org = ?',
  )
  for (const { type, events } of totals.all(org)) counts.set(type, events)
  const unfolded = yield* countUnfolded(db, org, [])
  for (const { type, events } of unfolded.groups()) counts.set(type, (counts.get(type) ?? 0) + events)
  const names = termTexts(db, org, member.type)
  const byType = [...counts].map(([type, count]): [string, number] => [names.get(type) ?? '', count])
  return {
    total: byType.reduce((sum, [, count]) => sum + count, 0),
    byType: Object.fromEntries(byType.sort(([a], [b]) => (a < b ? -1 : 1))),
  }
}
