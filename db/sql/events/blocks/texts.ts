/** The texts of a block: its ids and sessions, and its events' texts, in frames that are each inflated alone. */
import { isAscii } from 'node:buffer'
import { idsMark, mayHoldDigits, openIdDigits, packIdDigits, type FrameIds } from './id-digits.ts'
import { columnsMark, openTextColumns, type Bodies, type Spilled } from './text-columns.ts'

export type { Bodies, Spilled, TextFrame } from './text-columns.ts'

/*
 * event_body.ids: frames with u16 lengths. All but the last hold up to 64 ids each, as NUL id NUL id … NUL; the last
 * holds the sessions, as NUL session NUL session … NUL. All are JSON texts. A frame of ids of one form has the digits
 * of id-digits.ts instead, except in older blocks that were never repacked.
 */
export const idsPerFrame = 64

export function packNames(ids: string[], sessions: string[]): Uint8Array {
  return namesOf(ids, sessions, 1)
}

/** Takes longer and less room. */
export function packSealedNames(ids: string[], sessions: string[]): Uint8Array {
  return namesOf(ids, sessions, sealedLevel)
}

const sealedLevel = 9

function namesOf(ids: string[], sessions: string[], level: number): Uint8Array {
  const frames: Uint8Array[] = []
  for (let from = 0; from < ids.length; from += idsPerFrame) {
    const frameIds = ids.slice(from, from + idsPerFrame)
    frames.push(packIdDigits(frameIds) ?? frameOf(frameIds, level))
  }
  frames.push(frameOf(sessions, level))
  return joinFrames(frames, Uint16Array)
}

function frameOf(texts: string[], level = 1): Uint8Array {
  return deflateFrame(`\0${texts.join('\0')}\0`, level)
}

function openFrame(names: Uint8Array, frame: number): Buffer {
  return inflateFrame(names, frame, Uint16Array)
}

export function openIds(names: Uint8Array, events: number): string[] {
  const frames = Array.from({ length: Math.ceil(events / idsPerFrame) }, (_, frame) =>
    openFrame(names, frame),
  )
  return frames.flatMap((frame) => frame.toString('utf8').split('\0').slice(1, -1))
}

export function openSessions(names: Uint8Array, events: number): string[] {
  const frame = openFrame(names, Math.ceil(events / idsPerFrame))
  return frame.toString('utf8').split('\0').slice(1, -1)
}

/** The names of single rows. A frame is opened when one of its rows is read. */
export interface Names {
  id(row: number): string
  session(row: number): string
  /** The ids with which that of a row is stored, and all sessions, if they may hold this in upper case. */
  near(row: number, upper: string): Buffer[]
}

export function openNames(names: Uint8Array, events: number): Names {
  const frames: ((index: number) => string)[] = []
  const nameIn = (frame: number, index: number): string => {
    const texts = (frames[frame] ??= nulTexts(openFrame(names, frame)))
    return texts(index + 1) // a frame begins with a NUL
  }
  const lastFrame = Math.ceil(events / idsPerFrame)
  let sessions: Buffer | null = null
  return {
    id: (row) => nameIn(Math.floor(row / idsPerFrame), row % idsPerFrame),
    session: (row) => nameIn(lastFrame, row),
    near(row, upper) {
      sessions ??= openFrame(names, lastFrame)
      const frame = frameAt(names, Math.floor(row / idsPerFrame), Uint16Array)
      if (frame[0] === idsMark && !mayHoldDigits(frame, upper)) return [sessions]
      return [openFrame(names, Math.floor(row / idsPerFrame)), sessions]
    },
  }
}

/** The frame of ids that contains a row. */
export interface IdFrame extends FrameIds {
  firstRow: number
}

/** Null when the block has no such row. */
export function openIdFrame(names: Uint8Array, row: number): IdFrame | null {
  const frame = Math.floor(row / idsPerFrame)
  const lastFrame = frameCount(names, Uint16Array) - 2 // the one before the sessions
  if (frame > lastFrame) return null
  const firstRow = frame * idsPerFrame
  const packed = frameAt(names, frame, Uint16Array)
  const isFull = frame < lastFrame
  const ids = packed[0] === idsMark ? openIdDigits(packed) : openInflatedIds(openFrame(names, frame), isFull)
  return row < firstRow + ids.rows ? { firstRow, ...ids } : null
}

/** Counting the ids of a frame takes as long as inflating them. */
function openInflatedIds(bytes: Buffer, isFull: boolean): FrameIds {
  const rows = isFull ? idsPerFrame : idsIn(bytes)
  return { rows, has: (id) => bytes.includes(`\0${id}\0`), bytes: () => bytes }
}

