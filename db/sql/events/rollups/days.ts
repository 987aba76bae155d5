/** Caches sums of a field's folded counts: of whole days, so that a month is read from thirty, and of single hours. */
import type { Database } from '../../database.ts'
import { isSliceOver, type Sliced } from '../../slices.ts'
import { dayHours, dayOf, outcomesSpan } from './counts.ts'
import { changedHours, foldState, type FoldState } from './hours.ts'
import { foldedRows, type FoldedRows, type HourRange } from './range.ts'
import { storedDays, type DayColumns } from './stored-days.ts'

/** The events of one value and outcome, of one hour or summed over a day. The object is reused for the next sum. */
type VisitSum = (sum: Sum) => void

interface Sum {
  firstHour: number // with such an event
  lastHour: number
  code: number
  outcome: number
  live: number
  expired: number
}

/** The sums of a day or an hour: rows of the numbers of `Sum`. */
type Sums = Float64Array
const rowNumbers = 6

interface Piece extends HourRange {
  org: number
  sums: Sums
  usedBy: number // the query that used it last
}

/** Of one thread. Least recently used first; the key says what was counted in which hours. */
interface Cache {
  pieces: Map<string, Piece>
  states: Map<number, FoldState> // by organization: its pieces count the arrivals up to here
  rows: number
  queries: number
}

/** 5 MiB. */
const rowsMax = 100_000
/** What a piece takes beside its rows, in rows. */
const pieceRows = 4
/** Of a query. One with more would fill the cache by itself. */
const piecesMax = 2_000
/** Of a query: eleven years. An event of 1970 must not make a piece for each day since. */
const hoursMax = 100_000
/** Of a query's conditions. */
const codesMax = 64
/** Most arrivals whose blocks are read for their hours, 10 ms per million. Beyond it, reading again is as quick. */
const arrivalsMax = 2_000_000

const caches = new WeakMap<Database, Cache>()

/** Enables the cache on a reader's connection. Connections of one thread share it, whatever their snapshots. */
export function cacheDays(db: Database, sharedWith: Database): void {
  const emptyCache = { pieces: new Map(), states: new Map(), rows: 0, queries: 0 }
  caches.set(db, caches.get(sharedWith) ?? emptyCache)
}

/**
 * Visits the folded counts of a range, in order of time. Days that are whole in one step (`startOf`) are visited as
 * sums; the first query with the same conditions computes them.
 */
export function* foldedSums(
  db: Database,
  counted: FoldedRows,
  range: HourRange,
  startOf: (hour: number) => number,
  visit: VisitSum,
): Sliced<void> {
  const hours = hoursOf(db, counted, range)
  if (hours.until - hours.from > hoursMax) return yield* readHours(db, counted, hours, visit)
  const pieces = piecesOf(hours, startOf)
  const cache = pieces.length > piecesMax ? null : cachedPieces(db, counted)
  const stored = storedSums(db, counted, hours)
  let missing: HourRange[] = []
  for (const piece of pieces) {
    let sums = cache?.get(piece)
    if (sums === undefined && (sums = stored(piece)) !== undefined) cache?.set(piece, sums)
    if (sums === undefined) {
      missing.push(piece)
      continue
    }
    yield* readSums(db, counted, missing, cache, visit)
    missing = []
    visitSums(sums, visit)
    if (isSliceOver()) yield
  }
  yield* readSums(db, counted, missing, cache, visit)
}

const columns = 'hour, code, outcome, live, expired'

/** Visits the counts of each hour as they are stored. */
function* readHours(db: Database, counted: FoldedRows, range: HourRange, visit: VisitSum): Sliced<void> {
  yield* foldedRows(db, columns, counted, range, (row) => {
    const [hour, code, outcome, live, expired] = row as [number, number, number, number, number]
    visit({ firstHour: hour, lastHour: hour, code, outcome, live, expired })
  })
}

