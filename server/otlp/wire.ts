/**
 * The wire format of protobuf: numbers, texts and the bounds of messages. Every read is bounded by the end of its
 * message, so malformed input ends in a 400 and never reads beyond it.
 */
import { doubleValue, instantOf, malformed, storable, type AttributeValue, type Instant } from './model.ts'

/** A position in the body, and the halves of the last varint. */
export interface Cursor {
  bytes: Buffer
  at: number
  low: number
  high: number
  /** The bytes of the current item as characters, and where it starts. */
  item: string
  itemAt: number
}

export function cursorOf(body: Uint8Array): Cursor {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  return { bytes, at: 0, low: 0, high: 0, item: '', itemAt: 0 }
}

/** Texts are read much quicker between `startItem` and `endItem`. */
export function startItem(cursor: Cursor, end: number): void {
  cursor.itemAt = cursor.at
  cursor.item = cursor.bytes.toString('latin1', cursor.at, end)
}

export function endItem(cursor: Cursor): void {
  cursor.item = ''
}

/** The end of each message in this field; the cursor is at its start, and afterwards at its end. */
export function* messages(cursor: Cursor, end: number, field: number): Generator<number> {
  while (cursor.at < end) {
    const tag = tagAt(cursor, end)
    if (tag !== field * 8 + 2) {
      skip(cursor, end, tag)
      continue
    }
    const to = delimited(cursor, end)
    yield to
    cursor.at = to
  }
}

/** As `messages`, and back to the start at last. */
export function* lookAhead(cursor: Cursor, end: number, field: number): Generator<number> {
  const start = cursor.at
  yield* messages(cursor, end, field)
  cursor.at = start
}

/** Names of attributes recur, and comparing bytes is several times as quick as decoding them. */
const names: ({ bytes: Buffer; text: string } | undefined)[] = []
const namesMask = 2_047
const nameBytesMax = 64

export function nameText(cursor: Cursor, to: number): string {
  const { bytes, at } = cursor
  const length = to - at
  if (length === 0) return ''
  // A copy, because `conventions.ts` remembers names, and a part of an item would keep all of it in memory.
  if (length > nameBytesMax) return copiedText(cursor, to)
  let hash = length
  for (let n = at; n < to; n++) hash = Math.imul(hash ^ bytes[n]!, 0x01000193)
  const slot = (hash ^ (hash >>> 15)) & namesMask
  const known = names[slot]
  if (known !== undefined && isSame(known.bytes, bytes, at, length)) {
    cursor.at = to
    return known.text
  }
  const found = copiedText(cursor, to)
  names[slot] = { bytes: Buffer.from(bytes.subarray(at, to)), text: found }
  return found
}

function isSame(known: Uint8Array, bytes: Buffer, at: number, length: number): boolean {
  if (known.length !== length) return false
  for (let n = 0; n < length; n++) if (known[n] !== bytes[at + n]) return false
  return true
}

const groupDepthMax = 16

export function tagAt(cursor: Cursor, end: number): number {
  const first = cursor.bytes[cursor.at]!
  if (first < 128 && first > 7) {
    cursor.at++
    return first
  }
  varint(cursor, end)
  if (cursor.high !== 0 || cursor.low < 8) throw malformed('a field has no number')
  return cursor.low
}

/** Reads up to 64 bits into `low` and `high`, both unsigned. */
function varint(cursor: Cursor, end: number): void {
  let low = 0
  let high = 0
  for (let shift = 0; shift < 70; shift += 7) {
    if (cursor.at >= end) throw malformed('it is truncated')
    const byte = cursor.bytes[cursor.at++]!
    const bits = byte & 127
    if (shift < 28) low |= bits << shift
    else if (shift === 28) {
      low |= bits << 28
      high = bits >>> 4
    } else high |= bits << (shift - 32)
    if (byte < 128) {
      cursor.low = low >>> 0
      cursor.high = high >>> 0
      return
    }
  }
  throw malformed('a number is too long')
}

/** The end of a length-delimited value; the cursor is then at its start. */
export function delimited(cursor: Cursor, end: number): number {
  const first = cursor.bytes[cursor.at]!
  if (first < 128 && first < end - cursor.at) return ++cursor.at + first
  varint(cursor, end)
  if (cursor.high !== 0 || cursor.low > end - cursor.at) throw malformed('it is truncated')
  return cursor.at + cursor.low
}