function idsIn(frame: Buffer): number {
  let nuls = 0
  for (let position = frame.indexOf(0); position >= 0; position = frame.indexOf(0, position + 1)) nuls++
  return nuls - 1
}

/** Whether any frame has the id: cheaper than opening them all, and usually enough. */
export function holdsId(names: Uint8Array, events: number, id: string): boolean {
  for (let row = 0; row < events; row += idsPerFrame) {
    const frame = openIdFrame(names, row)
    if (frame?.has(id)) return true
  }
  return false
}

/*
 * event_body.bodies: frames with u32 lengths of up to 64 texts each, a NUL after every text, and a last frame of the
 * spilled texts: a JSON list, or nothing. Sealed blocks have columns instead (text-columns.ts). Up to schema 10 it was
 * one piece of zstd: the texts and the list, each followed by a NUL.
 */
const textsPerFrame = 64 // 256 per frame save 16 bytes per event and take four times as long to open

export function packBodies(texts: readonly string[], spilled: readonly Spilled[]): Buffer {
  const frames: Uint8Array[] = []
  for (let from = 0; from < texts.length; from += textsPerFrame)
    frames.push(deflateFrame(`${texts.slice(from, from + textsPerFrame).join('\0')}\0`))
  frames.push(deflateFrame(spilled.length === 0 ? '' : JSON.stringify(spilled)))
  return joinFrames(frames, Uint32Array)
}

/** A frame is inflated when one of its texts is read. */
export function openBodies(bodies: Uint8Array, events: number): Bodies {
  if (bodies[0] === columnsMark) return openTextColumns(bodies)
  if (isOnePiece(bodies)) return openPiece(bodies, events)
  const frames: ((index: number) => string)[] = []
  const inflated = (row: number): Buffer => inflateFrame(bodies, Math.floor(row / textsPerFrame), Uint32Array)
  return {
    text(row) {
      const frame = Math.floor(row / textsPerFrame)
      const texts = (frames[frame] ??= nulTexts(inflateFrame(bodies, frame, Uint32Array)))
      return texts(row % textsPerFrame)
    },
    frame(row) {
      return { firstRow: row - (row % textsPerFrame), bytes: inflated(row) }
    },
    near: (row) => [inflated(row)],
    spilled: () => spilledOf(inflateFrame(bodies, Math.ceil(events / textsPerFrame), Uint32Array).toString()),
  }
}

/** An old blob begins with zstd's magic number, which is no count of frames. */
function isOnePiece(bodies: Uint8Array): boolean {
  const magic = [0x28, 0xb5, 0x2f, 0xfd]
  return magic.every((byte, index) => bodies[index] === byte)
}

function openPiece(bodies: Uint8Array, events: number): Bodies {
  const bytes = Bun.zstdDecompressSync(bodies as Uint8Array<ArrayBuffer>)
  const text = nulTexts(bytes)
  return {
    text,
    frame: () => ({ firstRow: 0, bytes }),
    near: () => [bytes],
    spilled: () => spilledOf(text(events)),
  }
}

function spilledOf(list: string): Spilled[] {
  return list === '' ? [] : (JSON.parse(list) as Spilled[])
}

/*
 * Frames are compressed by zstd, each readable alone. On disk: the number of frames, the length of each, then the
 * frames. Numbers are little-endian, in the width that the caller names. An empty frame has length 0 and no bytes.
 */
type Numbers = typeof Uint16Array | typeof Uint32Array

function joinFrames(frames: readonly Uint8Array[], numbers: Numbers): Buffer {
  const head = numbers.of(frames.length, ...frames.map(({ length }) => length))
  return Buffer.concat([new Uint8Array(head.buffer), ...frames])
}

export function deflateFrame(text: string, level = 1): Uint8Array {
  return text === '' ? new Uint8Array(0) : Bun.zstdCompressSync(text, { level })
}

export function frameCount(blob: Uint8Array, numbers: Numbers): number {
  return head(blob, numbers)(0)
}

/** Inflates frame `index`. Throws when it is missing or damaged. */
export function inflateFrame(blob: Uint8Array, index: number, numbers: Numbers): Buffer {
  const frame = frameAt(blob, index, numbers)
  if (frame.length === 0) return Buffer.alloc(0)
  if (frame[0] === idsMark) return openIdDigits(frame).bytes()
  return Bun.zstdDecompressSync(frame as Uint8Array<ArrayBuffer>)
}

