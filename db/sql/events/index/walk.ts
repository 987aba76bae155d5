/** The parts of an organization's log: sealed segments with an index and cached matches, and the blocks after them. */
import { columnsOf, readZones, zonesBetween, type Zone } from '../blocks/block-table.ts'
import { fieldAt } from '../blocks/fields.ts'
import { segmentEvents, seqMax, seqOf } from '../blocks/block.ts'
import {
  type Bitmap,
  type PostingReader,
  anyBit,
  bitsIn,
  hasBit,
  newBitmap,
  postingReader,
  setBit,
} from './posting.ts'
import { isSliceOver, type Sliced } from '../../slices.ts'
import type { Database } from '../../database.ts'
import type { Clause } from '../blocks/clause.ts'
import type { PackedColumns } from '../blocks/number-columns.ts'

export interface Part {
  minAt: number
  maxAt: number
  firstSeq: number
  lastSeq: number
  /** Null for arrivals that are not sealed. */
  segment: number | null
  /** How many rows may match; null without an index that says it. */
  candidates(): number | null
  /** The blocks that may hold a match, in arrival order. */
  zones(): Zone[]
  /** Whether a row matches in the index; without an index, every row. */
  mayMatch(zone: Zone, row: number): boolean
  /** Reads what `zones` of these segments needs with a few statements. Null for arrivals that are not sealed. */
  ahead: ((segments: number[]) => void) | null
}

/** A read that finds little reads more and more parts at once. */
const groupMax = 16

/** The same parts in the same order, in groups for `readZonesAhead`. */
export function partGroups(db: Database, parts: readonly Part[]): (readonly Part[])[] {
  const groupSizeMax = db.dialect.blocksAhead > 1 ? groupMax : 1
  const groups: (readonly Part[])[] = []
  for (let from = 0, size = 1; from < parts.length; from += size, size = Math.min(groupSizeMax, size * 4))
    groups.push(parts.slice(from, from + size))
  return groups
}

/** For engines in which each statement is a round trip. */
export function readZonesAhead(group: readonly Part[]): void {
  const segments = group.flatMap(({ segment }) => segment ?? [])
  if (segments.length > 1) group.find(({ ahead }) => ahead !== null)?.ahead?.(segments)
}

/** Parts that reach past `afterSeq`, in arrival order. */
export function partsOf(db: Database, org: number, clauses: readonly Clause[], afterSeq: number): Part[] {
  const sealed = db
    .query<Sealed, [number, number]>(
      `SELECT segment, min_at AS minAt, max_at AS maxAt, index_version AS version FROM event_segment
       WHERE org = ? AND segment >= ? ORDER BY segment`,
    )
    .all(org, Math.floor((afterSeq + 1) / segmentEvents))
  return [...sealedParts({ db, org, clauses }, sealed), ...openPart(db, org, afterSeq)]
}

interface Sealed {
  segment: number
  minAt: number
  maxAt: number
  version: number
}

interface Search {
  db: Database
  org: number
  clauses: readonly Clause[]
}

/** With more values, such as a prefix of types, few segments are read. */
const valuesAheadMax = 8

