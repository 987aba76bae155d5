/** Caches counts by hour from the rollups. A fold changes only the hours of its arrivals. */
import type { Database } from '../../database.ts'
import { columnsOf, zonesBetween } from '../blocks/block-table.ts'
import { extra } from '../blocks/block.ts'
import { inChunks, ofMetrics, type HourRange } from './range.ts'
import { isSliceOver, type Sliced } from '../../slices.ts'
import { hourMs } from '../../../contract/units.ts'

/** Numbers only, as statements return them: an object per row takes three times as long. */
export type Count = [hour: number, site: number, type: number, outcome: number, events: number]

export interface HourCounts {
  hour: number
  counts: Count[]
  /** The counts as text, from the first metrics query on. */
  json?: string
}

/** Sorts the counts of one hour. */
export type Order = (counts: Count[]) => Count[]

/*
 * A fold changes the hours of the arrivals that it moves the watermark over; their blocks tell which. Every other
 * change of counts raises event_org.rewrites (`noteRewrite`).
 */
export interface FoldState {
  rewrites: number
  foldedSeq: number
}

interface CachedHours extends FoldState {
  range: HourRange
  hours: Map<number, HourCounts>
}

/** Rows of all organizations together: 30 days of 20 per hour, 3 MiB with their text. */
const rowsMax = 16_384
/** Most arrivals whose blocks are read for their hours. Beyond it, reading everything again is cheaper. */
const arrivalsMax = 65_536

const caches = new WeakMap<Database, Map<number, CachedHours>>()

/** Enables the cache on a reader's connection. */
export function cacheHours(db: Database): void {
  caches.set(db, new Map())
}

/** Call inside a transaction that changes counts other than by a fold. */
export function noteRewrite(db: Database, org: number): void {
  db.query('UPDATE event_org SET rewrites = rewrites + 1 WHERE num = ?').run(org)
}

/** The hours of a range up to the watermark, ascending. */
export function* foldedHours(
  db: Database,
  org: number,
  range: HourRange,
  order: Order,
): Sliced<HourCounts[]> {
  const state = foldState(db, org)
  if (state === null) return []
  const orgCaches = caches.get(db)
  let cache = orgCaches?.get(org)
  if (cache === undefined || !isUseful(cache, state, range)) {
    cache = { ...state, range, hours: new Map() }
    yield* addHours(db, org, range, order, cache.hours)
  } else if (cache.foldedSeq < state.foldedSeq) {
    for (const hour of changedHours(db, org, cache.foldedSeq, state.foldedSeq)) {
      cache.hours.delete(hour)
      if (hour >= cache.range.from && hour < cache.range.until)
        yield* addHours(db, org, { from: hour, until: hour + 1 }, order, cache.hours)
    }
    cache.foldedSeq = state.foldedSeq
  }
  if (orgCaches !== undefined) remember(orgCaches, org, cache)
  const isInRange = ({ hour }: HourCounts) => hour >= range.from && hour < range.until
  return [...cache.hours.values()].filter(isInRange).sort((a, b) => a.hour - b.hour)
}

export function foldState(db: Database, org: number): FoldState | null {
  const sql = 'SELECT folded_seq AS foldedSeq, rewrites FROM event_org WHERE num = ?'
  return db.query<FoldState, [number]>(sql).get(org)
}

function isUseful(cache: CachedHours, state: FoldState, range: HourRange): boolean {
  const behind = state.foldedSeq - cache.foldedSeq
  const holds = range.from >= cache.range.from && range.until <= cache.range.until
  return holds && cache.rewrites === state.rewrites && behind >= 0 && behind <= arrivalsMax
}

function* addHours(
  db: Database,
  org: number,
  range: HourRange,
  order: Order,
  targetHours: Map<number, HourCounts>,
): Sliced<void> {
  const sql = 'SELECT hour, site, type, outcome, live + expired FROM rollup_metric WHERE org = ?'
  const countsByHour = new Map<number, Count[]>()
  yield* inChunks(db, ofMetrics, [org], range, (inChunk, key) => {
    for (const count of db.query<unknown, number[]>(sql + inChunk).values(org, ...key) as Count[]) {
      const counts = countsByHour.get(count[0])
      if (counts === undefined) countsByHour.set(count[0], [count])
      else counts.push(count)
    }
  })
  for (const [hour, counts] of countsByHour) {
    targetHours.set(hour, { hour, counts: order(counts) })
    if (isSliceOver()) yield
  }
}

/** Hours of the blocks that hold any of these arrivals. */
export function changedHours(db: Database, org: number, afterSeq: number, lastSeq: number): Set<number> {
  const hours = new Set<number>()
  for (const zone of zonesBetween(db, org, afterSeq + 1, lastSeq + 1)) {
    const first = Math.floor(zone.minAt / hourMs)
    const last = Math.floor(zone.maxAt / hourMs)
    hours.add(first)
    hours.add(last)
    if (last - first < 2) continue
    for (const atMs of columnsOf(db, zone)?.column(extra.at) ?? []) hours.add(Math.floor(atMs / hourMs))
  }
  return hours
}

/** Moves the organization to the end, and evicts those queried longest ago. */
function remember(orgCaches: Map<number, CachedHours>, org: number, cache: CachedHours): void {
  orgCaches.delete(org)
  orgCaches.set(org, cache)
  let rows = 0
  for (const { hours } of orgCaches.values()) for (const { counts } of hours.values()) rows += counts.length
  for (const [oldest, { hours }] of orgCaches) {
    if (rows <= rowsMax) return
    for (const { counts } of hours.values()) rows -= counts.length
    orgCaches.delete(oldest)
  }
}
