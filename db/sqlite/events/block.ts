/** A block: up to 256 consecutive events of one organization, as columns of numbers, ids and compressed texts. */
import { deflateFrame, inflateFrame, joinFrames } from './frames.ts'
import { members } from './members.ts'
import { openIds, openSessions, packNames } from './names.ts'
import { nulTexts } from './nul-texts.ts'
import { openColumns, packColumns, type PackedColumns } from './number-columns.ts'
import { blockEventsMax } from './place.ts'

/*
 * Three blobs, so that each reader opens only what it needs:
 *   event_block.columns  the member codes in the order of members.ts, then the extra columns below (number-columns.ts)
 *   event_body.ids       ids and sessions (names.ts)
 *   event_body.bodies    frames (frames.ts, u32) of up to 64 texts each with a NUL behind it, and one of the spilled
 *                        texts, a JSON list, empty when there are none. Up to schema 10 it was all one piece of zstd:
 *                        n texts and the list, each with a NUL behind it
 * A text is the event's JSON without its id and its session, whose places are in `idAt` and `sessionAt` (0: it was
 * not found and stays in the text). NUL cannot stand in valid JSON, so it divides. The spilled texts are those of
 * members that have a hash for a code: [row, member, text] each. An event that was removed has type 0 and '' texts.
 */
const textsPerFrame = 64 // 256 in one frame take 16 bytes an event less, and four times as long to open
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

export function clearBlock(block: BlockContent): BlockContent {
  for (const column of block.columns) column.fill(0)
  return { events: 0, columns: block.columns, ids: [], texts: [], sessions: [], spilled: [] }
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
  return {
    events: block.events,
    minAt: times.reduce((low, at) => Math.min(low, at)),
    maxAt: times.reduce((high, at) => Math.max(high, at)),
    columns: packColumns(block.columns, block.events),
    ids: packNames(block.ids, block.sessions),
    bodies: packBodies(block.texts, block.spilled),
  }
}

function packBodies(texts: string[], spilled: Spilled[]): Buffer {
  const frames: Uint8Array[] = []
  for (let from = 0; from < texts.length; from += textsPerFrame)
    frames.push(deflateFrame(`${texts.slice(from, from + textsPerFrame).join('\0')}\0`))
  frames.push(deflateFrame(spilled.length === 0 ? '' : JSON.stringify(spilled)))
  return joinFrames(frames, Uint32Array)
}

/** Damage that still inflates is damage: SQLite does not look into its pages, and these frames carry no checksum. */
export function blockChecksum({
  columns,
  ids,
  bodies,
}: Pick<PackedBlock, 'columns' | 'ids' | 'bodies'>): number {
  return Bun.hash.xxHash32(bodies, Bun.hash.xxHash32(ids, Bun.hash.xxHash32(columns, 0)))
}

export function openBlock(columns: Uint8Array): PackedColumns {
  return openColumns(columns, columnCount)
}

export interface Bodies {
  text(row: number): string
  spilled(): Spilled[]
}

/** A frame is inflated when one of its texts is asked for. */
export function openBodies(bodies: Uint8Array, events: number): Bodies {
  if (isOnePiece(bodies)) return openPiece(bodies, events)
  const frames: ((index: number) => string)[] = []
  return {
    text(row) {
      const frame = Math.floor(row / textsPerFrame)
      const texts = (frames[frame] ??= nulTexts(inflateFrame(bodies, frame, Uint32Array)))
      return texts(row % textsPerFrame)
    },
    spilled: () => spilledOf(inflateFrame(bodies, Math.ceil(events / textsPerFrame), Uint32Array).toString()),
  }
}

/** As it was up to schema 10: the blob begins with zstd's magic number, which is no count of frames. */
function isOnePiece(bodies: Uint8Array): boolean {
  const magic = [0x28, 0xb5, 0x2f, 0xfd]
  return magic.every((byte, index) => bodies[index] === byte)
}

function openPiece(bodies: Uint8Array, events: number): Bodies {
  const text = nulTexts(Bun.zstdDecompressSync(bodies as Uint8Array<ArrayBuffer>))
  return { text, spilled: () => spilledOf(text(events)) }
}

function spilledOf(list: string): Spilled[] {
  return list === '' ? [] : (JSON.parse(list) as Spilled[])
}

/** The whole content, to be packed anew together with others or without some events. */
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
