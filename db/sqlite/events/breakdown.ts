/** Counts by the values of one member, over time and by outcome: what the pages of the dashboard draw. */
import type { Database } from 'bun:sqlite'
import type { Breakdown, BreakdownQuery } from '../../store.ts'
import { countUnfolded } from './fold.ts'
import { member } from './members.ts'
import { hourMs, memberAndCode, otherCode, outcomesSpan } from './rollup-counts.ts'
import { hourRange, siteCodes, typeCodes } from './rollup-range.ts'
import { termTexts } from './term-texts.ts'

const valuesPerStepMax = 1_000

export function readBreakdown(db: Database, org: number, query: BreakdownQuery): Breakdown {
  const range = hourRange(query.sinceMs, query.untilMs)
  const sites = siteCodes(db, org, query.siteIds)
  const types = typeCodes(db, org, query.types)
  const index = member[query.by]
  const stepHours = query.stepMs === null ? null : Math.max(1, Math.floor(query.stepMs / hourMs))
  const sums = new Map<number, Map<number, number>>() // start -> codes -> events

  function add(
    hour: number,
    site: number,
    type: number,
    outcome: number,
    code: number,
    events: number,
  ): void {
    if (hour < range.from || hour >= range.until) return
    if (sites?.has(site) === false || types?.has(type) === false) return
    const start = stepHours === null ? range.from : hour - (hour % stepHours)
    let codes = sums.get(start)
    if (codes === undefined) sums.set(start, (codes = new Map()))
    const key = code * outcomesSpan + outcome
    codes.set(key, (codes.get(key) ?? 0) + events)
  }

  // Summed here and not by GROUP BY, which would sort every row first.
  const folded = db.query<unknown, [number, number, number, number]>(
    `SELECT hour, site, type, outcome, code, live + expired FROM rollup_value
     WHERE org = ? AND member = ? AND hour >= ? AND hour < ?`,
  )
  for (const row of folded.values(org, index, range.from, range.until) as RollupRow[]) add(...row)
  for (const { hour, site, type, outcome, values } of countUnfolded(db, org).groups()) {
    for (const [key, events] of values) {
      const [at, code] = memberAndCode(key)
      if (at === index) add(hour, site, type, outcome, code, events)
    }
  }
  return { rows: namedRows(db, org, index, sums) }
}

type RollupRow = [hour: number, site: number, type: number, outcome: number, code: number, events: number]

/** By time, then the most frequent first. */
function namedRows(
  db: Database,
  org: number,
  index: number,
  sums: Map<number, Map<number, number>>,
): Breakdown['rows'] {
  const texts = termTexts(db, org, index)
  const outcomes = termTexts(db, org, member.outcome)
  const rows = [...sums].flatMap(([start, codes]) =>
    Array.from(withOther(codes), ([key, count]) => {
      const code = Math.floor(key / outcomesSpan)
      const value = code === otherCode ? null : (texts.get(code) ?? '')
      return { value, outcome: outcomes.get(key % outcomesSpan) ?? '', startMs: start * hourMs, count }
    }),
  )
  return rows.sort((a, b) => a.startMs - b.startMs || b.count - a.count)
}

/** Keeps the most frequent values of a step and counts the rest as one, outcome by outcome (contract §4). */
function withOther(counts: Map<number, number>): Map<number, number> {
  const byCode = new Map<number, number>()
  for (const [key, count] of counts) {
    const code = Math.floor(key / outcomesSpan)
    if (code === otherCode) continue
    byCode.set(code, (byCode.get(code) ?? 0) + count)
  }
  if (byCode.size <= valuesPerStepMax) return counts
  const kept = [...byCode].sort(([a, x], [b, y]) => y - x || a - b).slice(0, valuesPerStepMax)
  const isKept = new Set(kept.map(([code]) => code))
  const out = new Map<number, number>()
  for (const [key, count] of counts) {
    const code = Math.floor(key / outcomesSpan)
    const into = isKept.has(code) ? key : otherCode * outcomesSpan + (key % outcomesSpan)
    out.set(into, (out.get(into) ?? 0) + count)
  }
  return out
}
