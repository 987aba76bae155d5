/** OTLP for tests: requests in JSON, the same in protobuf by an independent encoder, and random ones. */
import fc from 'fast-check'
import protobuf from 'protobufjs'
import { isRefused, type Refused } from '../../server/otlp/model.ts'

/** The messages of OTLP 1.9 that the receiver reads, as its .proto files declare them. */
const schema = `syntax = "proto3";
message AnyValue { oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3;
  double double_value = 4; ArrayValue array_value = 5; KeyValueList kvlist_value = 6; bytes bytes_value = 7; } }
message ArrayValue { repeated AnyValue values = 1; }
message KeyValueList { repeated KeyValue values = 1; }
message KeyValue { string key = 1; AnyValue value = 2; }
message InstrumentationScope { string name = 1; string version = 2; repeated KeyValue attributes = 3;
  uint32 dropped_attributes_count = 4; }
message Resource { repeated KeyValue attributes = 1; uint32 dropped_attributes_count = 2; }
message Traces { repeated ResourceSpans resource_spans = 1; }
message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; string schema_url = 3; }
message ScopeSpans { InstrumentationScope scope = 1; repeated Span spans = 2; string schema_url = 3; }
message Span { bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; bytes parent_span_id = 4;
  fixed32 flags = 16; string name = 5; int32 kind = 6; fixed64 start_time_unix_nano = 7;
  fixed64 end_time_unix_nano = 8; repeated KeyValue attributes = 9; uint32 dropped_attributes_count = 10;
  repeated Event events = 11; uint32 dropped_events_count = 12; repeated Link links = 13;
  uint32 dropped_links_count = 14; Status status = 15; }
message Event { fixed64 time_unix_nano = 1; string name = 2; repeated KeyValue attributes = 3;
  uint32 dropped_attributes_count = 4; }
message Link { bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; repeated KeyValue attributes = 4;
  uint32 dropped_attributes_count = 5; fixed32 flags = 6; }
message Status { string message = 2; int32 code = 3; }
message Logs { repeated ResourceLogs resource_logs = 1; }
message ResourceLogs { Resource resource = 1; repeated ScopeLogs scope_logs = 2; string schema_url = 3; }
message ScopeLogs { InstrumentationScope scope = 1; repeated LogRecord log_records = 2; string schema_url = 3; }
message LogRecord { fixed64 time_unix_nano = 1; fixed64 observed_time_unix_nano = 11; int32 severity_number = 2;
  string severity_text = 3; AnyValue body = 5; repeated KeyValue attributes = 6;
  uint32 dropped_attributes_count = 7; fixed32 flags = 8; bytes trace_id = 9; bytes span_id = 10;
  string event_name = 12; }
message Metrics { repeated ResourceMetrics resource_metrics = 1; }
message ResourceMetrics { Resource resource = 1; repeated ScopeMetrics scope_metrics = 2; }
message ScopeMetrics { InstrumentationScope scope = 1; repeated Metric metrics = 2; }
message Metric { string name = 1; Points gauge = 5; Points sum = 7; Points histogram = 9; }
message Points { repeated Point data_points = 1; }
message Point { fixed64 time_unix_nano = 3; double as_double = 4; }
message Answer { PartialSuccess partial_success = 1; }
message PartialSuccess { int64 rejected = 1; string error_message = 2; }
message RpcStatus { int32 code = 1; string message = 2; }
`
const { root } = protobuf.parse(schema)

export type Json = { [field: string]: unknown }

const ids = new Set(['traceId', 'spanId', 'parentSpanId'])

/** Ids are hex in JSON; protobufjs reads bytes from base64. */
function withBytes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withBytes)
  if (typeof value !== 'object' || value === null) return value
  const copy: Json = {}
  for (const [name, inner] of Object.entries(value))
    copy[name] = ids.has(name) ? Buffer.from(String(inner), 'hex').toString('base64') : withBytes(inner)
  return copy
}

/** The bytes of a request in its JSON form. */
export function encoded(type: 'Traces' | 'Logs' | 'Metrics', request: Json): Uint8Array<ArrayBuffer> {
  const message = root.lookupType(type)
  return new Uint8Array(message.encode(message.fromObject(withBytes(request) as Json)).finish())
}

/** A message as protobufjs reads it, 64-bit numbers as text and bytes as base64. */
export function decoded(type: string, bytes: Uint8Array): Json {
  const message = root.lookupType(type)
  return message.toObject(message.decode(bytes), { longs: String, bytes: String })
}

/** `{ a: 'b', n: 1 }` as attributes. */
export function attributes(values: { [name: string]: unknown }): Json[] {
  return Object.entries(values).map(([key, value]) => ({ key, value: anyValue(value) }))
}

function anyValue(value: unknown): Json {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  if (Array.isArray(value)) return { arrayValue: { values: value.map(anyValue) } }
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value }
}

