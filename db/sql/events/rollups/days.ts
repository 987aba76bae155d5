/** Caches the sums of whole days of a field's folded counts, so that a month is read from thirty sums. */
import type { Database } from '../../database.ts'
import { isSliceOver, type Sliced } from '../../threads/slices.ts'
import { childOf, dayHours, outcomesSpan, typesSpan } from './counts.ts'
import { changedHours, foldState, type FoldState } from './hours.ts'
import { foldedRows, type FoldedRows, type HourRange } from './range.ts'

/** The events of one value and outcome, of one hour or summed over a day. */
export type VisitSum = (sum: {
  firstHour: number // with such an event
  lastHour: number
  code: number
  outcome: number
  live: number
  expired: number
}) => void

/** Rows of five numbers: place (site, type and outcome), code, live, expired, and the first and last hour. */
type DaySums = Float64Array
const rowNumbers = 5

interface CachedDays extends FoldState {
  days: Map<string, DaySums> // by field and first hour
  rows: number
}

/** Of all organizations together: 4 MiB. */
const rowsMax = 100_000
/** Most arrivals whose blocks are read for their hours, 10 ms per million. Beyond it, reading again is as quick. */
const arrivalsMax = 2_000_000

const caches = new WeakMap<Database, Map<number, CachedDays>>()

/** Enables the cache on a reader's connection. Connections of one thread share it, whatever their snapshots. */
export function cacheDays(db: Database, sharedWith: Database): void {
  caches.set(db, caches.get(sharedWith) ?? new Map<number, CachedDays>())
}

/**
 * Visits the folded counts of a range. Days that are whole in one step (`startOf`) are visited as sums, which are
 * computed by the first query that needs them.
 */
export function* foldedSums(
  db: Database,
  counted: FoldedRows,
  { from, until }: HourRange,
  startOf: (hour: number) => number,
  visit: VisitSum,
): Sliced<void> {
  const { org, index, codes = null } = counted
  let hour = from
  function* hoursUntil(end: number): Sliced<void> {
    const columns = 'hour, code, outcome, live, expired'
    if (hour >= end) return
    yield* foldedRows(
      db,
      columns,
      counted,
      { from: hour, until: end },
      ([at, code, outcome, live, expired]) =>
        visit({
          firstHour: at!,
          lastHour: at!,
          code: code!,
          outcome: outcome!,
          live: live!,
          expired: expired!,
        }),
    )
  }
  const cache = cachedDays(db, org)
  const [first, last] = cache === null ? [0, -1] : hoursOf(db, org, index)
  const end = Math.min(until, last + 1)
  for (let day = dayUp(Math.max(from, first)); day + dayHours <= end; day += dayHours) {
    if (startOf(day) !== startOf(day + dayHours - 1)) continue
    const key = `${index} ${day}`
    let sums = cache!.get(key)
    if (sums === undefined) {
      if (codes !== null || !cache!.hasRoom()) continue
      cache!.set(key, (sums = yield* sumDay(db, org, index, day)))
    }
    yield* hoursUntil(day)
    hour = day + dayHours
    visitDay(sums, day, counted, visit)
    if (isSliceOver()) yield
  }
  yield* hoursUntil(until)
}

const dayUp = (hour: number): number => Math.ceil(hour / dayHours) * dayHours

/** The first and last hour with counts of a field. */
function hoursOf(db: Database, org: number, index: number): [first: number, last: number] {
  const hourAt = (which: 'min' | 'max') =>
    db
      .query<{ hour: number | null }, [number, number]>(
        `SELECT ${which}(hour) AS hour FROM rollup_value WHERE org = ? AND member = ?`,
      )
      .get(org, index)?.hour ?? null
  const first = hourAt('min')
  return first === null ? [0, -1] : [first, hourAt('max')!]
}

