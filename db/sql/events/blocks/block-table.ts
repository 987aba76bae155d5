/** Blocks in `event_block` and `event_body`: writes and reads them, caches columns, and opens blocks for readers. */
import { joinText } from '../../../rules/event-record.ts'
import {
  blockChecksum,
  extra,
  inflateBlock,
  openBlock,
  openInflated,
  packBlock,
  packBlockColumns,
  placeOf,
  seqMax,
  seqOf,
  type BlockContent,
} from './block.ts'
import { bodiesBetween, deleteBodies, readBlob } from './body-table.ts'
import { isSliceOver, type Sliced } from '../../slices.ts'
import { columnsAhead, columnsRead, textsAhead, textsRead } from './read-ahead.ts'
import type { PackedColumns } from './number-columns.ts'
import { StoreError } from '../../../contract/errors.ts'
import { openBodies, openNames, type Bodies, type Names, type Spilled, type TextFrame } from './texts.ts'
import { member } from './fields.ts'
import type { Database } from '../../database.ts'
import type { StoredEvent } from '../../../contract/store.ts'
import { hasArrival, type Clause } from './clause.ts'

/** The position of a block and the times it covers. */
export interface Zone {
  place: number
  events: number
  minAt: number
  maxAt: number
  /** Of its blobs. Zones in a segment's row lack it. */
  checksum?: number
}

/** The block has a row of its own (`splitAt`). */
export function writeBlock(db: Database, place: number, content: BlockContent): Zone {
  const packed = packBlock(content)
  db.query(
    `INSERT INTO event_block (place, events, min_at, max_at, checksum, columns) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (place) DO UPDATE SET events = excluded.events, min_at = excluded.min_at,
       max_at = excluded.max_at, checksum = excluded.checksum, columns = excluded.columns`,
  ).run(place, packed.events, packed.minAt, packed.maxAt, blockChecksum(packed), packed.columns)
  db.query(
    `INSERT INTO event_body (place, ids, bodies) VALUES (?, ?, ?)
     ON CONFLICT (place) DO UPDATE SET ids = excluded.ids, bodies = excluded.bodies`,
  ).run(place, packed.ids, packed.bodies)
  return { place, events: packed.events, minAt: packed.minAt, maxAt: packed.maxAt }
}

/** Replaces only the columns of a stored block. */
export function writeColumns(db: Database, place: number, content: BlockContent, whole: WholeBlock): void {
  const { columns, minAt, maxAt } = packBlockColumns(content)
  db.query('UPDATE event_block SET min_at = ?, max_at = ?, checksum = ?, columns = ? WHERE place = ?').run(
    minAt,
    maxAt,
    blockChecksum({ ...whole, columns }),
    columns,
    place,
  )
}

interface WholeBlock {
  columns: Uint8Array
  ids: Uint8Array
  bodies: Uint8Array
}

export function readWholeBlock(db: Database, place: number): WholeBlock | null {
  return readWholeBlocks(db, place, place)[0] ?? null
}

/** Every block between two keys, both included, in arrival order. */
export function readWholeBlocks(
  db: Database,
  first: number,
  last: number,
): (WholeBlock & { place: number })[] {
  const bodies = new Map(bodiesBetween(db, first, last).map((body) => [body.place, body]))
  return db
    .query<{ place: number; columns: Uint8Array }, [number, number]>(
      'SELECT place, columns FROM event_block WHERE place >= ? AND place <= ? ORDER BY place',
    )
    .all(first, last)
    .flatMap((block) => {
      const body = bodies.get(block.place)
      return body === undefined ? [] : [{ ...body, ...block }]
    })
}

export function deleteBlocks(db: Database, first: number, last: number): void {
  db.query('DELETE FROM event_block WHERE place >= ? AND place <= ?').run(first, last)
  deleteBodies(db, first, last)
}

export function deleteBlock(db: Database, place: number): void {
  deleteBlocks(db, place, place)
}

/**
 * The zones of an organization's blocks from the one that may hold `fromSeq` to before `untilSeq`, in arrival order.
 */
export function zonesBetween(db: Database, org: number, fromSeq: number, untilSeq: number): Zone[] {
  return db
    .query<Zone, [number, number]>(
      `SELECT place, events, min_at AS minAt, max_at AS maxAt, checksum FROM event_block
       WHERE place >= ? AND place < ? ORDER BY place`,
    )
    .all(firstPlace(db, org, fromSeq), placeOf(org, untilSeq))
}

/** A limited number of zones of an organization's blocks, from a key on. */
export function zonesFrom(db: Database, org: number, place: number, limit: number): Zone[] {
  return db
    .query<Zone, [number, number, number]>(
      `SELECT place, events, min_at AS minAt, max_at AS maxAt, checksum FROM event_block
       WHERE place >= ? AND place <= ? ORDER BY place LIMIT ?`,
    )
    .all(Math.max(place, placeOf(org, 0)), placeOf(org, seqMax), limit)
}

/** The key of a block and its number of events. */
export type BlockSpan = Pick<Zone, 'place' | 'events'>

