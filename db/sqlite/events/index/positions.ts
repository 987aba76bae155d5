/** Sets of positions in a segment (0 to 65,535): bitmaps in memory, lists or compressed bitmaps on disk. */
import { segmentEvents } from '../blocks/block.ts'

/*
 * A list is the first position and then the distances, as varints (7 bits per byte, lowest first; high bit: more). A
 * stored set is one tag byte and its bytes: 0 list, 1 bitmap, 2 zstd of a list, 3 zstd of a bitmap.
 */
export type Bitmap = Uint32Array<ArrayBuffer>

const bitmapBytes = segmentEvents / 8
const listMax = 8_192 // beyond it a bitmap is about as small, and faster
const squeezeBytesMin = 256

export function newBitmap(): Bitmap {
  return new Uint32Array(segmentEvents / 32)
}

export function setBit(bitmap: Bitmap, position: number): void {
  bitmap[position >>> 5]! |= 1 << (position & 31)
}

export function hasBit(bitmap: Bitmap, position: number): boolean {
  return (bitmap[position >>> 5]! & (1 << (position & 31))) !== 0
}

/** Whether any of `count` positions from `first` on is in the set. */
export function anyBit(bitmap: Bitmap, first: number, count: number): boolean {
  const last = first + count - 1
  const lastWord = last >>> 5
  for (let word = first >>> 5; word <= lastWord; word++) {
    let bits = bitmap[word]!
    if (bits === 0) continue
    if (word === first >>> 5) bits &= -1 << (first & 31)
    if (word === lastWord) bits &= -1 >>> (31 - (last & 31))
    if (bits !== 0) return true
  }
  return false
}

/** `positions` ascend. */
export function packList(positions: number[]): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(positions.length * 3)
  let at = 0
  let before = 0
  for (const position of positions) {
    let distance = position - before
    before = position
    for (; distance > 127; distance >>>= 7) out[at++] = (distance & 127) | 128
    out[at++] = distance
  }
  return out.slice(0, at)
}

export function addList(bitmap: Bitmap, list: Uint8Array): void {
  let position = 0
  for (let at = 0; at < list.length;) {
    let distance = 0
    for (let shift = 0; ; shift += 7) {
      const byte = list[at++]
      if (byte === undefined) throw new Error('a list of the segment index ends amid a number')
      distance |= (byte & 127) << shift
      if (byte < 128) break
    }
    position += distance
    setBit(bitmap, position)
  }
}

export function packSet(positions: number[]): Uint8Array<ArrayBuffer> {
  const isList = positions.length <= listMax
  const plain = isList ? packList(positions) : bitmapOf(positions)
  const squeezed = plain.length < squeezeBytesMin ? plain : Bun.zstdCompressSync(plain, { level: 1 })
  const smaller = squeezed.length < plain.length
  const out = new Uint8Array(1 + (smaller ? squeezed : plain).length)
  out[0] = (isList ? 0 : 1) + (smaller ? 2 : 0)
  out.set(smaller ? squeezed : plain, 1)
  return out
}

function bitmapOf(positions: number[]): Uint8Array<ArrayBuffer> {
  const bitmap = newBitmap()
  for (const position of positions) setBit(bitmap, position)
  return new Uint8Array(bitmap.buffer)
}

/** Adds a stored set to a bitmap. */
export function addSet(bitmap: Bitmap, stored: Uint8Array): void {
  const tag = stored[0]!
  const body = stored.slice(1)
  const plain = tag < 2 ? body : Bun.zstdDecompressSync(body)
  if (tag % 2 === 0) return addList(bitmap, plain)
  if (plain.byteLength !== bitmapBytes) throw new Error('a bitmap of the segment index has the wrong size')
  const words = new Uint32Array(plain.buffer, plain.byteOffset, bitmap.length)
  for (let word = 0; word < words.length; word++) bitmap[word]! |= words[word]!
}