function visitDay(
  sums: DaySums,
  day: number,
  { sites, types, codes = null }: FoldedRows,
  visit: VisitSum,
): void {
  for (let at = 0; at < sums.length; at += rowNumbers) {
    const [place, code, hours] = [sums[at]!, sums[at + 1]!, sums[at + 4]!]
    const ofSiteAndType = Math.floor(place / outcomesSpan)
    if (types?.has(ofSiteAndType % typesSpan) === false || codes?.has(code) === false) continue
    if (sites?.has(Math.floor(ofSiteAndType / typesSpan)) === false) continue
    visit({
      ...{ firstHour: day + Math.floor(hours / dayHours), lastHour: day + (hours % dayHours) },
      ...{ code, outcome: place % outcomesSpan, live: sums[at + 2]!, expired: sums[at + 3]! },
    })
  }
}

function* sumDay(db: Database, org: number, index: number, day: number): Sliced<DaySums> {
  const rows: number[][] = []
  const byPlace = new Map<number, Map<number, number[]>>() // place -> code -> its row
  const columns = 'hour, site, type, outcome, code, live, expired'
  const all = { org, index, sites: null, types: null }
  yield* foldedRows(db, columns, all, { from: day, until: day + dayHours }, (found) => {
    const [hour, site, type, outcome, code, live, expired] = found as [
      number,
      number,
      number,
      number,
      number,
      number,
      number,
    ]
    const place = (site * typesSpan + type) * outcomesSpan + outcome
    const codes = childOf(byPlace, place)
    const row = codes.get(code)
    const at = hour - day
    if (row === undefined) {
      const made = [place, code, live, expired, at * dayHours + at]
      codes.set(code, made)
      rows.push(made)
    } else {
      row[2]! += live
      row[3]! += expired
      row[4] = Math.floor(row[4]! / dayHours) * dayHours + at // hours are read in order
    }
  })
  return new Float64Array(rows.flat())
}

interface DayCache {
  get(key: string): DaySums | undefined
  set(key: string, sums: DaySums): void
  hasRoom(): boolean
}

/** The days that are valid in this snapshot; null for a connection without a cache, or one that reads older counts. */
function cachedDays(db: Database, org: number): DayCache | null {
  const all = caches.get(db)
  const state = foldState(db, org)
  if (all === undefined || state === null) return null
  const known = all.get(org)
  if (known && (known.rewrites > state.rewrites || known.foldedSeq > state.foldedSeq)) return null
  const isUseful = known?.rewrites === state.rewrites && state.foldedSeq - known.foldedSeq <= arrivalsMax
  const cache = isUseful && known ? known : { ...state, days: new Map<string, DaySums>(), rows: 0 }
  if (cache.foldedSeq < state.foldedSeq) dropChanged(db, org, cache, state)
  all.delete(org) // moves the organization to the end
  all.set(org, cache)
  // Another query of the thread may advance it meanwhile.
  const holds = (): boolean =>
    all.get(org) === cache && cache.rewrites === state.rewrites && cache.foldedSeq === state.foldedSeq
  return {
    get: (key) => (holds() ? cache.days.get(key) : undefined),
    set(key, sums) {
      if (!holds() || cache.days.has(key)) return
      cache.days.set(key, sums)
      cache.rows += sums.length / rowNumbers
    },
    hasRoom: () => holds() && makeRoom(all, org),
  }
}

function dropChanged(db: Database, org: number, cache: CachedDays, { foldedSeq }: FoldState): void {
  const changed = new Set<number>()
  if (cache.days.size > 0)
    for (const hour of changedHours(db, org, cache.foldedSeq, foldedSeq))
      changed.add(hour - (hour % dayHours))
  for (const [key, sums] of cache.days) {
    if (!changed.has(Number(key.split(' ')[1]))) continue
    cache.days.delete(key)
    cache.rows -= sums.length / rowNumbers
  }
  cache.foldedSeq = foldedSeq
}

/** Evicts the organizations queried longest ago. */
function makeRoom(all: Map<number, CachedDays>, org: number): boolean {
  let rows = 0
  for (const cache of all.values()) rows += cache.rows
  for (const [oldest, cache] of all) {
    if (rows < rowsMax || oldest === org) break
    rows -= cache.rows
    all.delete(oldest)
  }
  return rows < rowsMax
}
