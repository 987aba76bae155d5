/** Compresses the texts of a block's events so that one can be read without inflating all. */
import { deflateFrame, frameCount, inflateFrame, joinFrames, nulTexts } from './frames.ts'

/*
 * On disk: frames (frames.ts, u32) of up to 64 texts each, a NUL after every text, and a last frame of the spilled
 * texts, a JSON list, empty when there are none. Up to schema 10 it was one piece of zstd: the texts and the list, each
 * followed by a NUL.
 */
const textsPerFrame = 64 // 256 per frame save 16 bytes per event and take four times as long to open

/** The text of a field whose code is a hash. */
export type Spilled = [row: number, member: number, text: string]

export function packBodies(texts: readonly string[], spilled: readonly Spilled[]): Buffer {
  const frames: Uint8Array[] = []
  for (let from = 0; from < texts.length; from += textsPerFrame)
    frames.push(deflateFrame(`${texts.slice(from, from + textsPerFrame).join('\0')}\0`))
  frames.push(deflateFrame(spilled.length === 0 ? '' : JSON.stringify(spilled)))
  return joinFrames(frames, Uint32Array)
}

export interface Bodies {
  text(row: number): string
  spilled(): Spilled[]
}

/** A frame is inflated when one of its texts is read. */
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

/** An old blob begins with zstd's magic number, which is no count of frames. */
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

/** Cuts the id and the session out of an event's JSON text and inserts them again, so that each is stored once. */
const idName = '"id":'
const sessionName = '"sessionId":'

interface SplitText {
  text: string
  idAt: number // where the id belongs after the session was inserted; 0 when it stayed in the text
  sessionAt: number // where the session belongs in `text`
}

/**
 * `id` and `session` are JSON texts. Only the first field of each name is examined. It may belong to a nested object,
 * which is harmless because it is inserted at the same position.
 */
export function splitText(json: string, id: string, session: string): SplitText {
  const idAt = valueAt(json, idName, id)
  const idEnd = idAt + id.length
  const sessionAt = valueAt(json, sessionName, session)
  if (idAt === 0) return cut(json, 0, sessionAt, session)
  if (sessionAt < idEnd) return cut(json.slice(0, idAt) + json.slice(idEnd), idAt, sessionAt, session)
  const sessionEnd = sessionAt + session.length
  const text = json.slice(0, idAt) + json.slice(idEnd, sessionAt) + json.slice(sessionEnd)
  return { text, idAt, sessionAt: sessionAt - id.length }
}

function valueAt(json: string, name: string, value: string): number {
  const at = json.indexOf(name) + name.length
  return at >= name.length && json.startsWith(value, at) ? at : 0
}

/** Cuts only the session out of a text where it precedes the id, or whose id stays. */
function cut(text: string, idAt: number, sessionAt: number, session: string): SplitText {
  if (sessionAt === 0) return { text, idAt, sessionAt }
  return { text: text.slice(0, sessionAt) + text.slice(sessionAt + session.length), idAt, sessionAt }
}

export function joinText({ text, idAt, sessionAt }: SplitText, id: string, session: string): string {
  const whole = sessionAt === 0 ? text : text.slice(0, sessionAt) + session + text.slice(sessionAt)
  return idAt === 0 ? whole : whole.slice(0, idAt) + id + whole.slice(idAt)
}