function frameAt(blob: Uint8Array, index: number, numbers: Numbers): Uint8Array {
  const number = head(blob, numbers)
  const frames = number(0)
  if (index < 0 || index >= frames)
    throw new Error(`frame ${index} is out of range: the blob has ${frames} frames`)
  let start = numbers.BYTES_PER_ELEMENT * (1 + frames)
  for (let frame = 0; frame < index; frame++) start += number(1 + frame)
  return blob.subarray(start, start + number(1 + index))
}

/** The numbers before the frames. The blob may begin at any byte of its buffer. */
function head(blob: Uint8Array, { BYTES_PER_ELEMENT: width }: Numbers): (index: number) => number {
  const view = new DataView(blob.buffer, blob.byteOffset, blob.byteLength)
  return (index) => (width === 2 ? view.getUint16(index * 2, true) : view.getUint32(index * 4, true))
}

/** Texts read singly before splitting them all is quicker. */
const singlesMax = 8

/** Returns the text at an index, '' beyond the last. `bytes` are UTF-8; no text contains NUL. */
function nulTexts(bytes: Buffer): (index: number) => string {
  let reads = 0
  let allTexts: string[] | null = null
  return (index) => {
    if (++reads > singlesMax) allTexts ??= bytes.toString('utf8').split('\0')
    if (allTexts !== null) return allTexts[index] ?? ''
    let start = 0
    for (let textIndex = 0; textIndex < index; textIndex++) {
      start = bytes.indexOf(0, start) + 1
      if (start === 0) return ''
    }
    const end = bytes.indexOf(0, start)
    return end < 0 ? '' : bytes.toString('utf8', start, end)
  }
}

/** What a search reads of an open block. */
interface SearchedBlock {
  /** What holds each string of the row's text, its id and its session, and those of rows near it. */
  textsNear(row: number, upper: string): IteratorObject<Buffer>
  event(row: number): { json: string }
}

/**
 * Whether a row of a block has a text in a string value. Rows are stored together, and mostly none of them has it. Both
 * sides are compared in upper case: unlike lower case it does not depend on a letter's neighbours (the Greek final
 * sigma), so a part of a text stays a part of it.
 */
export function textFinder(part: string): (block: SearchedBlock, row: number) => boolean {
  const matches = textMatcher(part)
  const upper = escapedUpper(part)
  const mayHold = bytesFinder(upper)
  const nearOf = new WeakMap<SearchedBlock, boolean[]>() // pages visit blocks by turns
  let last: SearchedBlock | null = null
  let near: boolean[] = []
  return (block, row) => {
    if (block !== last) {
      last = block
      near = nearOf.get(block) ?? []
      if (near.length === 0) nearOf.set(block, near)
    }
    const frame = Math.floor(row / idsPerFrame)
    near[frame] ??= block.textsNear(row, upper).some(mayHold)
    return near[frame] && matches(block.event(row).json)
  }
}

/** Finds a text in upper case in UTF-8 of any case. */
function bytesFinder(upper: string): (bytes: Buffer) => boolean {
  // Within ASCII it finds what a comparison in upper case finds, in a third of the time.
  const anyCase = new RegExp(RegExp.escape(upper), 'i')
  const holdsText = (bytes: Buffer): boolean => {
    if (isAscii(bytes)) return anyCase.test(bytes.toString('latin1')) // a copy, without looking at each byte again
    return bytes.toString('utf8').toUpperCase().includes(upper)
  }
  const searched = new WeakMap<Buffer, boolean>() // the frames of a block share its sessions and columns
  return (bytes) => {
    const isMatch = searched.get(bytes) ?? holdsText(bytes)
    searched.set(bytes, isMatch)
    return isMatch
  }
}

/** The same of the JSON of an event. */
export function textMatcher(part: string): (json: string) => boolean {
  const upper = part.toUpperCase()
  const escaped = escapedUpper(part)
  return (json) => {
    // A cheap check without false negatives. Its hit may be in names of fields or in numbers.
    if (!json.toUpperCase().includes(escaped)) return false
    return holds(JSON.parse(json), upper)
  }
}

const escapedUpper = (part: string): string => JSON.stringify(part).slice(1, -1).toUpperCase()

function holds(value: unknown, upper: string): boolean {
  if (typeof value === 'string') return value.toUpperCase().includes(upper)
  if (typeof value !== 'object' || value === null) return false
  for (const inner of Object.values(value)) if (holds(inner, upper)) return true
  return false
}
