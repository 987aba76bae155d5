/** How many different sessions and verified subjects a day or month had, from sketches that can also forget. */
import type { Database } from 'bun:sqlite'
import type { Distinct, DistinctQuery } from '../../../contract/store.ts'
import { estimate, registerAndRank, registers } from '../rollups/distinct-sketch.ts'
import { countUnfolded } from '../rollups/fold.ts'
import { foldedSketches } from '../cache/sketches.ts'
import { dayHours, distinctMember, hourMs, memberAndCode } from '../rollups/counts.ts'
import { siteCodes } from '../rollups/range.ts'
import type { Sliced } from '../../threads/slices.ts'

export function* readDistinct(db: Database, org: number, query: DistinctQuery): Sliced<Distinct> {
  const from = dayOf(query.sinceMs)
  const until = query.untilMs === null ? Number.MAX_SAFE_INTEGER : dayOf(query.untilMs)
  const sites = siteCodes(db, org, query.siteIds)
  const index = distinctMember[query.of]
  const byStart = new Map<number, Uint8Array>() // start -> the highest rank of each register

  /** Null when it was not asked for. */
  function ranksOf(hour: number, site: number): Uint8Array | null {
    if (hour < from || hour >= until || sites?.has(site) === false) return null
    const start = startOf(hour, query.step)
    let ranks = byStart.get(start)
    if (ranks === undefined) byStart.set(start, (ranks = new Uint8Array(registers)))
    return ranks
  }

  yield* foldedSketches(db, org, index, { from, until }, ({ hour, site, ranks }) => {
    const into = ranksOf(hour, site)
    for (let register = 0; into !== null && register < registers; register++)
      if (ranks[register]! > into[register]!) into[register] = ranks[register]!
  })
  const unfolded = yield* countUnfolded(db, org, [index])
  for (const { hour, site, values } of unfolded.days()) {
    for (const key of values.keys()) {
      const [at, code] = memberAndCode(key)
      const into = at === index ? ranksOf(hour, site) : null
      const [register, rank] = registerAndRank(code)
      if (into !== null) into[register] = Math.max(rank, into[register]!)
    }
  }
  const rows = Array.from(byStart, ([startMs, ranks]) => ({ startMs, count: estimate(ranks) }))
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
