/** Counts by the values of one member, over time and by outcome: what the pages of the dashboard draw. */
import type { Database } from 'bun:sqlite'
import type { Breakdown, BreakdownQuery } from '../../store.ts'
import { countUnfolded } from './fold.ts'
import { member } from './members.ts'
import { hourMs, memberAndCode, otherCode } from './rollup-counts.ts'
import { hourRange, siteCodes, typeCodes } from './rollup-range.ts'
import { termTexts } from './term-texts.ts'

interface ValueCount {
  hour: number
  site: number
  type: number
  outcome: number
  code: number
  events: number
}

export function readBreakdown(db: Database, org: number, query: BreakdownQuery): Breakdown {
  const range = hourRange(query.sinceMs, query.untilMs)
  const sites = siteCodes(db, org, query.siteIds)
  const types = typeCodes(db, org, query.types)
  const index = member[query.by]
  const stepHours = query.stepMs === null ? null : Math.max(1, Math.floor(query.stepMs / hourMs))
  const sums = new Map<string, { code: number; outcome: number; hour: number; count: number }>()

  function add({ hour, site, type, outcome, code, events }: ValueCount): void {
    if (hour < range.from || hour >= range.until) return
    if (sites?.has(site) === false || types?.has(type) === false) return
    const start = stepHours === null ? range.from : hour - (hour % stepHours)
    const key = `${start} ${code} ${outcome}`
    const sum = sums.get(key)
    if (sum === undefined) sums.set(key, { code, outcome, hour: start, count: events })
    else sum.count += events
  }

  for (const count of foldedValues(db, org, index, range.from, range.until, stepHours)) add(count)
  for (const { hour, site, type, outcome, values } of countUnfolded(db, org).groups()) {
    for (const [key, events] of values) {
      const [at, code] = memberAndCode(key)
      if (at === index) add({ hour, site, type, outcome, code, events })
    }
  }
  const texts = termTexts(db, org, index)
  const outcomes = termTexts(db, org, member.outcome)
  const rows = [...sums.values()].map(({ code, outcome, hour, count }) => ({
    value: code === otherCode ? null : (texts.get(code) ?? ''),
    outcome: outcomes.get(outcome) ?? '',
    startMs: hour * hourMs,
    count,
  }))
  return { rows: rows.sort((a, b) => a.startMs - b.startMs || b.count - a.count) }
}

/** SQLite sums what need not be told apart, so that a month of hours costs a few milliseconds. */
function foldedValues(
  db: Database,
  org: number,
  index: number,
  from: number,
  until: number,
  stepHours: number | null,
): ValueCount[] {
  const start = stepHours === null ? 'min(hour)' : 'hour - hour % ?5'
  const group = stepHours === null ? '' : ', hour - hour % ?5'
  const sql = `SELECT ${start} AS hour, site, type, outcome, code, sum(live + expired) AS events FROM rollup_value
               WHERE org = ?1 AND member = ?2 AND hour >= ?3 AND hour < ?4 GROUP BY site, type, outcome, code${group}`
  const values = stepHours === null ? [org, index, from, until] : [org, index, from, until, stepHours]
  const rows = db.query<ValueCount, number[]>(sql).all(...values)
  // The first step may begin before the range; its hours do not.
  return rows.map((row) => ({ ...row, hour: Math.max(row.hour, from) }))
}
