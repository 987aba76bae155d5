/**
 * Reads OTLP requests in protobuf, one item at a time. Only the fields that the receiver needs are decoded. Every read
 * is bounded by the end of its message, so malformed input ends in a 400 and never reads beyond it.
 */
import {
  addAttribute,
  doubleValue,
  itemBytesMax,
  malformed,
  noAttributes,
  originBytesMax,
  originTooLarge,
  partCounter,
  spanEventsMax,
  tooLarge,
  tooManyFields,
  valueDepthMax,
  type Refused,
  type Attributes,
  type AttributeValue,
  type Items,
  type LogRecord,
  type Origin,
  type Span,
  type SpanEvent,
} from './model.ts'
import {
  tagAt,
  delimited,
  fixed,
  fixed64,
  int32,
  isTrue,
  count,
  int64,
  text,
  bytesText,
  hex,
  skip,
  overFields,
  type Cursor,
} from './wire.ts'

type ReadItem<Item> = (cursor: Cursor, end: number, origin: Origin) => Item

/** The items of a request: messages 1 (by resource), 2 (by scope), 2 (items), the same for all signals. */
export function* protobufItems<Item>(body: Uint8Array, read: ReadItem<Item>): Items<Item> {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  const cursor: Cursor = { bytes, at: 0, low: 0, high: 0, fields: 0, passed: 0 }
  const countPart = partCounter()
  for (const resourceEnd of messages(cursor, body.length, 1)) {
    if (resourceEnd === null) {
      yield null
      continue
    }
    countPart()
    // The fields may come in any order, so what surrounds the items is read first.
    const start = cursor.at
    const resource = noAttributes()
    let resourceBytes = 0
    for (const end of messages(cursor, resourceEnd, 1)) {
      if (end === null) {
        yield null
        continue
      }
      resourceBytes += end - cursor.at
      if (resourceBytes <= originBytesMax) readAttributes(cursor, end, resource)
    }
    cursor.at = start
    for (const scopeEnd of messages(cursor, resourceEnd, 2)) {
      if (scopeEnd === null) {
        yield null
        continue
      }
      countPart()
      const scopeStart = cursor.at
      let scope = ''
      let scopeBytes = 0
      for (const end of messages(cursor, scopeEnd, 1)) {
        if (end === null) {
          yield null
          continue
        }
        scopeBytes += end - cursor.at
        if (scopeBytes <= originBytesMax) scope = textField(cursor, end, 1) ?? scope
      }
      cursor.at = scopeStart
      const isOver = resourceBytes > originBytesMax || scopeBytes > originBytesMax
      const origin = { resource, scope }
      for (const end of messages(cursor, scopeEnd, 2)) {
        if (end === null) {
          yield null
          continue
        }
        countPart()
        yield isOver ? originTooLarge : readItem(cursor, end, origin, read)
      }
    }
  }
}

function readItem<Item>(cursor: Cursor, end: number, origin: Origin, read: ReadItem<Item>): Item | Refused {
  if (end - cursor.at > itemBytesMax) return tooLarge
  cursor.fields = 0
  try {
    return read(cursor, end, origin)
  } catch (thrown) {
    if (thrown === overFields) return tooManyFields
    throw thrown
  }
}

/** So many fields around the items are passed in well below a millisecond. */
const passedMax = 10_000

/**
 * The end of each message in this field; the cursor is at its start, and afterwards at its end. Null, which needs
 * nothing but patience, after much work.
 */
function* messages(cursor: Cursor, end: number, field: number): Generator<number | null> {
  while (cursor.at < end) {
    if (++cursor.passed > passedMax) {
      cursor.passed = 0
      const { at: offset } = cursor
      yield null
      cursor.at = offset
    }
    cursor.fields = 0
    const tag = tagAt(cursor, end)
    if (tag !== field * 8 + 2) {
      skipAround(cursor, end, tag)
      continue
    }
    const to = delimited(cursor, end)
    yield to
    cursor.at = to
  }
}

/** A group of unknown fields around the items may not be larger than an item. */
function skipAround(cursor: Cursor, end: number, tag: number): void {
  try {
    skip(cursor, end, tag)
  } catch (thrown) {
    if (thrown === overFields) throw malformed('a group of unknown fields is too large')
    throw thrown
  }
}

/** The attributes of a resource, which is bounded in bytes. */
function readAttributes(cursor: Cursor, end: number, attributes: Attributes): void {
  while (cursor.at < end) {
    cursor.fields = 0
    const tag = tagAt(cursor, end)
    if (tag === 10) keyValue(cursor, delimited(cursor, end), attributes)
    else skip(cursor, end, tag)
  }
}

