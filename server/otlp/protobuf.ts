/** Reads OTLP requests in protobuf, one item at a time. Only the fields that the receiver needs are decoded. */
import {
  addAttribute,
  itemBytesMax,
  noAttributes,
  spanEventsMax,
  valueDepthMax,
  type Attributes,
  type AttributeValue,
  type Items,
  type LogRecord,
  type Origin,
  type Span,
  type SpanEvent,
} from './model.ts'
import {
  base64,
  count,
  cursorOf,
  delimited,
  double,
  endItem,
  fixed64,
  hex,
  int32,
  int64,
  isTrue,
  lookAhead,
  messages,
  nameText,
  recurringHex,
  skip,
  startItem,
  tagAt,
  text,
  type Cursor,
  type LastId,
} from './wire.ts'

type ReadItem<Item> = (cursor: Cursor, end: number, origin: Origin) => Item

/** The items of a request: messages 1 (by resource), 2 (by scope), 2 (items), the same for all signals. */
export function* protobufItems<Item>(body: Uint8Array, read: ReadItem<Item>): Items<Item> {
  const cursor = cursorOf(body)
  for (const resourceEnd of messages(cursor, body.length, 1)) {
    const resource = noAttributes()
    // The fields may come in any order, so what surrounds the items is read first.
    for (const end of lookAhead(cursor, resourceEnd, 1))
      for (const to of messages(cursor, end, 1)) keyValue(cursor, to, resource)
    for (const scopeEnd of messages(cursor, resourceEnd, 2)) {
      let scope = ''
      for (const end of lookAhead(cursor, scopeEnd, 1)) scope = textField(cursor, end, 1) ?? scope
      const origin = { resource, scope }
      for (const end of messages(cursor, scopeEnd, 2)) {
        if (end - cursor.at > itemBytesMax) yield null
        else {
          startItem(cursor, end)
          const item = read(cursor, end, origin)
          endItem(cursor)
          yield item
        }
      }
    }
  }
}

function textField(cursor: Cursor, end: number, field: number): string | null {
  let found: string | null = null
  for (const to of messages(cursor, end, field)) found = text(cursor, to)
  return found
}

const lastTrace: LastId = { bytes: new Uint8Array(0), text: '' }
const lastParent: LastId = { bytes: new Uint8Array(0), text: '' }

export function readSpan(cursor: Cursor, end: number, origin: Origin): Span {
  // Written out, because spreading costs more than decoding.
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
    if (tag === 10) span.traceId = recurringHex(cursor, end, lastTrace)
    else if (tag === 18) span.spanId = hex(cursor, end)
    else if (tag === 34) span.parentSpanId = recurringHex(cursor, end, lastParent)
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

/** The value of a message that ends at `end`; undefined when it nests too deeply. */
function anyValue(cursor: Cursor, end: number, depth: number): AttributeValue | undefined {
  let value: AttributeValue | undefined = null
  while (cursor.at < end) {
    const tag = tagAt(cursor, end)
    if (tag === 10) value = text(cursor, delimited(cursor, end))
    else if (tag === 16) value = isTrue(cursor, end)
    else if (tag === 24) value = int64(cursor, end)
    else if (tag === 33) value = double(cursor, end)
    else if (tag === 42) value = arrayValue(cursor, delimited(cursor, end), depth)
    else if (tag === 50) value = objectValue(cursor, delimited(cursor, end), depth)
    else if (tag === 58) value = base64(cursor, end)
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
