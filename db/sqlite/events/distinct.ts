/** How many different sessions and verified subjects a day or month had, from sketches that can also forget. */
import type { Database } from 'bun:sqlite'
import type { Distinct, DistinctQuery } from '../../store.ts'
import { estimate, registerAndRank } from './distinct-sketch.ts'
import { countUnfolded } from './fold.ts'
import { dayHours, distinctMember, hourMs, memberAndCode } from './rollup-counts.ts'
import { siteCodes } from './rollup-range.ts'

export function readDistinct(db: Database, org: number, query: DistinctQuery): Distinct {
  const from = dayOf(query.sinceMs)
  const until = query.untilMs === null ? Number.MAX_SAFE_INTEGER : dayOf(query.untilMs)
  const sites = siteCodes(db, org, query.siteIds)
  const index = distinctMember[query.of]
  const byStart = new Map<number, Map<number, number>>() // start -> register -> highest rank

  function add(hour: number, site: number, code: number): void {
    if (hour < from || hour >= until || sites?.has(site) === false) return
    const start = startOf(hour, query.step)
    let registers = byStart.get(start)
    if (registers === undefined) byStart.set(start, (registers = new Map()))
    const [register, rank] = registerAndRank(code)
    registers.set(register, Math.max(rank, registers.get(register) ?? 0))
  }

  const folded = db.query<unknown, [number, number, number, number]>(
    `SELECT hour, site, code FROM rollup_value
     WHERE org = ? AND member = ? AND hour >= ? AND hour < ? AND live + expired > 0`,
  )
  for (const row of folded.values(org, index, from, until) as [number, number, number][]) add(...row)
  for (const { hour, site, values } of countUnfolded(db, org, [index]).days()) {
    for (const key of values.keys()) {
      const [at, code] = memberAndCode(key)
      if (at === index) add(hour, site, code)
    }
  }
  const rows = Array.from(byStart, ([startMs, registers]) => ({ startMs, count: estimate(registers) }))
  return { rows: rows.sort((a, b) => a.startMs - b.startMs) }
}

/** The first hour of the day. */
function dayOf(ms: number): number {
  return Math.floor(ms / hourMs / dayHours) * dayHours
}

function startOf(hour: number, step: DistinctQuery['step']): number {
  if (step === 'day') return hour * hourMs
  const at = new Date(hour * hourMs)
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1)
}