export interface TestSpan {
  traceId?: string
  spanId?: string
  parentSpanId?: string
  name?: string
  startTimeUnixNano?: string
  endTimeUnixNano?: string
  attributes?: { [name: string]: unknown }
  status?: Json
  events?: Json[]
}

const spanDefaults = {
  spanId: 'eee19b7ec3c1b174',
  name: 'execute_tool search',
  kind: 1,
  startTimeUnixNano: '1795420800000000000', // 2026-11-23T08:00:00Z
  endTimeUnixNano: '1795420800250000000',
}

/** A request with these spans of one service, which is one trace unless they say otherwise. */
export function tracesRequest(spans: TestSpan[], service = 'shop', scope = 'test'): Json {
  const list = spans.map((span) => ({
    ...spanDefaults,
    traceId: Bun.SHA256.hash(service, 'hex').slice(0, 32),
    ...span,
    attributes: attributes(span.attributes ?? {}),
  }))
  const resource = { attributes: attributes({ 'service.name': service }) }
  return { resourceSpans: [{ resource, scopeSpans: [{ scope: { name: scope }, spans: list }] }] }
}

/** As many calls of a tool, each a span of its own. */
export function toolSpans(count: number, attributes: { [name: string]: unknown } = {}): TestSpan[] {
  const call = { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'search', ...attributes }
  return Array.from({ length: count }, (_, n) => ({
    spanId: (n + 1).toString(16).padStart(16, '0'),
    attributes: call,
  }))
}

const text = fc.string({ unit: 'grapheme', maxLength: 12 })
const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((octets) => Buffer.from(octets).toString('hex'))
const uint64 = fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }).map(String)
const int64 = fc.bigInt({ min: -(1n << 63n), max: (1n << 63n) - 1n }).map(String)
/** Without -0, which JSON.stringify writes as 0. */
const double = fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0)
const uint32 = fc.integer({ min: 0, max: 2 ** 31 - 1 })

const { value } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.record({ stringValue: text }),
    fc.record({ boolValue: fc.boolean() }),
    fc.record({ intValue: int64 }),
    fc.record({ doubleValue: double }),
    fc.record({ bytesValue: fc.base64String({ maxLength: 12 }) }),
    fc.record({ arrayValue: fc.record({ values: fc.array(tie('value'), { maxLength: 3 }) }) }),
    fc.record({
      kvlistValue: fc.record({
        values: fc.array(fc.record({ key: text, value: tie('value') }), { maxLength: 3 }),
      }),
    }),
  ),
}))

const list = fc.array(fc.record({ key: text, value }, { requiredKeys: ['key'] }), { maxLength: 4 })
const resource = fc.record({ attributes: list })
const scope = fc.record({ name: text, version: text })
const optional = { requiredKeys: [] as never[] }

const span = fc.record(
  {
    traceId: hex(16),
    spanId: hex(8),
    parentSpanId: hex(8),
    traceState: text,
    name: text,
    kind: fc.integer({ min: -2, max: 9 }),
    startTimeUnixNano: uint64,
    endTimeUnixNano: uint64,
    attributes: list,
    droppedAttributesCount: uint32,
    flags: uint32,
    droppedEventsCount: uint32,
    events: fc.array(fc.record({ timeUnixNano: uint64, name: text, attributes: list }, optional), {
      maxLength: 2,
    }),
    links: fc.array(fc.record({ traceId: hex(16), spanId: hex(8), attributes: list }), { maxLength: 1 }),
    status: fc.record({ message: text, code: fc.integer({ min: 0, max: 3 }) }, optional),
  },
  optional,
)

const logRecord = fc.record(
  {
    timeUnixNano: uint64,
    observedTimeUnixNano: uint64,
    severityText: text,
    body: value,
    attributes: list,
    droppedAttributesCount: uint32,
    flags: uint32,
    eventName: text,
    traceId: hex(16),
    spanId: hex(8),
  },
  optional,
)

const shortList = <T>(item: fc.Arbitrary<T>) => fc.array(item, { maxLength: 3 })

/** Random requests in their JSON form. */
export const anyTraces: fc.Arbitrary<Json> = fc.record({
  resourceSpans: shortList(
    fc.record({ resource, scopeSpans: shortList(fc.record({ scope, spans: shortList(span) })) }),
  ),
})
export const anyLogs: fc.Arbitrary<Json> = fc.record({
  resourceLogs: shortList(
    fc.record({ resource, scopeLogs: shortList(fc.record({ scope, logRecords: shortList(logRecord) })) }),
  ),
})

/** The items of a request, of which none may be refused. */
export function readItems<Item>(steps: Iterable<Item | Refused | null>): Item[] {
  return [...steps]
    .filter((step): step is Item | Refused => step !== null)
    .map((item) => {
      if (isRefused(item)) throw new Error(`an item was refused: it ${item.message}`)
      return item
    })
}