/** The part of a range from the first hour with counts of a field to the last one. */
function hoursOf(db: Database, { org, index }: FoldedRows, { from, until }: HourRange): HourRange {
  const hourAt = (aggregate: 'min' | 'max') =>
    db
      .query<{ hour: number | null }, [number, number]>(
        `SELECT ${aggregate}(hour) AS hour FROM rollup_value WHERE org = ? AND member = ?`,
      )
      .get(org, index)?.hour ?? null
  const first = hourAt('min')
  if (first === null) return { from, until: from }
  return { from: Math.max(from, first), until: Math.min(until, hourAt('max')! + 1) }
}

/** Days where they are whole in the range and in one step, else hours. */
function piecesOf({ from, until }: HourRange, startOf: (hour: number) => number): HourRange[] {
  const pieces: HourRange[] = []
  for (let hour = from; hour < until;) {
    const day = hour + dayHours
    const isDay = hour % dayHours === 0 && day <= until && startOf(hour) === startOf(day - 1)
    const end = isDay ? day : hour + 1
    pieces.push({ from: hour, until: end })
    hour = end
  }
  return pieces
}

function visitSums(sums: Sums, visit: VisitSum): void {
  const sum: Sum = { firstHour: 0, lastHour: 0, code: 0, outcome: 0, live: 0, expired: 0 }
  for (let offset = 0; offset < sums.length; offset += rowNumbers) {
    sum.firstHour = sums[offset]!
    sum.lastHour = sums[offset + 1]!
    sum.code = sums[offset + 2]!
    sum.outcome = sums[offset + 3]!
    sum.live = sums[offset + 4]!
    sum.expired = sums[offset + 5]!
    visit(sum)
  }
}

/** The sums of a whole day from those that are stored, which the first call reads for all days to the end. */
function storedSums(
  db: Database,
  counted: FoldedRows,
  { until }: HourRange,
): (piece: HourRange) => Sums | undefined {
  let days: ReturnType<typeof storedDays> | null = null
  return ({ from, until: end }) => {
    if (end - from !== dayHours) return undefined
    days ??= storedDays(db, counted, { from, until })
    const day = days.get(from)
    return day && sumsOfDay(day(), counted)
  }
}

/** In the order in which the rows of hours would be read. */
function sumsOfDay(day: DayColumns, { sites, types, codes = null }: FoldedRows): Sums {
  const sums = summing()
  for (const [entry, code] of day.code.entries()) {
    if (sites?.has(day.site[entry]!) === false || types?.has(day.type[entry]!) === false) continue
    if (codes?.has(code) === false) continue
    const firstHour = day.firstHour[entry]!
    const lastHour = day.lastHour[entry]!
    sums.add(firstHour, lastHour, code, day.outcome[entry]!, day.live[entry]!, day.expired[entry]!)
  }
  return sums.take()
}

/** Sums counts by code and outcome, in the order in which they first come. */
function summing() {
  let row: number[] = []
  const rowOf = new Map<number, number>()
  return {
    add(firstHour: number, lastHour: number, code: number, outcome: number, live: number, expired: number) {
      const key = code * outcomesSpan + outcome
      const rowOffset = rowOf.get(key)
      if (rowOffset === undefined) {
        rowOf.set(key, row.length)
        row.push(firstHour, lastHour, code, outcome, live, expired)
      } else {
        row[rowOffset + 1] = Math.max(row[rowOffset + 1]!, lastHour)
        row[rowOffset + 4]! += live
        row[rowOffset + 5]! += expired
      }
    },
    /** The sums so far; the next ones begin at zero. */
    take(): Sums {
      const sums = Float64Array.from(row)
      row = []
      rowOf.clear()
      return sums
    },
  }
}

/** Computes the sums of adjacent pieces in one pass, and caches and visits them. */
function* readSums(
  db: Database,
  counted: FoldedRows,
  pieces: readonly HourRange[],
  cache: PieceCache | null,
  visit: VisitSum,
): Sliced<void> {
  if (pieces.length === 0) return
  let next = 0
  const summed = summing()
  const endBefore = (hour: number): void => {
    for (; next < pieces.length && pieces[next]!.until <= hour; next++) {
      const sums = summed.take()
      cache?.set(pieces[next]!, sums)
      visitSums(sums, visit)
    }
  }
  const range = { from: pieces[0]!.from, until: pieces.at(-1)!.until }
  yield* foldedRows(db, columns, counted, range, (row) => {
    const [hour, code, outcome, live, expired] = row as [number, number, number, number, number]
    endBefore(hour)
    summed.add(hour, hour, code, outcome, live, expired)
  })
  endBefore(range.until)
}