function sealedParts({ db, org, clauses }: Search, sealed: readonly Sealed[]): Part[] {
  const postings = postingReader(db)
  const matches = cachedMatches(db, org, clauses)
  const values = clauses.flatMap(({ member, codes }) =>
    [...codes].map((code): [number, number] => [member, code]),
  )
  const zonesBySegment = new Map<number, Uint8Array>()
  const parts = new Map<number, SealedPart>()
  const ahead = (segments: number[]) => {
    zonesBySegment.clear()
    if (values.length <= valuesAheadMax)
      postings.ahead(
        org,
        segments.filter((segment) => !matches.knows(segment)),
        values,
      )
    const matching = segments.filter((segment) => parts.get(segment)!.mayHoldMatch())
    const rows = db
      .query<{ segment: number; zones: Uint8Array }, [number, string]>(
        `SELECT segment, zones FROM event_segment WHERE org = ? AND segment IN ${db.dialect.numbersOf('?')}`,
      )
      .all(org, JSON.stringify(matching))
    for (const { segment, zones } of rows) zonesBySegment.set(segment, zones)
  }
  const single = db.query<{ zones: Uint8Array }, [number, number]>(
    'SELECT zones FROM event_segment WHERE org = ? AND segment = ?',
  )
  const zonesOf = (segment: number) => zonesBySegment.get(segment) ?? single.get(org, segment)?.zones
  for (const sealedSegment of sealed) {
    const { segment, version } = sealedSegment
    const indexed = clauses.filter(({ member }) => (fieldAt(member)?.indexVersion ?? Infinity) <= version)
    const matchesOf = () => matches.of(segment, () => matchesIn(postings, org, segment, indexed))
    const source = { matchesOf: indexed.length > 0 ? matchesOf : null, zonesOf, ahead }
    parts.set(segment, sealedPart(sealedSegment, source))
  }
  return [...parts.values()]
}

interface SealedPart extends Part {
  mayHoldMatch(): boolean
}

interface Source {
  /** Null: the index of the segment covers none of the clauses. */
  matchesOf: (() => Bitmap | null) | null
  zonesOf(segment: number): Uint8Array | undefined
  ahead(segments: number[]): void
}

/** A segment's index covers the fields of its version. Other fields are read from the rows. */
function sealedPart({ segment, minAt, maxAt }: Sealed, { matchesOf, zonesOf, ahead }: Source): SealedPart {
  const firstSeq = segment * segmentEvents
  let matchBitmap: Bitmap | null = null
  let isMatched = matchesOf === null
  const mayHoldMatch = () => {
    if (!isMatched) matchBitmap = matchesOf!()
    isMatched = true
    return matchesOf === null || matchBitmap !== null
  }
  return {
    minAt,
    maxAt,
    firstSeq,
    lastSeq: firstSeq + segmentEvents - 1,
    segment,
    candidates: () => (!mayHoldMatch() ? 0 : matchBitmap === null ? null : bitsIn(matchBitmap)),
    zones() {
      if (!mayHoldMatch()) return []
      const packed = zonesOf(segment)
      const zones = packed === undefined ? [] : readZones(packed)
      const bitmap = matchBitmap
      return bitmap === null
        ? zones
        : zones.filter(({ place, events }) => anyBit(bitmap, seqOf(place) - firstSeq, events))
    },
    mayMatch: ({ place }, row) => matchBitmap === null || hasBit(matchBitmap, seqOf(place) - firstSeq + row),
    mayHoldMatch,
    ahead,
  }
}

/** The positions of a segment that match all clauses, or null when none does. */
function matchesIn(
  postings: PostingReader,
  org: number,
  segment: number,
  clauses: readonly Clause[],
): Bitmap | null {
  let intersection: Bitmap | null = null
  for (const clause of clauses) {
    const clauseBitmap = newBitmap()
    let hasMatch = false
    for (const code of clause.codes)
      hasMatch = postings.add(clauseBitmap, org, segment, clause.member, code) || hasMatch
    if (!hasMatch) return null
    if (intersection === null) intersection = clauseBitmap
    else if (!intersect(intersection, clauseBitmap)) return null
  }
  return intersection
}

function intersect(target: Bitmap, otherBitmap: Bitmap): boolean {
  let remainingBits = 0
  for (let word = 0; word < target.length; word++) remainingBits |= target[word]! &= otherBitmap[word]!
  return remainingBits !== 0
}

/** Arrivals outside any segment: at most one segment of them and those that wait to be sealed. */
function openPart(db: Database, org: number, afterSeq: number): Part[] {
  const row = db
    .query<{ segments: number }, [number]>('SELECT segments FROM event_org WHERE num = ?')
    .get(org)
  const firstSeq = Math.max(1, (row?.segments ?? 0) * segmentEvents, afterSeq + 1)
  const zones = zonesBetween(db, org, firstSeq, seqMax)
  const last = zones.at(-1)
  if (last === undefined) return []
  return [
    {
      minAt: zones.reduce((low, zone) => Math.min(low, zone.minAt), Infinity),
      maxAt: zones.reduce((high, zone) => Math.max(high, zone.maxAt), -Infinity),
      firstSeq,
      lastSeq: seqOf(last.place) + last.events - 1,
      segment: null,
      candidates: () => null,
      zones: () => zones,
      mayMatch: () => true,
      ahead: null,
    },
  ]
}

