/** The parts of an organization's log: sealed segments with an index, and the blocks after them. */
import type { Database } from 'bun:sqlite'
import { readZones, zonesBetween, type Zone } from '../blocks/block-table.ts'
import type { Clause } from '../index/filter-codes.ts'
import { columnsOf } from '../cache/columns.ts'
import { recallMatches, type Recall } from '../cache/matches.ts'
import { fieldAt } from '../blocks/fields.ts'
import type { PackedColumns } from '../blocks/number-columns.ts'
import { segmentEvents, seqMax, seqOf } from '../blocks/row-key.ts'
import { anyBit, hasBit, newBitmap, type Bitmap } from '../index/positions.ts'
import { postingReader, type PostingReader } from '../index/posting.ts'
import { isSliceOver, type Sliced } from '../../threads/slices.ts'

export interface Part {
  minAt: number
  maxAt: number
  firstSeq: number
  lastSeq: number
  /** The blocks that may hold a match, in arrival order. */
  zones(): Zone[]
  /** Whether a row matches in the index; without an index, every row. */
  mayMatch(zone: Zone, row: number): boolean
}

/** Parts that reach past `afterSeq`, in arrival order. */
export function partsOf(db: Database, org: number, clauses: readonly Clause[], afterSeq: number): Part[] {
  const sealed = db
    .query<Sealed, [number, number]>(
      `SELECT segment, min_at AS minAt, max_at AS maxAt, index_version AS version FROM event_segment
       WHERE org = ? AND segment >= ? ORDER BY segment`,
    )
    .all(org, Math.floor((afterSeq + 1) / segmentEvents))
  const postings = postingReader(db)
  const recall = recallMatches(db, org, clauses)
  return [
    ...sealed.map((segment) => sealedPart(db, org, clauses, { postings, recall }, segment)),
    ...openPart(db, org, afterSeq),
  ]
}

interface Sealed {
  segment: number
  minAt: number
  maxAt: number
  version: number
}

/** A segment's index covers the fields of its version. Other fields are read from the rows. */
function sealedPart(
  db: Database,
  org: number,
  clauses: readonly Clause[],
  { postings, recall }: { postings: PostingReader; recall: Recall },
  { segment, minAt, maxAt, version }: Sealed,
): Part {
  const indexed = clauses.filter((clause) => fieldAt(clause.member)!.indexVersion <= version)
  const firstSeq = segment * segmentEvents
  let found: Bitmap | null = null
  return {
    minAt,
    maxAt,
    firstSeq,
    lastSeq: firstSeq + segmentEvents - 1,
    zones() {
      if (indexed.length > 0) found = recall(segment, () => matchesIn(postings, org, segment, indexed))
      if (indexed.length > 0 && found === null) return []
      const row = db
        .query<{ zones: Uint8Array }, [number, number]>(
          'SELECT zones FROM event_segment WHERE org = ? AND segment = ?',
        )
        .get(org, segment)
      const zones = row === null ? [] : readZones(row.zones)
      const bitmap = found
      return bitmap === null
        ? zones
        : zones.filter(({ place, events }) => anyBit(bitmap, seqOf(place) - firstSeq, events))
    },
    mayMatch: ({ place }, row) => found === null || hasBit(found, seqOf(place) - firstSeq + row),
  }
}

/** The positions of a segment that match all clauses, or null when none does. */
function matchesIn(
  postings: PostingReader,
  org: number,
  segment: number,
  clauses: readonly Clause[],
): Bitmap | null {
  let all: Bitmap | null = null
  for (const clause of clauses) {
    const one = newBitmap()
    let found = false
    for (const code of clause.codes) found = postings.add(one, org, segment, clause.member, code) || found
    if (!found) return null
    if (all === null) all = one
    else if (!intersect(all, one)) return null
  }
  return all
}

function intersect(into: Bitmap, other: Bitmap): boolean {
  let left = 0
  for (let word = 0; word < into.length; word++) left |= into[word]! &= other[word]!
  return left !== 0
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
      zones: () => zones,
      mayMatch: () => true,
    },
  ]
}

/** Visits the blocks with arrivals after `afterSeq`, which are the rows from `first` to before `end`. */
export function* eachBlockAfter(
  db: Database,
  org: number,
  afterSeq: number,
  visit: (columns: PackedColumns, first: number, end: number) => void,
): Sliced<void> {
  for (const zone of zonesBetween(db, org, afterSeq + 1, seqMax)) {
    if (isSliceOver()) yield
    const columns = columnsOf(db, zone)
    if (columns !== null) visit(columns, Math.max(0, afterSeq + 1 - seqOf(zone.place)), columns.rows)
  }
}
