/**
 * `bun tests/fuzz/otlp-decoders.ts --full`: compares the decoders of OTLP in protobuf and in JSON with protobufjs, an
 * independent one, over a million random spans and log records.
 */
import { deepEquals } from 'bun'
import fc from 'fast-check'
import { jsonItems, jsonLists, readLog as jsonLog, readSpan as jsonSpan } from '../../server/otlp/json.ts'
import type { AttributeValue, Attributes, Instant } from '../../server/otlp/model.ts'
import { protobufItems, readLog, readSpan } from '../../server/otlp/protobuf.ts'
import { anyLogs, anyTraces, decoded, encoded, type Json } from '../support/otlp.ts'

const list = (value: unknown): Json[] => (value ?? []) as Json[]
const object = (value: unknown): Json => (value ?? {}) as Json
const bytesOf = (request: Json): Uint8Array => Buffer.from(JSON.stringify(request))

/** What protobufjs read, in the receiver's form. */
function expectedValue(value: unknown): AttributeValue {
  const [[kind, inner] = ['', null]] = Object.entries(object(value))
  if (kind === 'intValue') return Number.isSafeInteger(Number(inner)) ? Number(inner) : (inner as string)
  if (kind === 'arrayValue') return list(object(inner)['values']).map(expectedValue)
  if (kind === 'kvlistValue') {
    const entries = list(object(inner)['values']).map((one) => [
      one['key'] ?? '',
      expectedValue(one['value']),
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
  if (!deepEquals([...inProtobuf], expected, true)) throw new Error(`protobuf: ${JSON.stringify(request)}`)
  if (!deepEquals([...inJson], expected, true)) throw new Error(`JSON: ${JSON.stringify(request)}`)
  return expected.length
}

/** Compares this many random requests of each kind; returns the number of items. */
export function compareDecoders(requests: number, seed?: number): number {
  let items = 0
  for (const [kind, requestsOf] of [
    ['Traces', anyTraces],
    ['Logs', anyLogs],
  ] as const) {
    const property = fc.property(requestsOf, (request) => void (items += compare(kind, request)))
    fc.assert(property, { numRuns: requests, ...(seed === undefined ? {} : { seed }) })
  }
  return items
}

if (import.meta.main) {
  const wanted = process.argv.includes('--full') ? 1_000_000 : 20_000
  let items = 0
  for (let seed = Date.now() % 1_000_000; items < wanted; seed++) items += compareDecoders(500, seed)
  console.log(`${items} random spans and log records: protobufjs, protobuf and JSON agree`)
}
