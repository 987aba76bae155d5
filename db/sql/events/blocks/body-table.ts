/** The rows of `event_body`: the ids and texts of a block, or of some neighbours of a sealed segment together. */
import { StoreError } from '../../../contract/errors.ts'
import type { Database } from '../../database.ts'

/*
 * A block takes more than half of a page, so a row of its own leaves the rest of the page unused. Neighbours
 * in one row fill their pages. The row has the place of its first block, and in both blobs, little-endian:
 *   u8 groupMark, u8 blocks, then for each block u32 distance of its place from the row's, u32 bytes of its part
 *   the parts, as a block alone has them
 * A part never begins with the mark. Blocks of a group follow each other without another row in between. Before one of
 * them is written or deleted, `splitAt` gives each a row of its own.
 */
const groupMark = 0xc3
const headBytes = 2
const entryBytes = 8

export interface BlockBody {
  place: number
  ids: Uint8Array
  bodies: Uint8Array
}

type Blob = 'ids' | 'bodies'

interface Part {
  place: number
  bytes: Uint8Array
}

/** The parts of a blob, in order of their places. A damaged head has fewer. */
function partsOf(place: number, blob: Uint8Array): Part[] {
  if (blob[0] !== groupMark) return [{ place, bytes: blob }]
  const view = new DataView(blob.buffer, blob.byteOffset, blob.byteLength)
  const parts: Part[] = []
  const count = blob[1] ?? 0
  for (
    let index = 0, offset = headBytes + count * entryBytes;
    index < count && offset <= blob.length;
    index++
  ) {
    const entry = headBytes + index * entryBytes
    const length = view.getUint32(entry + 4, true)
    parts.push({ place: place + view.getUint32(entry, true), bytes: blob.subarray(offset, offset + length) })
    offset += length
  }
  return parts
}

function joined(place: number, parts: readonly Part[]): Buffer {
  const head = Buffer.alloc(headBytes + parts.length * entryBytes)
  head[0] = groupMark
  head[1] = parts.length
  parts.forEach((part, index) => {
    head.writeUInt32LE(part.place - place, headBytes + index * entryBytes)
    head.writeUInt32LE(part.bytes.length, headBytes + index * entryBytes + 4)
  })
  return Buffer.concat([head, ...parts.map(({ bytes }) => bytes)])
}

/** The bytes of a row that holds these blocks. */
export function groupBytes(blocks: readonly BlockBody[]): number {
  const heads = blocks.length === 1 ? 0 : 2 * (headBytes + blocks.length * entryBytes)
  return blocks.reduce((sum, { ids, bodies }) => sum + ids.length + bodies.length, heads)
}

/** The row that begins at a place or before it. */
function lastRow(db: Database, place: number, name: Blob): { place: number; blob: Uint8Array } | null {
  const columns = name === 'ids' ? 'SELECT ids AS blob, place' : 'SELECT bodies AS blob, place'
  return db
    .query<{ place: number; blob: Uint8Array }, [number]>(
      `${columns} FROM event_body WHERE place <= ? ORDER BY place DESC LIMIT 1`,
    )
    .get(place)
}

/** One blob of the block at a place; null when it is missing. */
export function readBlob(db: Database, place: number, name: Blob): Uint8Array | null {
  const row = lastRow(db, place, name)
  if (row === null) return null
  if (row.place === place && row.blob[0] !== groupMark) return row.blob
  return partsOf(row.place, row.blob).find((part) => part.place === place)?.bytes ?? null
}

/** The ids of the last block at a place or before it; null without one. */
export function idsBefore(db: Database, place: number): { place: number; ids: Uint8Array } | null {
  const row = lastRow(db, place, 'ids')
  if (row === null) return null
  const part = partsOf(row.place, row.blob).findLast((candidate) => candidate.place <= place)
  return part === undefined ? null : { place: part.place, ids: part.bytes }
}

/** The blocks between two places, both included, in order. */
export function bodiesBetween(db: Database, first: number, last: number): BlockBody[] {
  return rowsBetween(db, first, last).flatMap((row) =>
    blocksOf(row).filter(({ place }) => place >= first && place <= last),
  )
}

/** Rows with a block between two places. */
function rowsBetween(db: Database, first: number, last: number): BlockBody[] {
  const from = db
    .query<{ place: number }, [number]>(
      'SELECT place FROM event_body WHERE place <= ? ORDER BY place DESC LIMIT 1',
    )
    .get(first)
  return db
    .query<BlockBody, [number, number]>(
      'SELECT place, ids, bodies FROM event_body WHERE place >= ? AND place <= ? ORDER BY place',
    )
    .all(from?.place ?? first, last)
}

/** Some rows that begin from a place on and before another. */
export function rowsFrom(db: Database, first: number, end: number, limit: number): BlockBody[] {
  return db
    .query<BlockBody, [number, number, number]>(
      'SELECT place, ids, bodies FROM event_body WHERE place >= ? AND place < ? ORDER BY place LIMIT ?',
    )
    .all(first, end, limit)
}

export function isGroup({ ids }: BlockBody): boolean {
  return ids[0] === groupMark
}

/** Of a damaged row, those that both blobs have. */
export function blocksOf({ place, ids, bodies }: BlockBody): BlockBody[] {
  const texts = new Map(partsOf(place, bodies).map((part) => [part.place, part.bytes]))
  return partsOf(place, ids).flatMap((part) => {
    const body = texts.get(part.place)
    return body === undefined ? [] : [{ place: part.place, ids: part.bytes, bodies: body }]
  })
}

const insertion = 'INSERT INTO event_body (place, ids, bodies) VALUES (?, ?, ?)'

/** Stores neighbours, whose rows are gone, as one row. */
export function writeGroup(db: Database, blocks: readonly BlockBody[]): void {
  const { place, ids, bodies } = blocks[0]!
  const blob = (name: Blob): Uint8Array =>
    joined(
      place,
      blocks.map((block) => ({ place: block.place, bytes: block[name] })),
    )
  if (blocks.length === 1) db.query(insertion).run(place, ids, bodies)
  else db.query(insertion).run(place, blob('ids'), blob('bodies'))
}

/** Gives each block of the group that holds a place a row of its own, in the transaction that changes a block of it. */
export function splitAt(db: Database, place: number): void {
  splitIf(db, place, (places) => places.includes(place))
}

/** The blocks between two places, both included. */
export function deleteBodies(db: Database, first: number, last: number): void {
  for (const end of [first, last + 1]) splitIf(db, end, (places) => places[0]! < end && places.at(-1)! >= end)
  db.query('DELETE FROM event_body WHERE place >= ? AND place <= ?').run(first, last)
}

/** Asks about the row that begins at a place or before it. */
function splitIf(db: Database, place: number, isDue: (places: number[]) => boolean): void {
  const names = lastRow(db, place, 'ids')
  if (names === null || names.blob[0] !== groupMark) return
  if (!isDue(partsOf(names.place, names.blob).map((part) => part.place))) return
  const [row] = rowsBetween(db, names.place, names.place) as [BlockBody]
  const blocks = blocksOf(row)
  if (groupBytes(blocks) !== row.ids.length + row.bodies.length)
    throw new StoreError('corrupt', `the bodies of the blocks from ${row.place} on are damaged`)
  db.query('DELETE FROM event_body WHERE place = ?').run(row.place)
  for (const block of blocks) db.query(insertion).run(block.place, block.ids, block.bodies)
}
