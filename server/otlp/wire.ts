/** The wire format of protobuf: fields, numbers, texts. Every read is bounded by the end of its message. */
import { instantOf, itemFieldsMax, malformed, storable, type AttributeValue, type Instant } from './model.ts'

/** A position in the body, and the halves of the last varint. */
export interface Cursor {
  bytes: Buffer
  at: number
  low: number
  high: number
  fields: number // of the item so far
  passed: number // fields around the items since the last pause
}

/** Thrown within an item, and nowhere else. One for all, because a hostile request has hundreds. */
export const overFields = new Error(`an item has more than ${itemFieldsMax} fields`)

const groupDepthMax = 16

export function tagAt(cursor: Cursor, end: number): number {
  if (++cursor.fields > itemFieldsMax) throw overFields
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
  varint(cursor, end)
  if (cursor.high !== 0 || cursor.low > end - cursor.at) throw malformed('it is truncated')
  return cursor.at + cursor.low
}

/** The start of a value of fixed size, which the cursor passes. */
export function fixed(cursor: Cursor, end: number, size: number): number {
  if (end - cursor.at < size) throw malformed('it is truncated')
  cursor.at += size
  return cursor.at - size
}

export function fixed64(cursor: Cursor, end: number): Instant | null {
  const offset = fixed(cursor, end, 8)
  return instantOf(cursor.bytes.readUInt32LE(offset + 4), cursor.bytes.readUInt32LE(offset))
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

/** The text up to `to`. Bytes that are not UTF-8 become U+FFFD: senders truncate texts inside a character. */
export function text(cursor: Cursor, to: number): string {
  const value = cursor.bytes.toString('utf8', cursor.at, to)
  cursor.at = to
  return value.includes('\0') ? storable(value) : value
}

export function bytesText(cursor: Cursor, end: number, encoding: 'hex' | 'base64'): string {
  const to = delimited(cursor, end)
  const value = cursor.bytes.toString(encoding, cursor.at, to)
  cursor.at = to
  return value
}

/** An id of a trace or span. No valid one has more than 16 bytes, so a longer one needs not be whole. */
export function hex(cursor: Cursor, end: number): string {
  const to = delimited(cursor, end)
  const value = cursor.bytes.toString('hex', cursor.at, Math.min(to, cursor.at + 32))
  cursor.at = to
  return value
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