/** The start of a value of fixed size, which the cursor passes. */
function fixed(cursor: Cursor, end: number, size: number): number {
  if (end - cursor.at < size) throw malformed('it is truncated')
  cursor.at += size
  return cursor.at - size
}

export function fixed64(cursor: Cursor, end: number): Instant | null {
  const at = fixed(cursor, end, 8)
  return instantOf(uint32(cursor.bytes, at + 4), uint32(cursor.bytes, at))
}

function uint32(bytes: Buffer, at: number): number {
  return (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0
}

export function double(cursor: Cursor, end: number): AttributeValue {
  return doubleValue(cursor.bytes.readDoubleLE(fixed(cursor, end, 8)))
}

export function int32(cursor: Cursor, end: number): number {
  varint(cursor, end)
  return cursor.low | 0
}

export function isTrue(cursor: Cursor, end: number): boolean {
  varint(cursor, end)
  return cursor.low !== 0 || cursor.high !== 0
}

export function count(cursor: Cursor, end: number): number {
  varint(cursor, end)
  return cursor.low
}

export function int64(cursor: Cursor, end: number): AttributeValue {
  varint(cursor, end)
  const value = (cursor.high | 0) * 4_294_967_296 + cursor.low
  if (Number.isSafeInteger(value)) return value
  return String((BigInt(cursor.high | 0) << 32n) | BigInt(cursor.low))
}

/** Decoding a longer text costs less than looking at its bytes here. */
const plainBytesMax = 128

/**
 * The text up to `to`. A short one in ASCII is a part of its item, which was turned into characters at once; decoding
 * each by itself costs several times as much.
 */
export function text(cursor: Cursor, to: number): string {
  const { bytes, at, item, itemAt } = cursor
  if (to - at > plainBytesMax || item === '') return copiedText(cursor, to)
  for (let n = at; n < to; n++) {
    const byte = bytes[n]!
    if (byte === 0 || byte > 127) return copiedText(cursor, to)
  }
  cursor.at = to
  return item.slice(at - itemAt, to - itemAt)
}

/** Bytes that are not UTF-8 become U+FFFD: senders truncate texts inside a character. */
function copiedText(cursor: Cursor, to: number): string {
  const found = cursor.bytes.toString('utf8', cursor.at, to)
  cursor.at = to
  return found.includes('\0') ? storable(found) : found
}

export function base64(cursor: Cursor, end: number): string {
  const to = delimited(cursor, end)
  const found = cursor.bytes.toString('base64', cursor.at, to)
  cursor.at = to
  return found
}

/** An id of a trace or span has 8 or 16 bytes, so a longer one needs not be whole. */
const idBytesMax = 32

export function hex(cursor: Cursor, end: number): string {
  const to = delimited(cursor, end)
  const found = cursor.bytes.toString('hex', cursor.at, Math.min(to, cursor.at + idBytesMax))
  cursor.at = to
  return found
}

/** The last id that was read in a field. */
export interface LastId {
  bytes: Uint8Array
  text: string
}

/** As `hex`, for a field that most items have in common with the item before. */
export function recurringHex(cursor: Cursor, end: number, last: LastId): string {
  const start = cursor.at
  const to = delimited(cursor, end)
  const { bytes, at } = cursor
  cursor.at = to
  if (isSame(last.bytes, bytes, at, to - at)) return last.text
  cursor.at = start
  last.text = hex(cursor, end)
  last.bytes = Uint8Array.from(bytes.subarray(at, Math.min(to, at + idBytesMax + 1)))
  return last.text
}

/** Passes the value of a field that is unknown or has another wire type than expected. */
export function skip(cursor: Cursor, end: number, tag: number, depth = 0): void {
  const type = tag & 7
  if (type === 0) varint(cursor, end)
  else if (type === 1) fixed(cursor, end, 8)
  else if (type === 2) cursor.at = delimited(cursor, end)
  else if (type === 5) fixed(cursor, end, 4)
  else if (type === 3 && depth < groupDepthMax) skipGroup(cursor, end, tag, depth)
  else throw malformed('a field has an unknown wire type')
}

function skipGroup(cursor: Cursor, end: number, tag: number, depth: number): void {
  for (;;) {
    if (cursor.at >= end) throw malformed('it is truncated')
    const inner = tagAt(cursor, end)
    if (inner === tag + 1) return
    skip(cursor, end, inner, depth + 1)
  }
}