function textField(cursor: Cursor, end: number, field: number): string | null {
  let value: string | null = null
  while (cursor.at < end) {
    cursor.fields = 0
    const tag = tagAt(cursor, end)
    if (tag === field * 8 + 2) value = text(cursor, delimited(cursor, end))
    else skip(cursor, end, tag)
  }
  return value
}

export function readSpan(cursor: Cursor, end: number, origin: Origin): Span {
  const span: Span = {
    origin,
    traceId: '',
    spanId: '',
    parentSpanId: '',
    name: '',
    kind: 0,
    start: null,
    end: null,
    attributes: noAttributes(),
    events: [],
    status: 0,
    message: '',
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

function spanEvent(cursor: Cursor, end: number, events: SpanEvent[]): void {
  if (events.length >= spanEventsMax) {
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
  events.push(event)
}

export function readLog(cursor: Cursor, end: number, origin: Origin): LogRecord {
  const record: LogRecord = {
    origin,
    traceId: '',
    spanId: '',
    time: null,
    observed: null,
    name: '',
    body: null,
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
    if (metricKinds.has(tag)) points += countPoints(cursor, delimited(cursor, end))
    else skip(cursor, end, tag)
  }
  return points
}

/** A metric may have as many data points as fit, because they are only passed. */
function countPoints(cursor: Cursor, end: number): number {
  let points = 0
  while (cursor.at < end) {
    cursor.fields = 0
    const tag = tagAt(cursor, end)
    if (tag === 10) {
      points++
      cursor.at = delimited(cursor, end)
    } else skip(cursor, end, tag)
  }
  return points
}

function keyValue(cursor: Cursor, end: number, attributes: Attributes): void {
  let name = ''
  let value: AttributeValue | undefined = null
  while (cursor.at < end) {
    const tag = tagAt(cursor, end)
    if (tag === 10) name = nameText(cursor, delimited(cursor, end))
    else if (tag === 18) value = anyValue(cursor, delimited(cursor, end), 0)
    else skip(cursor, end, tag)
  }
  addAttribute(attributes, name, value)
}

/** Names of attributes recur, and comparing bytes is several times as quick as decoding them. */
const names: ({ bytes: Buffer; text: string } | undefined)[] = []
const namesMask = 2_047
const nameBytesMax = 64

function nameText(cursor: Cursor, to: number): string {
  const { bytes, at: offset } = cursor
  const length = to - offset
  if (length === 0 || length > nameBytesMax) return text(cursor, to)
  let hash = length
  for (let n = offset; n < to; n++) hash = Math.imul(hash ^ bytes[n]!, 0x01000193)
  const slot = (hash ^ (hash >>> 15)) & namesMask
  const cachedName = names[slot]
  if (cachedName !== undefined && isSame(cachedName.bytes, bytes, offset, length)) {
    cursor.at = to
    return cachedName.text
  }
  const name = text(cursor, to)
  names[slot] = { bytes: Buffer.from(bytes.subarray(offset, to)), text: name }
  return name
}

function isSame(cachedBytes: Buffer, bytes: Buffer, offset: number, length: number): boolean {
  if (cachedBytes.length !== length) return false
  for (let n = 0; n < length; n++) if (cachedBytes[n] !== bytes[offset + n]) return false
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
  while (cursor.at < end) {
    const tag = tagAt(cursor, end)
    if (tag !== 10) {
      skip(cursor, end, tag)
      continue
    }
    const value = anyValue(cursor, delimited(cursor, end), depth + 1)
    if (value === undefined) return beyond(cursor, end)
    values.push(value)
  }
  return values
}

function objectValue(cursor: Cursor, end: number, depth: number): AttributeValue | undefined {
  const fields = new Map<string, AttributeValue>()
  if (depth >= valueDepthMax) return beyond(cursor, end)
  while (cursor.at < end) {
    const tag = tagAt(cursor, end)
    if (tag !== 10) {
      skip(cursor, end, tag)
      continue
    }
    const field = fieldOf(cursor, delimited(cursor, end), depth)
    if (field.value === undefined) return beyond(cursor, end)
    fields.set(field.name, field.value)
  }
  return Object.fromEntries(fields)
}

function fieldOf(cursor: Cursor, end: number, depth: number) {
  let name = ''
  let value: AttributeValue | undefined = null
  while (cursor.at < end) {
    const tag = tagAt(cursor, end)
    if (tag === 10) name = text(cursor, delimited(cursor, end))
    else if (tag === 18) value = anyValue(cursor, delimited(cursor, end), depth + 1)
    else skip(cursor, end, tag)
  }
  return { name, value }
}

function beyond(cursor: Cursor, end: number): undefined {
  cursor.at = end
  return undefined
}
