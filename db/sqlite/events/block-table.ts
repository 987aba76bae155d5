/** Reading and writing blocks in `event_block` and `event_body`. */
import type { Database } from 'bun:sqlite'
import { blockChecksum, openBlock, packBlock, type BlockContent } from './block.ts'
import type { PackedColumns } from './number-columns.ts'
import { placeOf, seqMax, seqOf } from './place.ts'

/** Where a block lies and which times it covers. */
export interface Zone {
  place: number
  events: number
  minAt: number
  maxAt: number
}

export function writeBlock(db: Database, place: number, content: BlockContent): Zone {
  const packed = packBlock(content)
  db.query(
    `INSERT OR REPLACE INTO event_block (place, events, min_at, max_at, checksum, columns)
     VALUES (?, ?, ?, ?, ?, ?)`,
  ).run(place, packed.events, packed.minAt, packed.maxAt, blockChecksum(packed), packed.columns)
  db.query('INSERT OR REPLACE INTO event_body (place, ids, bodies) VALUES (?, ?, ?)').run(
    place,
    packed.ids,
    packed.bodies,
  )
  return { place, events: packed.events, minAt: packed.minAt, maxAt: packed.maxAt }
}

export interface WholeBlock {
  columns: Uint8Array
  ids: Uint8Array
  bodies: Uint8Array
}

export function readWholeBlock(db: Database, place: number): WholeBlock | null {
  return db
    .query<WholeBlock, [number]>(
      'SELECT columns, ids, bodies FROM event_block JOIN event_body USING (place) WHERE place = ?',
    )
    .get(place)
}

export function deleteBlock(db: Database, place: number): void {
  db.query('DELETE FROM event_block WHERE place = ?').run(place)
  db.query('DELETE FROM event_body WHERE place = ?').run(place)
}

/** The zones of an organization's blocks from one that may hold `fromSeq` up to before `untilSeq`, in arrival order. */
export function zonesBetween(db: Database, org: number, fromSeq: number, untilSeq: number): Zone[] {
  return db
    .query<Zone, [number, number]>(
      `SELECT place, events, min_at AS minAt, max_at AS maxAt FROM event_block
       WHERE place >= ? AND place < ? ORDER BY place`,
    )
    .all(firstPlace(db, org, fromSeq), placeOf(org, untilSeq))
}

/** The place of the block that holds a seq, or the seq's own when none does. */
function firstPlace(db: Database, org: number, seq: number): number {
  const place = placeOf(org, seq)
  const row = db
    .query<{ place: number; events: number }, [number, number]>(
      'SELECT place, events FROM event_block WHERE place <= ? AND place >= ? ORDER BY place DESC LIMIT 1',
    )
    .get(place, placeOf(org, 0))
  return row !== null && row.place + row.events > place ? row.place : place
}

export function readColumns(db: Database, place: number): PackedColumns | null {
  const row = db
    .query<{ columns: Uint8Array }, [number]>('SELECT columns FROM event_block WHERE place = ?')
    .get(place)
  return row === null ? null : openBlock(row.columns)
}

/** Visits the blocks with arrivals after `afterSeq`, which are the rows from `first` to before `end`. */
export function eachBlockAfter(
  db: Database,
  org: number,
  afterSeq: number,
  visit: (columns: PackedColumns, first: number, end: number) => void,
): void {
  for (const zone of zonesBetween(db, org, afterSeq + 1, seqMax)) {
    const columns = readColumns(db, zone.place)
    if (columns !== null) visit(columns, Math.max(0, afterSeq + 1 - seqOf(zone.place)), columns.rows)
  }
}