/** The newest blocks of an organization, newest first. */
export function newestBlocks(db: Database, org: number, limit: number): BlockSpan[] {
  return db
    .query<BlockSpan, [number, number, number]>(
      'SELECT place, events FROM event_block WHERE place >= ? AND place < ? ORDER BY place DESC LIMIT ?',
    )
    .all(placeOf(org, 0), placeOf(org + 1, 0), limit)
}

export function lastSeqOf(block: BlockSpan | undefined): number {
  return block === undefined ? 0 : seqOf(block.place) + block.events - 1
}

/** The newest arrival number of an organization in a reader's snapshot. */
export function storedLastSeq(db: Database, org: number): number {
  const floor = db
    .query<{ last: number }, [number]>('SELECT last_seq AS last FROM event_org WHERE num = ?')
    .get(org)
  return Math.max(floor?.last ?? 0, lastSeqOf(newestBlocks(db, org, 1)[0]))
}

/** The key of the block that holds a seq, or the seq's own key when none does. */
export function firstPlace(db: Database, org: number, seq: number): number {
  const place = placeOf(org, seq)
  const row = db
    .query<{ place: number; events: number }, [number, number]>(
      'SELECT place, events FROM event_block WHERE place <= ? AND place >= ? ORDER BY place DESC LIMIT 1',
    )
    .get(place, placeOf(org, 0))
  return row !== null && row.place + row.events > place ? row.place : place
}

export function readColumns(db: Database, place: number): PackedColumns | null {
  const blob = columnsBlob(db, place)
  return blob === null ? null : openBlock(blob)
}

function columnsBlob(db: Database, place: number): Uint8Array | null {
  const sql = 'SELECT columns FROM event_block WHERE place = ?'
  const read = () => db.query<{ columns: Uint8Array }, [number]>(sql).get(place)?.columns ?? null
  return columnsRead(db, place) ?? read()
}

/** The format of event_segment.zones: 4 doubles per block: key, events, minAt, maxAt. */
export function packZones(zones: readonly Zone[]): Uint8Array {
  const values = zones.flatMap(({ place, events, minAt, maxAt }) => [place, events, minAt, maxAt])
  return new Uint8Array(Float64Array.from(values).buffer)
}

export function readZones(zones: Uint8Array): Zone[] {
  const values = new Float64Array(zones.buffer, zones.byteOffset, zones.byteLength / 8)
  const zoneList: Zone[] = []
  for (let index = 0; index < values.length; index += 4)
    zoneList.push({
      place: values[index]!,
      events: values[index + 1]!,
      minAt: values[index + 2]!,
      maxAt: values[index + 3]!,
    })
  return zoneList
}

/** Visits the blocks with arrivals after `afterSeq`, which are the rows from `first` to before `end`. */
export function* eachBlockAfter(
  db: Database,
  org: number,
  afterSeq: number,
  visit: (columns: PackedColumns, first: number, end: number) => void,
): Sliced<void> {
  for (const zone of readAhead(db, zonesBetween(db, org, afterSeq + 1, seqMax))) {
    if (isSliceOver()) yield
    const columns = columnsOf(db, zone)
    if (columns !== null) visit(columns, Math.max(0, afterSeq + 1 - seqOf(zone.place)), columns.rows)
  }
}

/*
 * Readers cache the inflated columns of blocks that no segment index covers, because every filter reads them. A merged
 * or emptied block has another checksum, so an entry is never stale. Entries are 5 KiB: 4 MiB are 200,000 events, three
 * times the events without an index.
 */
const blocksMax = 768

interface CachedBlock {
  checksum: number
  raw: Uint8Array
}

const caches = new WeakMap<Database, Map<number, CachedBlock>>()

/** Enables the cache on a reader's connection. Other connections may share it. */
export function cacheColumns(db: Database, sharedWith = db): void {
  caches.set(db, caches.get(sharedWith) ?? new Map())
}

/** The same zones, for a loop that opens their blocks in this order. */
export function readAhead<Z extends Zone>(db: Database, zones: readonly Z[]): Iterable<Z> {
  const cache = caches.get(db)
  return columnsAhead(db, zones, ({ place, checksum }) => {
    return checksum !== undefined && cache?.get(place)?.checksum === checksum
  })
}

/** The columns of the blocks, and where they are needed their texts, before they are opened. */
export function* bothAhead<Z extends Zone>(
  db: Database,
  zones: readonly Z[],
  needsTexts: (zone: Z) => boolean,
): Generator<Z> {
  const withTexts = new Set(zones.filter(needsTexts))
  const texts = textsAhead(db, [...withTexts], ({ place }) => place)[Symbol.iterator]()
  try {
    for (const zone of readAhead(db, zones)) {
      if (withTexts.has(zone)) texts.next()
      yield zone
    }
  } finally {
    texts.return?.()
  }
}

