/** A block: up to 256 consecutive events of one organization, as columns of numbers, ids and compressed texts. */
import { member, members } from './members.ts'
import { openColumns, packColumns, type PackedColumns } from './number-columns.ts'
import { blockEventsMax } from './place.ts'

/*
 * Three blobs, so that each reader opens only what it needs:
 *   event_block.columns  the member codes in the order of members.ts, then the extra columns below (number-columns.ts)
 *   event_body.ids       zstd of NUL id NUL id NUL … NUL; an id stands as JSON text with its quotes
 *   event_body.bodies    zstd of n texts, n sessions, one list of spilled texts, all joined by NUL
 * A text is the event's JSON without its id and its session, whose places are in `idAt` and `sessionAt` (0: it was
 * not found and stays in the text). NUL cannot stand in valid JSON, so it divides. The spilled texts are those of
 * members that have a hash for a code: [row, member, text] each. An event that was removed has type 0 and '' texts.
 */
const extras = members.length
export const extra = {
  at: extras, // occurredAt, ms
  received: extras + 1, // ms
  duration: extras + 2, // ms, -1 when missing
  key: extras + 3, // the ingest key, a code like a member's
  idAt: extras + 4,
  sessionAt: extras + 5,
} as const
export const columnCount = extras + 6

export type Spilled = [row: number, member: number, text: string]

export interface BlockContent {
  events: number
  columns: Float64Array[]
  ids: string[] // as JSON text
  texts: string[]
  sessions: string[] // as JSON text
  spilled: Spilled[]
}

/** A block being filled; `content.events` grows up to `blockEventsMax`. */
export interface StagedBlock {
  firstSeq: number
  content: BlockContent
}

export function emptyBlock(): BlockContent {
  const columns = Array.from({ length: columnCount }, () => new Float64Array(blockEventsMax))
  return { events: 0, columns, ids: [], texts: [], sessions: [], spilled: [] }
}

export interface PackedBlock {
  events: number
  minAt: number
  maxAt: number
  columns: Uint8Array
  ids: Uint8Array
  bodies: Uint8Array
}

export function packBlock(block: BlockContent): PackedBlock {
  const times = block.columns[extra.at]!.subarray(0, block.events)
  const bodies = [
    ...block.texts,
    ...block.sessions,
    block.spilled.length ? JSON.stringify(block.spilled) : '',
  ]
  return {
    events: block.events,
    minAt: times.reduce((low, at) => Math.min(low, at)),
    maxAt: times.reduce((high, at) => Math.max(high, at)),
    columns: packColumns(block.columns, block.events),
    ids: Bun.zstdCompressSync(`\0${block.ids.join('\0')}\0`, { level: 1 }),
    bodies: Bun.zstdCompressSync(bodies.join('\0'), { level: 1 }),
  }
}

export function openBlock(columns: Uint8Array): PackedColumns {
  return openColumns(columns, columnCount)
}

function inflate(blob: Uint8Array): Buffer {
  return Bun.zstdDecompressSync(blob as Uint8Array<ArrayBuffer>)
}

export function openIds(ids: Uint8Array): string[] {
  return inflate(ids).toString('utf8').split('\0').slice(1, -1)
}

/** The ids of a block for `hasId`, which is much cheaper than opening them all. */
export function inflateIds(ids: Uint8Array): Buffer {
  return inflate(ids)
}

/** Whether an id, as JSON text, is among those of the block; exact. */
export function hasId(inflatedIds: Buffer, id: string): boolean {
  return inflatedIds.includes(`\0${id}\0`)
}

export interface Bodies {
  texts: string[]
  sessions: string[]
  spilled: Spilled[]
}

export function openBodies(bodies: Uint8Array, events: number): Bodies {
  const parts = inflate(bodies).toString('utf8').split('\0')
  const spilled = parts[events * 2] ?? ''
  return {
    texts: parts.slice(0, events),
    sessions: parts.slice(events, events * 2),
    spilled: spilled === '' ? [] : (JSON.parse(spilled) as Spilled[]),
  }
}

/** The whole content, to be packed anew together with others or without some events. */
export function unpackBlock(packed: {
  columns: Uint8Array
  ids: Uint8Array
  bodies: Uint8Array
}): BlockContent {
  const opened = openBlock(packed.columns)
  const columns = Array.from({ length: columnCount }, (_, index) => opened.column(index))
  return { events: opened.rows, columns, ids: openIds(packed.ids), ...openBodies(packed.bodies, opened.rows) }
}

/** Whether the event of a row was removed. */
export function isRemoved(columns: PackedColumns, row: number): boolean {
  return columns.column(member.type)[row] === 0
}
