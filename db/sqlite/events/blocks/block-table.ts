/** Reads and writes blocks in `event_block` and `event_body`. */
import type { Database } from 'bun:sqlite'
import { blockChecksum, openBlock, packBlock, packBlockColumns, type BlockContent } from './block.ts'
import type { PackedColumns } from './number-columns.ts'
import { placeOf, seqMax } from './row-key.ts'

/** The position of a block and the times it covers. */
export interface Zone {
  place: number
  events: number
  minAt: number
  maxAt: number
  /** Of its blobs. Zones in a segment's row lack it. */
  checksum?: number
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

export function columnsBlob(db: Database, place: number): Uint8Array | null {
  const sql = 'SELECT columns FROM event_block WHERE place = ?'
  return db.query<{ columns: Uint8Array }, [number]>(sql).get(place)?.columns ?? null
}

/** The format of event_segment.zones: 4 doubles per block: key, events, minAt, maxAt. */
export function packZones(zones: readonly Zone[]): Uint8Array {
  const values = zones.flatMap(({ place, events, minAt, maxAt }) => [place, events, minAt, maxAt])
  return new Uint8Array(Float64Array.from(values).buffer)
}

export function readZones(zones: Uint8Array): Zone[] {
  const values = new Float64Array(zones.buffer, zones.byteOffset, zones.byteLength / 8)
  const all: Zone[] = []
  for (let at = 0; at < values.length; at += 4)
    all.push({ place: values[at]!, events: values[at + 1]!, minAt: values[at + 2]!, maxAt: values[at + 3]! })
  return all
}
