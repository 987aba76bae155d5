/**
 * `bun tests/fuzz/otlp-decoders.ts --full`: compares the decoders of OTLP in protobuf and in JSON with protobufjs, an
 * independent one, over a million random spans and log records.
 */
import { deepEquals } from 'bun'
import fc from 'fast-check'
import { jsonItems, jsonLists, readLog as jsonLog, readSpan as jsonSpan } from '../../server/otlp/json.ts'
import type { AttributeValue, Attributes, Instant, LogRecord, Span } from '../../server/otlp/model.ts'
import { protobufItems, readLog, readSpan } from '../../server/otlp/protobuf.ts'
import { anyLogs, anyTraces, decoded, encoded, readItems, type Json } from '../support/otlp.ts'
import { randomOf } from './otlp-mutations.ts'

const list = (value: unknown): Json[] => (value ?? []) as Json[]
const object = (value: unknown): Json => (value ?? {}) as Json
const bytesOf = (request: Json): Uint8Array => Buffer.from(JSON.stringify(request))

/** What protobufjs read, in the receiver's form. */
function expectedValue(value: unknown): AttributeValue {
  const [member = ['', null]] = Object.entries(object(value))
  const [kind, inner] = member
  if (kind === 'intValue') return Number.isSafeInteger(Number(inner)) ? Number(inner) : (inner as string)
  if (kind === 'arrayValue') return list(object(inner)['values']).map(expectedValue)
  if (kind === 'kvlistValue') {
    const entries = list(object(inner)['values']).map((entry) => [
      entry['key'] ?? '',
      expectedValue(entry['value']),
    ])
    return Object.fromEntries(entries)
  }
  return inner as AttributeValue
}

function expectedAttributes(from: Json): Attributes {
  const values = new Map<string, AttributeValue>()
  for (const { key = '', value } of list(from['attributes'])) values.set(key as string, expectedValue(value))
  return { values, dropped: Number(from['droppedAttributesCount'] ?? 0) }
}

function expectedInstant(nanoseconds: unknown): Instant | null {
  const value = BigInt((nanoseconds ?? '0') as string)
  return value === 0n ? null : { ms: Number(value / 1_000_000n), ns: Number(value % 1_000_000n) }
}

const idOf = (base64: unknown) => Buffer.from((base64 ?? '') as string, 'base64').toString('hex')

function expectedItems(bytes: Uint8Array, type: 'Traces' | 'Logs'): unknown[] {
  const [byResource, byScope, items] = jsonLists[type === 'Traces' ? 'traces' : 'logs']
  return list(decoded(type, bytes)[byResource]).flatMap((ofResource) => {
    const resource = { ...expectedAttributes(object(ofResource['resource'])), dropped: 0 }
    return list(ofResource[byScope]).flatMap((ofScope) => {
      const origin = { resource, scope: object(ofScope['scope'])['name'] ?? '' }
      return list(ofScope[items]).map((item) => ({
        origin,
        traceId: idOf(item['traceId']),
        spanId: idOf(item['spanId']),
        attributes: expectedAttributes(item),
        ...(type === 'Traces' ? spanParts(item) : logParts(item)),
      }))
    })
  })
}

function spanParts(item: Json): Json {
  const { message = '', code = 0 } = object(item['status'])
  return {
    parentSpanId: idOf(item['parentSpanId']),
    name: item['name'] ?? '',
    kind: item['kind'] ?? 0,
    start: expectedInstant(item['startTimeUnixNano']),
    end: expectedInstant(item['endTimeUnixNano']),
    events: list(item['events']).map((event) => ({
      time: expectedInstant(event['timeUnixNano']),
      name: event['name'] ?? '',
      attributes: expectedAttributes(event),
    })),
    status: code,
    message,
  }
}

function logParts(item: Json): Json {
  return {
    time: expectedInstant(item['timeUnixNano']),
    observed: expectedInstant(item['observedTimeUnixNano']),
    name: item['eventName'] ?? '',
    body: item['body'] === undefined ? null : expectedValue(item['body']),
  }
}

type Kind = 'Traces' | 'Logs'

/** Throws when a decoder reads a request as protobufjs does not. Returns the number of its items. */
function compare(kind: Kind, request: Json): number {
  const bytes = encoded(kind, request)
  const expected = expectedItems(bytes, kind)
  const [inProtobuf, inJson] =
    kind === 'Traces'
      ? [protobufItems(bytes, readSpan), jsonItems(bytesOf(request), jsonLists.traces, jsonSpan)]
      : [protobufItems(bytes, readLog), jsonItems(bytesOf(request), jsonLists.logs, jsonLog)]
  if (!deepEquals(readItems<Span | LogRecord>(inProtobuf), expected, true))
    throw new Error(`protobuf: ${JSON.stringify(request)}`)
  if (!deepEquals(readItems<Span | LogRecord>(inJson), expected, true))
    throw new Error(`JSON: ${JSON.stringify(request)}`)
  return expected.length
}

