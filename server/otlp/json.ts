/**
 * Reads OTLP requests in JSON, one item at a time. The brackets of the body are scanned first, so that only the text of
 * one item is parsed at once.
 */
import {
  hasSpace,
  longValue,
  partBytes,
  pastSpace,
  shortValue,
  signs,
  type Skip,
  type Steps,
} from '../text/json-steps.ts'
import {
  addAttribute,
  doubleValue,
  instantOf,
  itemBytesMax,
  itemDepthMax,
  itemFieldsMax,
  malformed,
  noAttributes,
  originBytesMax,
  originTooLarge,
  partCounter,
  spanEventsMax,
  storable,
  tooDeep,
  tooLarge,
  tooManyFields,
  valueDepthMax,
  type Attributes,
  type AttributeValue,
  type Instant,
  type Items,
  type LogRecord,
  type Origin,
  type Refused,
  type Span,
} from './model.ts'

type Fields = { [name: string]: unknown }
type ReadItem<Item> = (fields: Fields, origin: Origin) => Item

interface Slice {
  start: number
  end: number
  members: number // values in it, at most
  depth: number
}

/** The names of the three lists around the items of each signal. */
export const jsonLists = {
  traces: ['resourceSpans', 'scopeSpans', 'spans'],
  logs: ['resourceLogs', 'scopeLogs', 'logRecords'],
  metrics: ['resourceMetrics', 'scopeMetrics', 'metrics'],
} as const

export function* jsonItems<Item>(
  body: Uint8Array,
  [byResource, byScope, items]: readonly [string, string, string],
  read: ReadItem<Item>,
): Items<Item> {
  const source = Buffer.from(body.buffer, body.byteOffset, body.length)
  const countPart = partCounter()
  const whole = yield* fieldsAt(source, yield* pastSpace(source, 0), [byResource], countPart)
  if ((yield* pastSpace(source, whole.end)) !== source.length) throw malformed('it is not a JSON object')
  for (const resourceAt of elements(source, whole.fields.get(byResource))) {
    if (resourceAt === null) {
      yield null
      continue
    }
    countPart()
    yield null // 250,000 without an item would be one turn
    const { fields } = yield* fieldsAt(source, resourceAt.start, ['resource', byScope], countPart)
    const isResourceOver = isOver(fields.get('resource'))
    const resource = isResourceOver
      ? noAttributes()
      : attributesOf(parsedObject(source, fields.get('resource'))['attributes'])
    for (const scopeAt of elements(source, fields.get(byScope))) {
      if (scopeAt === null) {
        yield null
        continue
      }
      countPart()
      yield null
      const { fields: inScope } = yield* fieldsAt(source, scopeAt.start, ['scope', items], countPart)
      const isOriginOver = isResourceOver || isOver(inScope.get('scope'))
      const scope = isOriginOver ? '' : text(parsedObject(source, inScope.get('scope'))['name'])
      for (const itemAt of elements(source, inScope.get(items))) {
        if (itemAt === null) {
          yield null
          continue
        }
        countPart()
        const refusal = isOriginOver ? originTooLarge : refusalOf(itemAt)
        yield refusal ?? read(parsedObject(source, itemAt), { resource, scope })
      }
    }
  }
}

function isOver(origin: Slice | undefined): boolean {
  return origin !== undefined && (origin.end - origin.start > originBytesMax || origin.depth > itemDepthMax)
}

function refusalOf({ start, end, members, depth }: Slice): Refused | null {
  if (end - start > itemBytesMax) return tooLarge
  if (members > itemFieldsMax) return tooManyFields
  return depth > itemDepthMax ? tooDeep : null
}

/** The places of the wanted fields of the object at `start`, and where the object ends. The last of a name wins. */
function* fieldsAt(
  json: Buffer,
  start: number,
  wanted: readonly string[],
  countPart: () => void,
): Steps<{ fields: Map<string, Slice>; end: number }> {
  const fields = new Map<string, Slice>()
  if (json[start] !== signs.openBrace) throw malformed('an object is missing')
  let at = yield* pastSpace(json, start + 1)
  let pausedAt = at
  while (json[at] === signs.quote) {
    countPart() // no object around items has more than four fields
    if (at - pausedAt > partBytes) {
      pausedAt = at
      yield null
    }
    const name = quickSlice(json, at) ?? (yield* longSlice(json, at))
    const colon = hasSpace(json, name.end) ? yield* pastSpace(json, name.end) : name.end
    if (json[colon] !== signs.colon) throw malformed('a field has no value')
    const valueAt = hasSpace(json, colon + 1) ? yield* pastSpace(json, colon + 1) : colon + 1
    const value = quickSlice(json, valueAt) ?? (yield* longSlice(json, valueAt))
    const isWanted = wanted.find((each) => isNamed(json, name, each))
    if (isWanted !== undefined) fields.set(isWanted, value)
    at = hasSpace(json, value.end) ? yield* pastSpace(json, value.end) : value.end
    if (json[at] !== signs.comma) break
    at = hasSpace(json, at + 1) ? yield* pastSpace(json, at + 1) : at + 1
    if (json[at] !== signs.quote) throw malformed('a field has no name')
  }
  if (json[at] !== signs.closeBrace) throw malformed('an object is not closed')
  return { fields, end: at + 1 }
}