/*
 * Readers cache the positions of a sealed segment that match a filter. Paging through a filter, or repeating it while
 * events arrive, would otherwise read and intersect the index of every segment each time: 10 ms with ten million
 * events. The cache is never stale: erasure does not change an index, retention deletes a segment whole, and no number
 * is used twice. A large set is not cached, because reading it again is as quick.
 */
const positionsMax = 256
const codesMax = 64
const bytesMax = 2 * 1024 * 1024
const entryBytes = 64

interface Entry {
  isCached: boolean // false when it was evicted while a read in slices still adds to it
  bytes: number
  bySegment: Map<number, Uint16Array | null>
}

interface Matches {
  /** Positions of a segment that match all clauses, null for none. `work` computes them. */
  of(segment: number, work: () => Bitmap | null): Bitmap | null
  /** Whether `of` will not call `work`. */
  knows(segment: number): boolean
}

interface Cache {
  bytes: number
  entries: Map<string, Entry>
}

const caches = new WeakMap<Database, Cache>()

/** Enables the cache on a reader's connection. Other connections may share it. */
export function cacheMatches(db: Database, sharedWith = db): void {
  caches.set(db, caches.get(sharedWith) ?? { bytes: 0, entries: new Map() })
}

export function cachedMatches(db: Database, org: number, clauses: readonly Clause[]): Matches {
  const cache = caches.get(db)
  const codes = clauses.reduce((sum, clause) => sum + clause.codes.size, 0)
  if (cache === undefined || codes === 0 || codes > codesMax || hasArrivals(clauses))
    return { of: (_, work) => work(), knows: () => false }
  const entry = entryOf(cache, filterKey(org, clauses))
  return {
    knows: (segment) => entry.bySegment.has(segment),
    of(segment, work) {
      const cachedPositions = entry.bySegment.get(segment)
      if (cachedPositions !== undefined) return cachedPositions === null ? null : bitmapOf(cachedPositions)
      const bitmap = work()
      const positions = bitmap === null ? null : positionsOf(bitmap)
      if (positions !== undefined && reserve(cache, entry, entryBytes + (positions?.byteLength ?? 0)))
        entry.bySegment.set(segment, positions)
      return bitmap
    },
  }
}

/** Which rows they name changes without an event. */
const hasArrivals = (clauses: readonly Clause[]): boolean =>
  clauses.some(({ arrivals }) => arrivals !== undefined)

function filterKey(org: number, clauses: readonly Clause[]): string {
  const parts = clauses.map(({ member, codes }) => `${member}:${[...codes].sort((a, b) => a - b).join()}`)
  return `${org} ${parts.join(' ')}`
}

/** Moves the entry to the end, because the first is evicted next. */
function entryOf(cache: Cache, key: string): Entry {
  const existingEntry = cache.entries.get(key)
  const entry = existingEntry ?? { isCached: true, bytes: 0, bySegment: new Map() }
  cache.entries.delete(key)
  cache.entries.set(key, entry)
  if (existingEntry === undefined) reserve(cache, entry, entryBytes + key.length * 2)
  return entry
}

/** Evicts the entry used longest ago; false when only this one's positions are left and the cache is full. */
function reserve(cache: Cache, entry: Entry, bytes: number): boolean {
  if (!entry.isCached) return false
  while (cache.bytes + bytes > bytesMax) {
    const [oldest] = cache.entries
    if (oldest === undefined || oldest[1] === entry) return false
    cache.entries.delete(oldest[0])
    cache.bytes -= oldest[1].bytes
    oldest[1].isCached = false
  }
  entry.bytes += bytes
  cache.bytes += bytes
  return true
}

