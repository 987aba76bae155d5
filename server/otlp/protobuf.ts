/**
 * Reads OTLP requests in protobuf, one item at a time. Only the fields that the receiver needs are decoded. Every read
 * is bounded by the end of its message, so malformed input ends in a 400 and never reads beyond it.
 */
import {
  addAttribute,
  doubleValue,
  instantOf,
  itemBytesMax,
  malformed,
  noAttributes,
  spanEventsMax,
  storable,
  valueDepthMax,
  type Attributes,
  type AttributeValue,
  type Instant,
  type Items,
  type LogRecord,
  type Origin,
  type Span,
  type SpanEvent,
} from './model.ts'

/** A position in the body, and the halves of the last varint. */
interface Cursor {
  bytes: Buffer
  at: number
  low: number
  high: number
}

type ReadItem<Item> = (cursor: Cursor, end: number, origin: Origin) => Item

/** The items of a request: messages 1 (by resource), 2 (by scope), 2 (items), the same for all signals. */
export function* protobufItems<Item>(body: Uint8Array, read: ReadItem<Item>): Items<Item> {
  const cursor: Cursor = {
    bytes: Buffer.from(body.buffer, body.byteOffset, body.length),
    ...{ at: 0, low: 0, high: 0 },
  }
  for (const resourceEnd of messages(cursor, body.length, 1)) {
    const resource = noAttributes()
    // The fields may come in any order, so what surrounds the items is read first.
    for (const end of lookAhead(cursor, resourceEnd, 1))
      for (const to of messages(cursor, end, 1)) keyValue(cursor, to, resource)
    for (const scopeEnd of messages(cursor, resourceEnd, 2)) {
      let scope = ''
      for (const end of lookAhead(cursor, scopeEnd, 1)) scope = textField(cursor, end, 1) ?? scope
      const origin = { resource, scope }
      for (const end of messages(cursor, scopeEnd, 2))
        yield end - cursor.at > itemBytesMax ? null : read(cursor, end, origin)
    }
  }
}

