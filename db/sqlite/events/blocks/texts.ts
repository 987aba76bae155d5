/** Compresses the ids and sessions of a block so that one id can be confirmed without opening all of them. */
import { deflateFrame, frameCount, inflateFrame, joinFrames, nulTexts } from './frames.ts'

/*
 * On disk: frames (frames.ts, u16). All but the last hold up to 64 ids each, as NUL id NUL id … NUL; the last holds the
 * sessions, as NUL session NUL session … NUL. All are JSON texts.
 */
export const idsPerFrame = 64

export function packNames(ids: string[], sessions: string[]): Uint8Array {
  const frames: Uint8Array[] = []
  for (let from = 0; from < ids.length; from += idsPerFrame)
    frames.push(frameOf(ids.slice(from, from + idsPerFrame)))
  frames.push(frameOf(sessions))
  return joinFrames(frames, Uint16Array)
}

function frameOf(texts: string[]): Uint8Array {
  return deflateFrame(`\0${texts.join('\0')}\0`)
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
}

export function openNames(names: Uint8Array, events: number): Names {
  const frames: ((index: number) => string)[] = []
  const nameIn = (frame: number, index: number): string => {
    const texts = (frames[frame] ??= nulTexts(openFrame(names, frame)))
    return texts(index + 1) // a frame begins with a NUL
  }
  return {
    id: (row) => nameIn(Math.floor(row / idsPerFrame), row % idsPerFrame),
    session: (row) => nameIn(Math.ceil(events / idsPerFrame), row),
  }
}

/** The frame of ids that contains a row, for `hasId`. */
export interface IdFrame {
  firstRow: number
  rows: number
  bytes: Buffer
}

/** Null when the block has no such row. */
export function openIdFrame(names: Uint8Array, row: number): IdFrame | null {
  const frame = Math.floor(row / idsPerFrame)
  const lastFrame = frameCount(names, Uint16Array) - 2 // the one before the sessions
  if (frame > lastFrame) return null
  const bytes = openFrame(names, frame)
  const firstRow = frame * idsPerFrame
  const rows = frame < lastFrame ? idsPerFrame : idsIn(bytes)
  return row < firstRow + rows ? { firstRow, rows, bytes } : null
}

function idsIn(frame: Buffer): number {
  let nuls = 0
  for (let at = frame.indexOf(0); at >= 0; at = frame.indexOf(0, at + 1)) nuls++
  return nuls - 1
}

/** Whether the frame contains an id, as JSON text, or the mark of an erased one; exact. */
export function hasId({ bytes }: IdFrame, id: string): boolean {
  return bytes.includes(`\0${id}\0`)
}

/** Whether any frame has the id: cheaper than opening them all, and usually enough. */
export function holdsId(names: Uint8Array, events: number, id: string): boolean {
  for (let row = 0; row < events; row += idsPerFrame) {
    const frame = openIdFrame(names, row)
    if (frame !== null && hasId(frame, id)) return true
  }
  return false
}