function isNamed(json: Buffer, { start, end }: Slice, name: string): boolean {
  return end - start === name.length + 2 && json.toString('latin1', start + 1, end - 1) === name
}

/** A value that is whole; null when it is long. Almost all are short, and this costs less than a generator. */
function quickSlice(json: Buffer, start: number): Slice | null {
  const skip = shortValue(json, start)
  return skip === null ? null : sliceOf(start, skip)
}

function* longSlice(json: Buffer, start: number): Steps<Slice> {
  return sliceOf(start, yield* longValue(json, start))
}

function sliceOf(start: number, { at, members, depth }: Skip): Slice {
  if (at < 0) throw malformed('it is truncated')
  return { start, end: at, members, depth }
}

/** The elements of a list, with a pause (null) after each part of the text; none when the field is absent or null. */
function* elements(json: Buffer, list: Slice | undefined): Generator<Slice | null> {
  if (list === undefined || isNull(json, list)) return
  if (json[list.start] !== signs.openBracket) throw malformed('a list is missing')
  let at = yield* pastSpace(json, list.start + 1)
  if (json[at] === signs.closeBracket) return
  for (;;) {
    const slice = quickSlice(json, at) ?? (yield* longSlice(json, at))
    yield slice
    at = hasSpace(json, slice.end) ? yield* pastSpace(json, slice.end) : slice.end
    if (json[at] === signs.closeBracket) return
    if (json[at] !== signs.comma) throw malformed('a list is not closed')
    at = hasSpace(json, at + 1) ? yield* pastSpace(json, at + 1) : at + 1
  }
}

function isNull(json: Buffer, { start, end }: Slice): boolean {
  return end - start === 4 && json.toString('latin1', start, end) === 'null'
}

