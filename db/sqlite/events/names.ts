/** The ids and sessions of a block, compressed so that one id can be confirmed without opening all of them. */

/*
 * On disk: u16 count of frames, u16 length of each, then the frames. All but the last hold up to 64 ids each, as zstd
 * of NUL id NUL id … NUL; the last holds the sessions, as zstd of NUL session NUL session … NUL. All are JSON texts.
 */
const idsPerFrame = 64

export function packNames(ids: string[], sessions: string[]): Uint8Array {
  const frames: Uint8Array[] = []
  for (let from = 0; from < ids.length; from += idsPerFrame)
    frames.push(frameOf(ids.slice(from, from + idsPerFrame)))
  frames.push(frameOf(sessions))
  const head = Uint16Array.of(frames.length, ...frames.map(({ length }) => length))
  return Buffer.concat([new Uint8Array(head.buffer), ...frames])
}

function frameOf(texts: string[]): Uint8Array {
  return Bun.zstdCompressSync(`\0${texts.join('\0')}\0`, { level: 1 })
}

function inflateFrame(names: Uint8Array, frame: number): Buffer {
  const view = new DataView(names.buffer, names.byteOffset, names.byteLength)
  let start = 2 + view.getUint16(0, true) * 2
  for (let before = 0; before < frame; before++) start += view.getUint16(2 + before * 2, true)
  const end = start + view.getUint16(2 + frame * 2, true)
  return Bun.zstdDecompressSync(names.subarray(start, end) as Uint8Array<ArrayBuffer>)
}

export function openIds(names: Uint8Array, events: number): string[] {
  const frames = Array.from({ length: Math.ceil(events / idsPerFrame) }, (_, frame) =>
    inflateFrame(names, frame),
  )
  return frames.flatMap((frame) => frame.toString('utf8').split('\0').slice(1, -1))
}

export function openSessions(names: Uint8Array, events: number): string[] {
  const frame = inflateFrame(names, Math.ceil(events / idsPerFrame))
  return frame.toString('utf8').split('\0').slice(1, -1)
}

/** The ids beside that of a row, for `hasId`. */
export interface IdFrame {
  firstRow: number
  rows: number
  bytes: Buffer
}

export function openIdFrame(names: Uint8Array, row: number): IdFrame {
  const frame = Math.floor(row / idsPerFrame)
  return { firstRow: frame * idsPerFrame, rows: idsPerFrame, bytes: inflateFrame(names, frame) }
}

/** Whether an id, as JSON text, or the mark of an erased one is in the frame; exact. */
export function hasId({ bytes }: IdFrame, id: string): boolean {
  return bytes.includes(`\0${id}\0`)
}

/** Whether an id is in any frame: cheaper than opening them all, which it mostly spares. */
export function holdsId(names: Uint8Array, events: number, id: string): boolean {
  for (let row = 0; row < events; row += idsPerFrame) if (hasId(openIdFrame(names, row), id)) return true
  return false
}