interface PieceCache {
  get(piece: HourRange): Sums | undefined
  set(piece: HourRange, sums: Sums): void
}

/**
 * The sums that are valid in this snapshot; null for a connection without a cache, one that reads older counts, or too
 * many conditions.
 */
function cachedPieces(db: Database, counted: FoldedRows): PieceCache | null {
  const { org } = counted
  const cache = caches.get(db)
  const name = nameOf(counted)
  const state = foldState(db, org)
  if (cache === undefined || state === null || name === null) return null
  const previousState = cache.states.get(org)
  if (previousState && (previousState.rewrites > state.rewrites || previousState.foldedSeq > state.foldedSeq))
    return null
  if (previousState !== undefined) dropChanged(db, cache, org, previousState, state)
  cache.states.set(org, state)
  const query = ++cache.queries
  /** Another query of the thread may advance it meanwhile. */
  const holds = (): boolean => {
    const now = cache.states.get(org)
    return now?.rewrites === state.rewrites && now.foldedSeq === state.foldedSeq
  }
  const keyOf = ({ from, until }: HourRange): string => `${name} ${from} ${until}`
  return {
    get(range) {
      const key = keyOf(range)
      const piece = cache.pieces.get(key)
      if (piece === undefined || !holds()) return undefined
      cache.pieces.delete(key) // moves it to the end
      cache.pieces.set(key, piece)
      piece.usedBy = query
      return piece.sums
    },
    set({ from, until }, sums) {
      const key = keyOf({ from, until })
      if (!holds() || cache.pieces.has(key) || !makeRoom(cache, rowsOf(sums), query)) return
      cache.pieces.set(key, { from, until, org, sums, usedBy: query })
      cache.rows += rowsOf(sums)
    },
  }
}

/** What is counted, as text; null for more conditions than a key should have. */
function nameOf({ org, index, sites, types, codes = null }: FoldedRows): string | null {
  const conditions = [sites, types, codes]
  if (conditions.reduce((sum, codeSet) => sum + (codeSet?.size ?? 0), 0) > codesMax) return null
  const texts = conditions.map((codeSet) =>
    codeSet === null ? '*' : `=${[...codeSet].sort((a, b) => a - b).join()}`,
  )
  return `${org} ${index} ${texts.join(' ')}`
}

const rowsOf = (sums: Sums): number => pieceRows + sums.length / rowNumbers

/** Drops the pieces of an organization whose hours have changed since `previousState`. */
function dropChanged(
  db: Database,
  cache: Cache,
  org: number,
  previousState: FoldState,
  state: FoldState,
): void {
  const arrivals = state.foldedSeq - previousState.foldedSeq
  const isRewritten = previousState.rewrites !== state.rewrites || arrivals > arrivalsMax
  if (!isRewritten && arrivals === 0) return
  const orgPieces = [...cache.pieces].filter(([, piece]) => piece.org === org)
  if (orgPieces.length === 0) return
  const hours = isRewritten
    ? new Set<number>()
    : new Set(changedHours(db, org, previousState.foldedSeq, state.foldedSeq))
  const days = new Set(Array.from(hours, dayOf))
  for (const [key, { from, until, sums }] of orgPieces) {
    const hasChanged = until - from === 1 ? hours.has(from) : days.has(from)
    if (!isRewritten && !hasChanged) continue
    cache.pieces.delete(key)
    cache.rows -= rowsOf(sums)
  }
}

/** Evicts what was used longest ago. What a query needs itself stays, so that half of it is there the next time. */
function makeRoom(cache: Cache, rows: number, query: number): boolean {
  for (const [key, { sums, usedBy }] of cache.pieces) {
    if (cache.rows + rows <= rowsMax) break
    if (usedBy === query) return false
    cache.pieces.delete(key)
    cache.rows -= rowsOf(sums)
  }
  return cache.rows + rows <= rowsMax
}