/** Null when the block is deleted. */
export function columnsOf(db: Database, { place, checksum }: Zone): PackedColumns | null {
  const cache = caches.get(db)
  if (cache === undefined || checksum === undefined) return readColumns(db, place)
  const cachedBlock = cache.get(place)
  if (cachedBlock?.checksum === checksum) return openInflated(cachedBlock.raw)
  const blob = columnsBlob(db, place)
  if (blob === null) return null
  const raw = inflateBlock(blob)
  cache.delete(place)
  cache.set(place, { checksum, raw })
  if (cache.size > blocksMax) cache.delete(cache.keys().next().value!)
  return openInflated(raw)
}

/** An open block for readers: matches a filter against its rows, and inflates texts only when they are read. */
export interface OpenBlock {
  firstSeq: number
  rows: number
  /** occurredAt of a row, ms. */
  at(row: number): number
  /** The code of the ingest key that sent a row (`keyCodes`). */
  key(row: number): number
  /** When a row arrived, ms. */
  received(row: number): number
  /** The code of a field; 0 when it is missing, and for the type of a deleted event. */
  code(member: number, row: number): number
  /** Whether a row is an event, not a deleted one, that matches all clauses. */
  matches(row: number, clauses: readonly Clause[]): boolean
  event(row: number): StoredEvent
  /** The frame of texts that holds a row's, which lacks the values of its id and session. */
  frame(row: number): TextFrame
  /** What holds each string of the row's text, its id and its session that has this, and those of rows near it. */
  textsNear(row: number, upper: string): Generator<Buffer>
  /** The codes of a field, one per row. */
  codes(member: number): Float64Array
  /** The session as JSON text. */
  session(row: number): string
  /** The text of a field whose code is a hash. */
  hashedText(member: number, row: number): string | null
}

/** Codes of one clause. With more, such as a prefix of types, reading the rows costs the same. */
const codesProbedMax = 8

/** Null when the block is deleted, or when its columns show that none of its rows match. */
export function readBlock(db: Database, zone: Zone, clauses: readonly Clause[] = []): OpenBlock | null {
  const first = seqOf(zone.place)
  for (const { arrivals } of clauses)
    if (arrivals !== undefined && !hasArrival(arrivals, first, first + zone.events - 1)) return null
  const columns = columnsOf(db, zone)
  if (columns === null || !clauses.every((clause) => mayMatch(columns, clause))) return null
  const { place } = zone
  let bodies: Bodies | null = null
  let names: Names | null = null
  let spilled: Spilled[] | null = null

  function openedBodies(): Bodies {
    return (bodies ??= openBodies(textsBlob(db, place, 'bodies'), columns!.rows))
  }

  function openedNames(): Names {
    return (names ??= openNames(textsBlob(db, place, 'ids'), columns!.rows))
  }

  function confirmed(row: number, clause: Clause, code: number): boolean {
    const texts = clause.hashed.get(code)
    if (texts === undefined) return true
    if (clause.member === member.sessionId) return texts.has(JSON.parse(openedNames().session(row)) as string)
    const text = hashedText(clause.member, row)
    return text !== null && texts.has(text)
  }

  function hashedText(index: number, row: number): string | null {
    spilled ??= openedBodies().spilled()
    return (
      spilled.find(([spilledRow, spilledField]) => spilledRow === row && spilledField === index)?.[2] ?? null
    )
  }

  return {
    firstSeq: seqOf(place),
    rows: columns.rows,
    at: (row) => columns.value(extra.at, row),
    key: (row) => columns.value(extra.key, row),
    received: (row) => columns.value(extra.received, row),
    code: (index, row) => columns.value(index, row),
    matches(row, clauses) {
      if (columns.value(member.type, row) === 0) return false
      for (const clause of clauses) {
        if (clause.arrivals !== undefined) {
          if (!hasArrival(clause.arrivals, first + row, first + row)) return false
          continue
        }
        const code = columns.value(clause.member, row)
        if (!clause.codes.has(code) || (clause.hashed.size > 0 && !confirmed(row, clause, code))) return false
      }
      return true
    },
    codes: (index) => columns.column(index),
    session: (row) => openedNames().session(row),
    hashedText,
    frame: (row) => openedBodies().frame(row),
    *textsNear(row, upper) {
      yield* openedBodies().near(row, upper)
      yield* openedNames().near(row, upper)
    },
    event(row) {
      const split = {
        text: openedBodies().text(row),
        idAt: columns.value(extra.idAt, row),
        sessionAt: columns.value(extra.sessionAt, row),
      }
      return {
        seq: seqOf(place) + row,
        occurredAtMs: columns.value(extra.at, row),
        receivedAtMs: columns.value(extra.received, row),
        json: joinText(split, openedNames().id(row), openedNames().session(row)),
      }
    },
  }
}

function mayMatch(columns: PackedColumns, { member: index, codes, arrivals }: Clause): boolean {
  if (codes.size > codesProbedMax || arrivals !== undefined) return true
  for (const code of codes) if (columns.holds(index, code)) return true
  return false
}

function textsBlob(db: Database, place: number, name: 'ids' | 'bodies'): Uint8Array {
  const stashedTexts = textsRead(db, place)
  if (stashedTexts !== undefined) return stashedTexts[name]
  const blob = readBlob(db, place, name)
  if (blob === null) throw new StoreError('corrupt', `the bodies of block ${place} are missing`)
  return blob
}
