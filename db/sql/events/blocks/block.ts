/** A block: up to 256 consecutive events of one organization, as columns of numbers, ids and compressed texts. */
import { openBodies, openIds, openSessions, packBodies, packNames, type Spilled } from './texts.ts'
import { agentField, judgementField, members } from './fields.ts'
import {
  inflateColumns,
  openColumns,
  packColumns,
  packSealed,
  raiseColumn,
  type PackedColumns,
} from './number-columns.ts'

/*
 * The key of a block is the organization's number and its first arrival number (seq) in one integer. Each organization
 * numbers its arrivals from 1 without a gap, so a key and a count describe a block.
 */
const seqsPerOrg = 2 ** 36
export const seqMax = seqsPerOrg - 1

/** Keeps `org * seqsPerOrg` within the integers a double can hold. */
export const orgsMax = 2 ** 16

/** Maximum events per block. More would hardly compress better and slow down a page. */
export const blockEventsMax = 256

/** Set by `npm test` for tests of the engine, which then fill several segments with a quarter of the events. */
declare const SIGHTGLASS_TEST_SEGMENT: number | undefined

/** Arrivals per segment, the size of a bitmap of the segment index. No block crosses a segment's end. */
export const segmentEvents = typeof SIGHTGLASS_TEST_SEGMENT === 'undefined' ? 65_536 : SIGHTGLASS_TEST_SEGMENT

export function placeOf(org: number, seq: number): number {
  return org * seqsPerOrg + seq
}

export function seqOf(place: number): number {
  return place % seqsPerOrg
}

export function orgOf(place: number): number {
  return Math.floor(place / seqsPerOrg)
}

export function segmentOf(seq: number): number {
  return Math.floor(seq / segmentEvents)
}

/** Blocks up to such an arrival are final, because later events are in another segment. */
export function endsSegment(seq: number): boolean {
  return segmentOf(seq) !== segmentOf(seq + 1)
}

/*
 * Three blobs, so that each reader opens only what it needs:
 *   event_block.columns  codes of fields, each in the column of its number, and those below (number-columns.ts);
 *                        a block of an earlier schema lacks the last ones, which then read as 0
 *   event_body.ids       ids and sessions (texts.ts)
 *   event_body.bodies    texts, and texts of fields whose code is a hash (texts.ts)
 * A text is the event's JSON without its id and session, whose positions are in `idAt` and `sessionAt` (0: not found,
 * so it stays in the text). NUL cannot occur in valid JSON, so it separates texts. A deleted event has type 0 and ''
 * texts.
 */
export const extra = {
  at: 14, // the time of the event (db/rules/event-record.ts), ms
  received: 15, // ms
  duration: 16, // ms, -1 when missing
  key: 17, // the ingest key, also a field (`event-fields.ts`)
  idAt: 18,
  sessionAt: 19,
} as const
export const columnCount = Math.max(judgementField, ...members.map(({ number }) => number)) + 1

/** What the terms of an organization belong to: fields, agents, judgements. */
export const termMembers = [...members.map(({ number }) => number), agentField, judgementField]

export interface BlockContent {
  events: number
  columns: Float64Array[]
  ids: string[] // as JSON text
  texts: string[]
  sessions: string[] // as JSON text
  spilled: Spilled[]
}

/** A block being filled. `content.events` grows up to `blockEventsMax`. */
export interface StagedBlock {
  firstSeq: number
  content: BlockContent
}

export function emptyBlock(): BlockContent {
  const columns = Array.from({ length: columnCount }, () => new Float64Array(blockEventsMax))
  return { events: 0, columns, ids: [], texts: [], sessions: [], spilled: [] }
}

export function clearBlock(block: BlockContent): BlockContent {
  for (const column of block.columns) column.fill(0)
  return { events: 0, columns: block.columns, ids: [], texts: [], sessions: [], spilled: [] }
}

interface PackedBlock {
  events: number
  minAt: number
  maxAt: number
  columns: Uint8Array
  ids: Uint8Array
  bodies: Uint8Array
}