/** Integers without a fraction that doubles may round. */
const longInteger = /[:[,]\s*-?\d{16}/

/** The object at a place, `{}` for none. Integers that a double cannot hold become text, as 64-bit numbers are. */
function parsedObject(source: Buffer, slice: Slice | undefined): Fields {
  if (slice === undefined || isNull(source, slice)) return {}
  const one = source.toString('utf8', slice.start, slice.end)
  try {
    const value: unknown = longInteger.test(one) ? JSON.parse(one, longAsText) : JSON.parse(one)
    if (isObject(value)) return value
  } catch {
    throw malformed('it is not valid JSON')
  }
  throw malformed('an object is missing')
}

function longAsText(this: unknown, _name: string, value: unknown, context?: { source?: string }): unknown {
  const isLong = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
  return isLong ? (context?.source ?? value) : value
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function readSpan(fields: Fields, origin: Origin): Span {
  const status = objectIn(fields['status'])
  return {
    origin,
    traceId: hex(fields['traceId']),
    spanId: hex(fields['spanId']),
    parentSpanId: hex(fields['parentSpanId']),
    name: text(fields['name']),
    kind: integer(fields['kind']),
    start: instant(fields['startTimeUnixNano']),
    end: instant(fields['endTimeUnixNano']),
    attributes: attributesOf(fields['attributes'], fields['droppedAttributesCount']),
    events: listIn(fields['events'])
      .slice(0, spanEventsMax)
      .map((one) => {
        const event = objectIn(one)
        return {
          time: instant(event['timeUnixNano']),
          name: text(event['name']),
          attributes: attributesOf(event['attributes'], event['droppedAttributesCount']),
        }
      }),
    status: integer(status['code']),
    message: text(status['message']),
  }
}

export function readLog(fields: Fields, origin: Origin): LogRecord {
  return {
    origin,
    traceId: hex(fields['traceId']),
    spanId: hex(fields['spanId']),
    time: instant(fields['timeUnixNano']),
    observed: instant(fields['observedTimeUnixNano']),
    name: text(fields['eventName']),
    body: anyValue(fields['body'], 0) ?? null,
    attributes: attributesOf(fields['attributes'], fields['droppedAttributesCount']),
  }
}

const metricKinds = ['gauge', 'sum', 'histogram', 'exponentialHistogram', 'summary']

/** The number of data points of a metric. */
export function readMetric(fields: Fields): number {
  return metricKinds.reduce((sum, kind) => sum + listIn(objectIn(fields[kind])['dataPoints']).length, 0)
}

function attributesOf(list: unknown, dropped?: unknown): Attributes {
  const attributes = noAttributes()
  attributes.dropped = integer(dropped)
  for (const one of listIn(list)) {
    const fields = objectIn(one)
    addAttribute(attributes, text(fields['key']), anyValue(fields['value'], 0))
  }
  return attributes
}

/** undefined when it nests too deeply. */
function anyValue(value: unknown, depth: number): AttributeValue | undefined {
  const fields = objectIn(value)
  if (isPresent(fields['stringValue'])) return text(fields['stringValue'])
  if (isPresent(fields['boolValue'])) return fields['boolValue'] === true
  if (isPresent(fields['intValue'])) return int64(fields['intValue'])
  if (isPresent(fields['doubleValue'])) return doubleValue(Number(fields['doubleValue']))
  // The same text for every spelling of the bytes, as protobuf gives it.
  if (isPresent(fields['bytesValue']))
    return Buffer.from(text(fields['bytesValue']), 'base64').toString('base64')
  if (isPresent(fields['arrayValue'])) return arrayValue(fields['arrayValue'], depth)
  if (isPresent(fields['kvlistValue'])) return objectValue(fields['kvlistValue'], depth)
  return null
}

function arrayValue(value: unknown, depth: number): AttributeValue | undefined {
  if (depth >= valueDepthMax) return undefined
  const values: AttributeValue[] = []
  for (const one of listIn(objectIn(value)['values'])) {
    const inner = anyValue(one, depth + 1)
    if (inner === undefined) return undefined
    values.push(inner)
  }
  return values
}

function objectValue(value: unknown, depth: number): AttributeValue | undefined {
  if (depth >= valueDepthMax) return undefined
  const entries: [string, AttributeValue][] = []
  for (const one of listIn(objectIn(value)['values'])) {
    const fields = objectIn(one)
    const inner = anyValue(fields['value'], depth + 1)
    if (inner === undefined) return undefined
    entries.push([text(fields['key']), inner])
  }
  return Object.fromEntries(entries)
}

// ---------------------------------------------------------------- fields, where null is an absent one

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null
}

function objectIn(value: unknown): Fields {
  if (!isPresent(value)) return {}
  if (!isObject(value)) throw malformed('an object is missing')
  return value
}

function listIn(value: unknown): unknown[] {
  if (!isPresent(value)) return []
  if (!Array.isArray(value)) throw malformed('a list is missing')
  return value
}

function text(value: unknown): string {
  if (!isPresent(value)) return ''
  if (typeof value !== 'string') throw malformed('a text is missing')
  return storable(value)
}

/** The JSON form of OTLP writes ids as hex digits. Anything else is no id, and fails the check of its length. */
function hex(value: unknown): string {
  const id = text(value)
  return /^[0-9a-fA-F]*$/.test(id) ? id.toLowerCase().slice(0, 64) : '?'
}

/** A 32-bit number such as the code of an enum. */
function integer(value: unknown): number {
  if (!isPresent(value)) return 0
  const number = typeof value === 'string' ? Number(value) : value
  if (typeof number !== 'number' || !Number.isInteger(number)) throw malformed('a number is missing')
  return number
}

const integerText = /^-?\d{1,20}$/

function int64(value: unknown): AttributeValue {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value
  if (typeof value !== 'string' || !integerText.test(value)) throw malformed('an integer is missing')
  return Number.isSafeInteger(Number(value)) ? Number(value) : value
}

function instant(value: unknown): Instant | null {
  if (!isPresent(value) || value === '') return null
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0)
    return instantOf(Math.floor(value / 4_294_967_296), value % 4_294_967_296)
  if (typeof value !== 'string' || !/^\d{1,20}$/.test(value)) throw malformed('a time is missing')
  const nanoseconds = BigInt(value)
  return instantOf(Number((nanoseconds >> 32n) & 0xffffffffn), Number(nanoseconds & 0xffffffffn))
}
