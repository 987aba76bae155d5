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
  bytes,
  double,
  enumValue,
  flag,
  id,
  instant,
  int64,
  isPresent,
  listIn,
  objectIn,
  text,
  uint32,
  WrongField,
  type Fields,
} from './json-fields.ts'
import {
  addAttribute,
  isRefused,
  itemBytesMax,
  itemDepthMax,
  itemFieldsMax,
  malformed,
  noAttributes,
  originBytesMax,
  originTooLarge,
  partCounter,
  refusedItem,
  spanEventsMax,
  tooDeep,
  tooLarge,
  tooManyFields,
  valueDepthMax,
  type Attributes,
  type AttributeValue,
  type Items,
  type LogRecord,
  type Origin,
  type Refused,
  type Span,
  type SpanEvent,
} from './model.ts'

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
  [byResource, byScope, items]: ListNames,
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
    if (!isOpen(source, resourceAt, signs.openBrace)) {
      yield refusedItem('must be an object', `each of ${byResource}`)
      continue
    }
    const { fields } = yield* fieldsAt(source, resourceAt.start, ['resource', byScope], countPart)
    const scopes = fields.get(byScope)
    if (!isList(source, scopes)) {
      yield refusedItem('must be a list', byScope)
      continue
    }
    const resource = readResource(source, fields.get('resource'))
    for (const scopeAt of elements(source, scopes)) {
      if (scopeAt === null) {
        yield null
        continue
      }
      countPart()
      yield null
      if (!isOpen(source, scopeAt, signs.openBrace)) {
        yield refusedItem('must be an object', `each of ${byScope}`)
        continue
      }
      const { fields: inScope } = yield* fieldsAt(source, scopeAt.start, ['scope', items], countPart)
      const list = inScope.get(items)
      if (!isList(source, list)) {
        yield refusedItem('must be a list', items)
        continue
      }
      const scope = isRefused(resource) ? resource : readScope(source, inScope.get('scope'))
      for (const itemAt of elements(source, list)) {
        if (itemAt === null) {
          yield null
          continue
        }
        countPart()
        yield readItem(source, itemAt, { resource, scope }, read)
      }
    }
  }
}

/** What a body is: of the signal, of events as `/v1/sdk/events` has them, `{}`, or anything else. */
export type BodyKind = 'signal' | 'events' | 'empty' | 'other'

/** Exporters begin with the list, so that almost no body is scanned for this. */
export function* bodyKind(body: Uint8Array, [byResource]: ListNames): Steps<BodyKind> {
  const source = Buffer.from(body.buffer, body.byteOffset, body.length)
  if (source.toString('latin1', 0, byResource.length + 3).startsWith(`{"${byResource}"`)) return 'signal'
  const start = yield* pastSpace(source, 0)
  const { fields, end } = yield* fieldsAt(source, start, [byResource, 'events'], partCounter())
  if (fields.has(byResource)) return 'signal'
  if (fields.has('events')) return 'events'
  const isEmpty = (yield* pastSpace(source, start + 1)) === end - 1
  return isEmpty ? 'empty' : 'other'
}

export type ListNames = readonly [resources: string, scopes: string, items: string]

function readResource(source: Buffer, slice: Slice | undefined): Attributes | Refused {
  if (isOver(slice)) return originTooLarge
  return orRefused(() => attributesOf(parsedObject(source, slice, 'resource'), 'resource.attributes'))
}

function readScope(source: Buffer, slice: Slice | undefined): string | Refused {
  if (isOver(slice)) return originTooLarge
  return orRefused(() => text(parsedObject(source, slice, 'scope')['name'], 'scope.name'))
}

function readItem<Item>(
  source: Buffer,
  slice: Slice,
  { resource, scope }: { resource: Attributes | Refused; scope: string | Refused },
  read: ReadItem<Item>,
): Item | Refused {
  if (isRefused(resource)) return resource
  if (isRefused(scope)) return scope
  const refusal = refusalOf(slice)
  if (refusal !== null) return refusal
  return orRefused(() => read(parsedObject(source, slice, ''), { resource, scope }))
}

function isOpen(source: Buffer, { start }: Slice, bracket: number): boolean {
  return source[start] === bracket
}