export function packBlockColumns(block: BlockContent): Pick<PackedBlock, 'minAt' | 'maxAt' | 'columns'> {
  const { low, high } = rangeOf(block, extra.at)
  return { minAt: low, maxAt: high, columns: packColumns(block.columns, block.events) }
}

/** The columns of a sealed block in less room; null when they would not come back as they are. */
export function packSealedColumns(columns: Uint8Array): Uint8Array | null {
  const opened = openBlock(columns)
  const { rows } = opened
  const values = Array.from({ length: columnCount }, (_, index) => opened.column(index))
  const packed = packSealed(values, rows)
  const again = openBlock(packed)
  const isSame = (column: Float64Array, index: number): boolean => {
    const repackedColumn = again.column(index)
    return column.every((value, row) => Object.is(value, repackedColumn[row]))
  }
  return values.every(isSame) ? packed : null
}

/** A loop, because `reduce` over a typed array takes ten times as long. */
export function rangeOf({ columns, events }: BlockContent, index: number): { low: number; high: number } {
  const column = columns[index]!
  let low = column[0]!
  let high = low
  for (let row = 1; row < events; row++) {
    const value = column[row]!
    if (value < low) low = value
    else if (value > high) high = value
  }
  return { low, high }
}

export function packBlock(block: BlockContent): PackedBlock {
  return {
    events: block.events,
    ...packBlockColumns(block),
    ids: packNames(block.ids, block.sessions),
    bodies: packBodies(block.texts, block.spilled),
  }
}

/** Checks damage that still inflates: not every engine has checksums of its pages, and these frames have none. */
export function blockChecksum({
  columns,
  ids,
  bodies,
}: Pick<PackedBlock, 'columns' | 'ids' | 'bodies'>): number {
  const { packed, floorMs } = splitFloor(columns)
  const checksum = Bun.hash.xxHash32(bodies, Bun.hash.xxHash32(ids, Bun.hash.xxHash32(packed, 0)))
  return floorMs === null ? checksum : (checksum ^ Math.floor(floorMs / 2 ** 32) ^ (floorMs % 2 ** 32)) >>> 0
}

/*
 * Where several processes append, one learns only in the statement that stores its block when the arrival before it
 * was received. If that was later than `received` in the block, the statement writes the time before the columns: 8
 * bytes, ms, big-endian, so that the first one is 0. Columns begin with the magic number of zstd, 0x28.
 */
const floorBytes = 8

function splitFloor(columns: Uint8Array): { packed: Uint8Array; floorMs: number | null } {
  if (columns[0] !== 0) return { packed: columns, floorMs: null }
  const view = new DataView(columns.buffer, columns.byteOffset, floorBytes)
  return { packed: columns.subarray(floorBytes), floorMs: Number(view.getBigInt64(0)) }
}

export function inflateBlock(columns: Uint8Array): Uint8Array {
  const { packed, floorMs } = splitFloor(columns)
  const raw = inflateColumns(packed)
  if (floorMs !== null) raiseColumn(raw, extra.received, floorMs)
  return raw
}

export function openBlock(columns: Uint8Array): PackedColumns {
  return openInflated(inflateBlock(columns))
}

export function openInflated(columns: Uint8Array): PackedColumns {
  return openColumns(columns, columnCount)
}

/** The whole content, for packing it again with other events or without some. */
export function unpackBlock(packed: {
  columns: Uint8Array
  ids: Uint8Array
  bodies: Uint8Array
}): BlockContent {
  const opened = openBlock(packed.columns)
  const columns = Array.from({ length: columnCount }, (_, index) => opened.column(index))
  const ids = openIds(packed.ids, opened.rows)
  const bodies = openBodies(packed.bodies, opened.rows)
  return {
    events: opened.rows,
    columns,
    ids,
    texts: ids.map((_, row) => bodies.text(row)),
    sessions: openSessions(packed.ids, opened.rows),
    spilled: bodies.spilled(),
  }
}