/** Compares this many random requests of each kind, and shrinks one that differs; returns the number of items. */
export function compareDecoders(requests: number): number {
  let items = 0
  for (const [kind, requestsOf] of [
    ['Traces', anyTraces],
    ['Logs', anyLogs],
  ] as const) {
    const property = fc.property(requestsOf, (request) => void (items += compare(kind, request)))
    fc.assert(property, { numRuns: requests })
  }
  return items
}

type Random = (limit: number) => number

/** The ends of the ranges of numbers, and texts with one to four bytes per character. */
const longs = ['0', '1', '127', '128', '4294967295', '4294967296', '9007199254740991', '9007199254740992']
const texts = ['', 'a', 'gen_ai.tool.name', 'é', '汉字', '👩‍👧', '"\\\n', '__proto__', 'x'.repeat(200)]
const doubles = [0, 1, 0.1, 1e300, 5e-324, -2.5, 2 ** 53]

/**
 * Random requests, made ten times as quickly as those of fast-check, which can shrink. Fields are absent one time in
 * eight.
 */
function requestMaker(random: Random) {
  const pick = <T>(values: readonly T[]): T => values[random(values.length)]!
  const listOf = <T>(max: number, make: () => T): T[] => Array.from({ length: random(max + 1) }, make)
  const hex = (bytes: number) =>
    Array.from({ length: bytes }, () => random(256).toString(16).padStart(2, '0')).join('')
  const text = () => (random(2) === 0 ? pick(texts) : `${random(2 ** 31).toString(36)}${pick(texts)}`)
  const uint64 = () => pick([...longs, '18446744073709551615', String(random(2 ** 31) * random(2 ** 20))])
  const int64 = () => pick([...longs, '-1', '-9223372036854775808', '9223372036854775807', `-${random(1e9)}`])
  const bytes = () => Buffer.from(hex(random(9)), 'hex').toString('base64')

  function value(depth: number): Json {
    const kind = random(depth === 0 ? 5 : 7)
    if (kind === 0) return { stringValue: text() }
    if (kind === 1) return { boolValue: random(2) === 0 }
    if (kind === 2) return { intValue: int64() }
    if (kind === 3) return { doubleValue: pick(doubles) }
    if (kind === 4) return { bytesValue: bytes() }
    if (kind === 5) return { arrayValue: { values: listOf(3, () => value(depth - 1)) } }
    return { kvlistValue: { values: listOf(3, () => ({ key: text(), value: value(depth - 1) })) } }
  }
  const attribute = () => (random(8) === 0 ? { key: text() } : { key: text(), value: value(3) })
  const someFields = (fields: Json): Json =>
    Object.fromEntries(Object.entries(fields).filter(() => random(8) > 0))

  const attributed = () => ({ attributes: listOf(4, attribute), droppedAttributesCount: random(2 ** 31) })
  const span = () =>
    someFields({
      traceId: hex(16),
      spanId: hex(8),
      parentSpanId: hex(8),
      traceState: text(),
      name: text(),
      kind: random(12) - 2,
      startTimeUnixNano: uint64(),
      endTimeUnixNano: uint64(),
      ...attributed(),
      flags: random(2 ** 31),
      droppedEventsCount: random(9),
      status: someFields({ message: text(), code: random(4) }),
      events: listOf(2, () => someFields({ timeUnixNano: uint64(), name: text(), ...attributed() })),
      links: listOf(1, () => ({ traceId: hex(16), spanId: hex(8), ...attributed() })),
    })
  const record = () =>
    someFields({
      timeUnixNano: uint64(),
      observedTimeUnixNano: uint64(),
      severityText: text(),
      body: value(3),
      ...attributed(),
      flags: random(2 ** 31),
      eventName: text(),
      traceId: hex(16),
      spanId: hex(8),
    })
  const around = (items: string, item: () => Json) => () => ({
    scope: { name: text(), version: text() },
    [items]: listOf(20, item),
  })
  const resource = () => ({ attributes: listOf(4, attribute) })
  return {
    Traces: (): Json => ({
      resourceSpans: listOf(2, () => ({
        resource: resource(),
        scopeSpans: listOf(2, around('spans', span)),
      })),
    }),
    Logs: (): Json => ({
      resourceLogs: listOf(2, () => ({
        resource: resource(),
        scopeLogs: listOf(2, around('logRecords', record)),
      })),
    }),
  }
}

/** Compares at least this many random items of each kind. */
export function compareQuickly(itemCount: number, seed: number): number {
  const make = requestMaker(randomOf(seed))
  let items = 0
  for (const kind of ['Traces', 'Logs'] as const)
    for (const until = items + itemCount; items < until;) items += compare(kind, make[kind]())
  return items
}

if (import.meta.main) {
  const itemCount = process.argv.includes('--full') ? 1_000_000 : 20_000
  const seed = Date.now() % 1_000_000
  const items = compareQuickly(itemCount / 2, seed)
  console.log(`seed ${seed}: ${items} random spans and log records: protobufjs, protobuf and JSON agree`)
}