/** An absent list and null are empty ones. */
function isList(source: Buffer, slice: Slice | undefined): boolean {
  return slice === undefined || isNull(source, slice) || isOpen(source, slice, signs.openBracket)
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
  fieldNames: readonly string[],
  countPart: () => void,
): Steps<{ fields: Map<string, Slice>; end: number }> {
  const fields = new Map<string, Slice>()
  if (json[start] !== signs.openBrace) throw malformed('an object is missing')
  let offset = yield* pastSpace(json, start + 1)
  let pausedAt = offset
  while (json[offset] === signs.quote) {
    countPart() // no object around items has more than four fields
    if (offset - pausedAt > partBytes) {
      pausedAt = offset
      yield null
    }
    const name = quickSlice(json, offset) ?? (yield* longSlice(json, offset))
    const colon = hasSpace(json, name.end) ? yield* pastSpace(json, name.end) : name.end
    if (json[colon] !== signs.colon) throw malformed('a field has no value')
    const valueAt = hasSpace(json, colon + 1) ? yield* pastSpace(json, colon + 1) : colon + 1
    const value = quickSlice(json, valueAt) ?? (yield* longSlice(json, valueAt))
    const isWanted = fieldNames.find((fieldName) => isNamed(json, name, fieldName))
    if (isWanted !== undefined) fields.set(isWanted, value)
    offset = hasSpace(json, value.end) ? yield* pastSpace(json, value.end) : value.end
    if (json[offset] !== signs.comma) break
    offset = hasSpace(json, offset + 1) ? yield* pastSpace(json, offset + 1) : offset + 1
    if (json[offset] !== signs.quote) throw malformed('a field has no name')
  }
  if (json[offset] !== signs.closeBrace) throw malformed('an object is not closed')
  return { fields, end: offset + 1 }
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

function sliceOf(start: number, { at: end, members, depth }: Skip): Slice {
  if (end < 0) throw malformed('it is truncated')
  return { start, end: end, members, depth }
}

/** The elements of a list, with a pause (null) after each part of the text; none when the field is absent or null. */
function* elements(json: Buffer, list: Slice | undefined): Generator<Slice | null> {
  if (list === undefined || isNull(json, list)) return
  if (json[list.start] !== signs.openBracket) throw malformed('a list is missing')
  let offset = yield* pastSpace(json, list.start + 1)
  if (json[offset] === signs.closeBracket) return
  for (;;) {
    const slice = quickSlice(json, offset) ?? (yield* longSlice(json, offset))
    yield slice
    offset = hasSpace(json, slice.end) ? yield* pastSpace(json, slice.end) : slice.end
    if (json[offset] === signs.closeBracket) return
    if (json[offset] !== signs.comma) throw malformed('a list is not closed')
    offset = hasSpace(json, offset + 1) ? yield* pastSpace(json, offset + 1) : offset + 1
  }
}

function isNull(json: Buffer, { start, end }: Slice): boolean {
  return end - start === 4 && json.toString('latin1', start, end) === 'null'
}

/** Numbers that doubles may round. */
const longNumber = /[:[,]\s*-?\d[\d.]{15}/

/** The object at a place, `{}` for none. Integers that a double cannot hold become text, as 64-bit numbers are. */
function parsedObject(source: Buffer, slice: Slice | undefined, field: string): Fields {
  if (slice === undefined || isNull(source, slice)) return {}
  const jsonText = source.toString('utf8', slice.start, slice.end)
  let value: unknown
  try {
    value = longNumber.test(jsonText) ? JSON.parse(jsonText, longAsText) : JSON.parse(jsonText)
  } catch {
    throw malformed('it is not valid JSON')
  }
  return objectIn(value, field)
}

function longAsText(this: unknown, _name: string, value: unknown, context?: { source?: string }): unknown {
  const isLong = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)
  return isLong ? (context?.source ?? value) : value
}

/** What `read` returns; an item with a field of a wrong type is refused alone. */
function orRefused<Result>(read: () => Result): Result | Refused {
  try {
    return read()
  } catch (thrown) {
    if (thrown instanceof WrongField) return refusedItem(thrown.problem, thrown.field)
    throw thrown
  }
}

const spanKinds = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'].map(
  (name) => `SPAN_KIND_${name}`,
)
const statusCodes = ['UNSET', 'OK', 'ERROR'].map((name) => `STATUS_CODE_${name}`)

export function readSpan(fields: Fields, origin: Origin): Span {
  const status = objectIn(fields['status'], 'status')
  return {
    origin,
    traceId: id(fields['traceId'], 'traceId'),
    spanId: id(fields['spanId'], 'spanId'),
    parentSpanId: id(fields['parentSpanId'], 'parentSpanId'),
    name: text(fields['name'], 'name'),
    kind: enumValue(fields['kind'], 'kind', spanKinds),
    start: instant(fields['startTimeUnixNano'], 'startTimeUnixNano'),
    end: instant(fields['endTimeUnixNano'], 'endTimeUnixNano'),
    attributes: attributesOf(fields, 'attributes'),
    events: listIn(fields['events'], 'events').slice(0, spanEventsMax).map(readSpanEvent),
    status: enumValue(status['code'], 'status.code', statusCodes),
    message: text(status['message'], 'status.message'),
  }
}