/** The end of each message in this field; the cursor is at its start, and afterwards at its end. */
function* messages(cursor: Cursor, end: number, field: number): Generator<number> {
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
function* lookAhead(cursor: Cursor, end: number, field: number): Generator<number> {
  const start = cursor.at
  yield* messages(cursor, end, field)
  cursor.at = start
}

function textField(cursor: Cursor, end: number, field: number): string | null {
  let found: string | null = null
  for (const to of messages(cursor, end, field)) found = text(cursor, to)
  return found
}

export function readSpan(cursor: Cursor, end: number, origin: Origin): Span {
  const span: Span = {
    ...{ origin, traceId: '', spanId: '', parentSpanId: '', name: '', kind: 0, start: null, end: null },
    ...{ attributes: noAttributes(), events: [], status: 0, message: '' },
  }
  while (cursor.at < end) {
    const tag = tagAt(cursor, end)
    if (tag === 10) span.traceId = hex(cursor, end)
    else if (tag === 18) span.spanId = hex(cursor, end)
    else if (tag === 34) span.parentSpanId = hex(cursor, end)
    else if (tag === 42) span.name = text(cursor, delimited(cursor, end))
    else if (tag === 48) span.kind = int32(cursor, end)
    else if (tag === 57) span.start = fixed64(cursor, end)
    else if (tag === 65) span.end = fixed64(cursor, end)
    else if (tag === 74) keyValue(cursor, delimited(cursor, end), span.attributes)
    else if (tag === 80) span.attributes.dropped += count(cursor, end)
    else if (tag === 90) spanEvent(cursor, delimited(cursor, end), span.events)
    else if (tag === 122) readStatus(cursor, delimited(cursor, end), span)
    else skip(cursor, end, tag)
  }
  return span
}

function readStatus(cursor: Cursor, end: number, span: Span): void {
  while (cursor.at < end) {
    const tag = tagAt(cursor, end)
    if (tag === 18) span.message = text(cursor, delimited(cursor, end))
    else if (tag === 24) span.status = int32(cursor, end)
    else skip(cursor, end, tag)
  }
}

function spanEvent(cursor: Cursor, end: number, into: SpanEvent[]): void {
  if (into.length >= spanEventsMax) {
    cursor.at = end
    return
  }
  const event: SpanEvent = { time: null, name: '', attributes: noAttributes() }
  while (cursor.at < end) {
    const tag = tagAt(cursor, end)
    if (tag === 9) event.time = fixed64(cursor, end)
    else if (tag === 18) event.name = text(cursor, delimited(cursor, end))
    else if (tag === 26) keyValue(cursor, delimited(cursor, end), event.attributes)
    else if (tag === 32) event.attributes.dropped += count(cursor, end)
    else skip(cursor, end, tag)
  }
  into.push(event)
}

export function readLog(cursor: Cursor, end: number, origin: Origin): LogRecord {
  const record: LogRecord = {
    ...{ origin, traceId: '', spanId: '', time: null, observed: null, name: '', body: null },
    attributes: noAttributes(),
  }
  while (cursor.at < end) {
    const tag = tagAt(cursor, end)
    if (tag === 9) record.time = fixed64(cursor, end)
    else if (tag === 42) record.body = anyValue(cursor, delimited(cursor, end), 0) ?? null
    else if (tag === 50) keyValue(cursor, delimited(cursor, end), record.attributes)
    else if (tag === 56) record.attributes.dropped += count(cursor, end)
    else if (tag === 74) record.traceId = hex(cursor, end)
    else if (tag === 82) record.spanId = hex(cursor, end)
    else if (tag === 89) record.observed = fixed64(cursor, end)
    else if (tag === 98) record.name = text(cursor, delimited(cursor, end))
    else skip(cursor, end, tag)
  }
  return record
}

/** Gauge, sum, histogram, exponential histogram, summary: each has its data points in field 1. */
const metricKinds = new Set([42, 58, 74, 82, 90])

/** The number of data points of a metric, which is all that is read of it. */
export function readMetric(cursor: Cursor, end: number): number {
  let points = 0
  while (cursor.at < end) {
    const tag = tagAt(cursor, end)
    if (metricKinds.has(tag)) for (const _ of messages(cursor, delimited(cursor, end), 1)) points++
    else skip(cursor, end, tag)
  }
  return points
}

function keyValue(cursor: Cursor, end: number, into: Attributes): void {
  let name = ''
  let value: AttributeValue | undefined = null
  while (cursor.at < end) {
    const tag = tagAt(cursor, end)
    if (tag === 10) name = nameText(cursor, delimited(cursor, end))
    else if (tag === 18) value = anyValue(cursor, delimited(cursor, end), 0)
    else skip(cursor, end, tag)
  }
  addAttribute(into, name, value)
}

/** Names of attributes recur, and comparing bytes is several times as quick as decoding them. */
const names: ({ bytes: Buffer; text: string } | undefined)[] = []
const namesMask = 2_047
const nameBytesMax = 64

function nameText(cursor: Cursor, to: number): string {
  const { bytes, at } = cursor
  const length = to - at
  if (length === 0 || length > nameBytesMax) return text(cursor, to)
  let hash = length
  for (let n = at; n < to; n++) hash = Math.imul(hash ^ bytes[n]!, 0x01000193)
  const slot = (hash ^ (hash >>> 15)) & namesMask
  const known = names[slot]
  if (known !== undefined && isSame(known.bytes, bytes, at, length)) {
    cursor.at = to
    return known.text
  }
  const found = text(cursor, to)
  names[slot] = { bytes: Buffer.from(bytes.subarray(at, to)), text: found }
  return found
}

function isSame(known: Buffer, bytes: Buffer, at: number, length: number): boolean {
  if (known.length !== length) return false
  for (let n = 0; n < length; n++) if (known[n] !== bytes[at + n]) return false
  return true
}

/** The value of a message that ends at `end`; undefined when it nests too deeply. */
function anyValue(cursor: Cursor, end: number, depth: number): AttributeValue | undefined {
  let value: AttributeValue | undefined = null
  while (cursor.at < end) {
    const tag = tagAt(cursor, end)
    if (tag === 10) value = text(cursor, delimited(cursor, end))
    else if (tag === 16) value = isTrue(cursor, end)
    else if (tag === 24) value = int64(cursor, end)
    else if (tag === 33) value = doubleValue(cursor.bytes.readDoubleLE(fixed(cursor, end, 8)))
    else if (tag === 42) value = arrayValue(cursor, delimited(cursor, end), depth)
    else if (tag === 50) value = objectValue(cursor, delimited(cursor, end), depth)
    else if (tag === 58) value = bytesText(cursor, end, 'base64')
    else skip(cursor, end, tag)
  }
  return value
}

function arrayValue(cursor: Cursor, end: number, depth: number): AttributeValue | undefined {
  const values: AttributeValue[] = []
  if (depth >= valueDepthMax) return beyond(cursor, end)
  for (const to of messages(cursor, end, 1)) {
    const value = anyValue(cursor, to, depth + 1)
    if (value === undefined) return beyond(cursor, end)
    values.push(value)
  }
  return values
}

function objectValue(cursor: Cursor, end: number, depth: number): AttributeValue | undefined {
  const fields = new Map<string, AttributeValue>()
  if (depth >= valueDepthMax) return beyond(cursor, end)
  for (const fieldEnd of messages(cursor, end, 1)) {
    let name = ''
    let value: AttributeValue | undefined = null
    while (cursor.at < fieldEnd) {
      const tag = tagAt(cursor, fieldEnd)
      if (tag === 10) name = text(cursor, delimited(cursor, fieldEnd))
      else if (tag === 18) value = anyValue(cursor, delimited(cursor, fieldEnd), depth + 1)
      else skip(cursor, fieldEnd, tag)
    }
    if (value === undefined) return beyond(cursor, end)
    fields.set(name, value)
  }
  return Object.fromEntries(fields)
}

function beyond(cursor: Cursor, end: number): undefined {
  cursor.at = end
  return undefined
}

// ---------------------------------------------------------------- the wire format

const groupDepthMax = 16

function tagAt(cursor: Cursor, end: number): number {
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
function delimited(cursor: Cursor, end: number): number {
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

function fixed64(cursor: Cursor, end: number): Instant | null {
  const at = fixed(cursor, end, 8)
  return instantOf(cursor.bytes.readUInt32LE(at + 4), cursor.bytes.readUInt32LE(at))
}

function int32(cursor: Cursor, end: number): number {
  varint(cursor, end)
  return cursor.low | 0
}

function isTrue(cursor: Cursor, end: number): boolean {
  varint(cursor, end)
  return cursor.low !== 0 || cursor.high !== 0
}

function count(cursor: Cursor, end: number): number {
  varint(cursor, end)
  return cursor.low
}

function int64(cursor: Cursor, end: number): AttributeValue {
  varint(cursor, end)
  const value = (cursor.high | 0) * 4_294_967_296 + cursor.low
  if (Number.isSafeInteger(value)) return value
  return String((BigInt(cursor.high | 0) << 32n) | BigInt(cursor.low))
}

/** The text up to `to`. Bytes that are not UTF-8 become U+FFFD: senders truncate texts inside a character. */
function text(cursor: Cursor, to: number): string {
  const found = cursor.bytes.toString('utf8', cursor.at, to)
  cursor.at = to
  return found.includes('\0') ? storable(found) : found
}

function bytesText(cursor: Cursor, end: number, as: 'hex' | 'base64'): string {
  const to = delimited(cursor, end)
  const found = cursor.bytes.toString(as, cursor.at, to)
  cursor.at = to
  return found
}

/** An id of a trace or span. No valid one has more than 16 bytes, so a longer one needs not be whole. */
function hex(cursor: Cursor, end: number): string {
  const to = delimited(cursor, end)
  const found = cursor.bytes.toString('hex', cursor.at, Math.min(to, cursor.at + 32))
  cursor.at = to
  return found
}

/** Passes the value of a field that is unknown or has another wire type than expected. */
function skip(cursor: Cursor, end: number, tag: number, depth = 0): void {
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
