/** Caches sketches of single days from the rollups. A fold changes only the days of its arrivals. */
import type { Database } from 'bun:sqlite'
import { registerAndRank, registers } from '../rollups/sketches.ts'
import { changedHours, foldState, type FoldState } from '../rollups/hours.ts'
import { dayHours } from '../rollups/counts.ts'
import { inChunks, ofValues, type HourRange } from '../rollups/range.ts'
import { isSliceOver, type Sliced } from '../../threads/slices.ts'

/** Of one day and site. */
export interface Sketch {
  hour: number // the first of the day
  site: number
  ranks: Uint8Array // the highest rank per register, 0 without a value
}

interface Kept extends FoldState {
  days: Map<string, Sketch[]> // by field and day
}

/** Bytes of all organizations together: 2 MiB. */
const sketchesMax = 512
/**
 * Most arrivals whose blocks are read for their hours, 10 ms per million. Beyond it, reading a day again is as quick.
 */
const arrivalsMax = 2_000_000

const caches = new WeakMap<Database, Map<number, Kept>>()

/** Enables the cache on a reader's connection. */
export function cacheSketches(db: Database): void {
  caches.set(db, new Map())
}

/** Visits the sketches of a field, up to the watermark, by day. */
export function* foldedSketches(
  db: Database,
  org: number,
  member: number,
  { from, until }: HourRange,
  visit: (sketch: Sketch) => void,
): Sliced<void> {
  const days = keptDays(db, org)
  for (let hour = nextDay(db, org, member, from); hour !== null && hour < until;) {
    const key = `${member} ${hour}`
    let sketches = days.get(key)
    if (sketches === undefined) {
      sketches = yield* readDay(db, org, member, hour)
      if (makeRoom(db, org, sketches.length)) days.set(key, sketches)
    }
    sketches.forEach(visit)
    if (isSliceOver()) yield
    hour = nextDay(db, org, member, hour + 1)
  }
}

/** The cached days that are still valid. Without a cache nothing outlives the query. */
function keptDays(db: Database, org: number): Map<string, Sketch[]> {
  const all = caches.get(db)
  const state = foldState(db, org)
  if (all === undefined || state === null) return new Map()
  const cache = all.get(org)
  const behind = cache === undefined ? 0 : state.foldedSeq - cache.foldedSeq
  const holds = cache?.rewrites === state.rewrites && behind >= 0 && behind <= arrivalsMax
  const days = holds && cache !== undefined ? cache.days : new Map<string, Sketch[]>()
  if (behind > 0 && days.size > 0) {
    const changed = new Set<number>()
    for (const hour of changedHours(db, org, cache!.foldedSeq, state.foldedSeq))
      changed.add(Math.floor(hour / dayHours) * dayHours)
    for (const key of days.keys()) if (changed.has(Number(key.split(' ')[1]))) days.delete(key)
  }
  all.delete(org) // moves the organization to the end
  all.set(org, { ...state, days })
  return days
}

/** The first day of the rollups from an hour on. */
function nextDay(db: Database, org: number, member: number, from: number): number | null {
  const sql = 'SELECT min(hour) AS hour FROM rollup_value WHERE org = ? AND member = ? AND hour >= ?'
  return db.query<{ hour: number | null }, [number, number, number]>(sql).get(org, member, from)?.hour ?? null
}

function* readDay(db: Database, org: number, member: number, hour: number): Sliced<Sketch[]> {
  const bySite = new Map<number, Uint8Array>()
  const sql = 'SELECT site, code FROM rollup_value WHERE org = ? AND member = ? AND live + expired > 0'
  const day = { from: hour, until: hour + 1 }
  yield* inChunks(db, ofValues, [org, member], day, (inChunk, key) => {
    const rows = db.query<unknown, number[]>(sql + inChunk).values(org, member, ...key) as [number, number][]
    for (const [site, code] of rows) {
      let ranks = bySite.get(site)
      if (ranks === undefined) bySite.set(site, (ranks = new Uint8Array(registers)))
      const [register, rank] = registerAndRank(code)
      ranks[register] = Math.max(rank, ranks[register]!)
    }
  })
  return Array.from(bySite, ([site, ranks]) => ({ hour, site, ranks }))
}

/** Evicts the organizations queried longest ago, and this one's days when it alone exceeds the limit. */
function makeRoom(db: Database, org: number, more: number): boolean {
  const all = caches.get(db)
  if (all === undefined || more > sketchesMax) return false
  let held = more
  for (const { days } of all.values()) for (const sketches of days.values()) held += sketches.length
  for (const [oldest, { days }] of all) {
    if (held <= sketchesMax) break
    for (const sketches of days.values()) held -= sketches.length
    days.clear()
    if (oldest !== org) all.delete(oldest)
  }
  return true
}
