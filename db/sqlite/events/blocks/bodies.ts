/** The texts of a block's events, compressed so that one of them can be read without inflating all. */
import { deflateFrame, inflateFrame, joinFrames } from './frames.ts'
import { nulTexts } from './nul-texts.ts'

/*
 * On disk: frames (frames.ts, u32) of up to 64 texts each, a NUL behind every text, and one more of the spilled texts,
 * a JSON list, empty when there are none. Up to schema 10 all of it was one piece of zstd: the texts and the list, each
 * with a NUL behind it.
 */
const textsPerFrame = 64 // 256 in one frame take 16 bytes an event less, and four times as long to open

/** The text of a member that has a hash for a code. */
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

/** Of a block with so many events; a frame is inflated when one of its texts is asked for. */
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

/** The blob then begins with zstd's magic number, which is no count of frames. */
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