function bitmapOf(positions: Uint16Array): Bitmap {
  const bitmap = newBitmap()
  for (const position of positions) setBit(bitmap, position)
  return bitmap
}

/** Undefined when there are too many. */
function positionsOf(bitmap: Bitmap): Uint16Array | undefined {
  const positions: number[] = []
  for (let word = 0; word < bitmap.length; word++) {
    for (let bits = bitmap[word]!; bits !== 0; bits &= bits - 1) {
      if (positions.length === positionsMax) return undefined
      positions.push(word * 32 + 31 - Math.clz32(bits & -bits))
    }
  }
  return Uint16Array.from(positions)
}

/*
 * Where a filter's matches in a sealed segment are few, readers also cache what was counted of these rows, so that
 * counting them again opens no block.
 */

/** Rows as an open block has them: the codes of a field, one per row. */
export interface Rows {
  rows: number
  codes(field: number): Float64Array
}

/** A segment with more matches is read each time: then its blocks are opened for many rows each. */
export const matchesMax = 4_096
/** Of all filters together: 3 MiB per thread. */
const numbersMax = 400_000
/** What a segment takes beside its numbers, in numbers. */
const segmentNumbers = 32

interface CachedRows {
  /** By filter and fields, least recently used first. */
  entries: Map<string, { rewrites: number; bySegment: Map<number, Rows>; numbers: number }>
  numbers: number
}

const rowCaches = new WeakMap<Database, CachedRows>()

/** Enables the cache on a reader's connection. Connections of one thread share it, whatever their snapshots. */
export function cacheRows(db: Database, sharedWith: Database): void {
  rowCaches.set(db, rowCaches.get(sharedWith) ?? { entries: new Map(), numbers: 0 })
}

/**
 * The rows of a filter with the values of these fields, by segment; null for arrivals that are not sealed. A sealed
 * segment only changes when events are deleted, which raises `event_org.rewrites`. Null: nothing is cached.
 */
export function cachedRows(
  db: Database,
  { org, rewrites }: { org: number; rewrites: number },
  clauses: readonly Clause[],
  fields: readonly number[],
) {
  const cache = rowCaches.get(db)
  const codes = clauses.reduce((sum, clause) => sum + clause.codes.size, 0)
  if (cache === undefined || codes === 0 || codes > codesMax || hasArrivals(clauses)) return null
  // Texts whose codes are equal hashes would share a name.
  if (clauses.some(({ hashed }) => hashed.size > 0)) return null
  const name = `${filterKey(org, clauses)} ${fields.join()}`
  const existingEntry = cache.entries.get(name)
  if (existingEntry !== undefined && existingEntry.rewrites > rewrites) return null // an older snapshot
  const ownEntry =
    existingEntry?.rewrites === rewrites
      ? existingEntry
      : { rewrites, bySegment: new Map<number, Rows>(), numbers: 0 }
  cache.entries.delete(name) // moves it to the end
  cache.entries.set(name, ownEntry)
  cache.numbers += ownEntry.numbers - (existingEntry?.numbers ?? 0)
  return {
    get: (segment: number | null) => (segment === null ? undefined : ownEntry.bySegment.get(segment)),
    set(segment: number | null, values: readonly (readonly number[])[]): Rows {
      const columns = new Map(fields.map((field, index) => [field, Float64Array.from(values[index]!)]))
      const rows = { rows: values[0]?.length ?? 0, codes: (field: number) => columns.get(field)! }
      const numbers = segmentNumbers + rows.rows * fields.length
      for (const [oldest, entry] of cache.entries) {
        if (entry === ownEntry || cache.numbers + numbers <= numbersMax) break
        cache.entries.delete(oldest)
        cache.numbers -= entry.numbers
      }
      const hasRoom = cache.entries.get(name) === ownEntry && cache.numbers + numbers <= numbersMax
      if (segment === null || !hasRoom || ownEntry.bySegment.has(segment)) return rows
      ownEntry.bySegment.set(segment, rows)
      ownEntry.numbers += numbers
      cache.numbers += numbers
      return rows
    },
  }
}