function readSpanEvent(value: unknown, index: number): SpanEvent {
  try {
    const event = objectIn(value, '')
    return {
      time: instant(event['timeUnixNano'], 'timeUnixNano'),
      name: text(event['name'], 'name'),
      attributes: attributesOf(event, 'attributes'),
    }
  } catch (thrown) {
    throw thrown instanceof WrongField ? thrown.below(`events.${index}`) : thrown
  }
}

export function readLog(fields: Fields, origin: Origin): LogRecord {
  return {
    origin,
    traceId: id(fields['traceId'], 'traceId'),
    spanId: id(fields['spanId'], 'spanId'),
    time: instant(fields['timeUnixNano'], 'timeUnixNano'),
    observed: instant(fields['observedTimeUnixNano'], 'observedTimeUnixNano'),
    name: text(fields['eventName'], 'eventName'),
    body: readBody(fields['body']),
    attributes: attributesOf(fields, 'attributes'),
  }
}

function readBody(value: unknown): AttributeValue {
  try {
    return anyValue(value, 0) ?? null
  } catch (thrown) {
    throw thrown instanceof WrongField ? thrown.below('body') : thrown
  }
}

const metricKinds = ['gauge', 'sum', 'histogram', 'exponentialHistogram', 'summary']

/** The number of data points of a metric. */
export function readMetric(fields: Fields): number {
  return metricKinds.reduce((sum, kind) => {
    const points = objectIn(fields[kind], kind)['dataPoints']
    return sum + listIn(points, `${kind}.dataPoints`).length
  }, 0)
}

/** `field` is the path of the list, for errors. */
function attributesOf(holder: Fields, field: string): Attributes {
  const attributes = noAttributes()
  attributes.dropped = uint32(holder['droppedAttributesCount'], 'droppedAttributesCount')
  const list = listIn(holder['attributes'], field)
  let index = 0
  try {
    for (; index < list.length; index++) {
      const { key, value } = objectIn(list[index], '')
      addAttribute(attributes, text(key, 'key'), anyValue(value, 0))
    }
  } catch (thrown) {
    throw thrown instanceof WrongField ? thrown.below(`${field}.${index}`) : thrown
  }
  return attributes
}

/** undefined when it nests too deeply. Names of fields in errors are constants: this is read for every attribute. */
function anyValue(value: unknown, depth: number): AttributeValue | undefined {
  const fields = objectIn(value, 'value')
  if (isPresent(fields['stringValue'])) return text(fields['stringValue'], 'value.stringValue')
  if (isPresent(fields['boolValue'])) return flag(fields['boolValue'], 'value.boolValue')
  if (isPresent(fields['intValue'])) return int64(fields['intValue'], 'value.intValue')
  if (isPresent(fields['doubleValue'])) return double(fields['doubleValue'], 'value.doubleValue')
  if (isPresent(fields['bytesValue'])) return bytes(fields['bytesValue'], 'value.bytesValue')
  if (isPresent(fields['arrayValue'])) return arrayValue(fields['arrayValue'], depth)
  if (isPresent(fields['kvlistValue'])) return objectValue(fields['kvlistValue'], depth)
  return null
}

function arrayValue(value: unknown, depth: number): AttributeValue | undefined {
  const list = listIn(objectIn(value, 'value.arrayValue')['values'], 'value.arrayValue.values')
  if (depth >= valueDepthMax) return undefined
  const values: AttributeValue[] = []
  for (const element of list) {
    const inner = anyValue(element, depth + 1)
    if (inner === undefined) return undefined
    values.push(inner)
  }
  return values
}

function objectValue(value: unknown, depth: number): AttributeValue | undefined {
  const list = listIn(objectIn(value, 'value.kvlistValue')['values'], 'value.kvlistValue.values')
  if (depth >= valueDepthMax) return undefined
  const entries: [string, AttributeValue][] = []
  for (const element of list) {
    const entry = objectIn(element, 'value.kvlistValue.values')
    const inner = anyValue(entry['value'], depth + 1)
    if (inner === undefined) return undefined
    entries.push([text(entry['key'], 'value.kvlistValue.values.key'), inner])
  }
  return Object.fromEntries(entries)
}
