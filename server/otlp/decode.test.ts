/** Both forms of OTLP: values that need care, limits, and malformed input, which is a 400. */
import { describe, expect, test } from 'bun:test'
import { AppError } from '../errors.ts'
import { encoded, readItems, tracesRequest, type Json } from '../../tests/support/otlp.ts'
import { jsonItems, jsonLists, readMetric as jsonMetric, readSpan as jsonSpan } from './json.ts'
import { isRefused, partsMax, valueDepthMax } from './model.ts'
import { protobufItems, readMetric, readSpan } from './protobuf.ts'

const list = (value: unknown): Json[] => (value ?? []) as Json[]
const object = (value: unknown): Json => (value ?? {}) as Json
const bytesOf = (request: Json): Uint8Array => Buffer.from(JSON.stringify(request))

const decodeSpan = (request: Json) => readItems(protobufItems(encoded('Traces', request), readSpan))[0]!
const oneOfJson = (text: string) => readItems(jsonItems(Buffer.from(text), jsonLists.traces, jsonSpan))[0]!

describe('values', () => {
  test('what no JSON number holds is text, and NUL and broken characters are replaced', () => {
    const request = tracesRequest([{}])
    const span = list(object(list(object(list(request['resourceSpans'])[0])['scopeSpans'])[0])['spans'])[0]!
    const values = [
      { doubleValue: Number.NaN },
      { doubleValue: Number.NEGATIVE_INFINITY },
      { intValue: '-9223372036854775808' },
      { stringValue: 'a\0b' },
    ]
    span['attributes'] = values.map((value, n) => ({ key: `a${n}`, value }))
    expect([...decodeSpan(request).attributes.values.values()]).toEqual([
      'NaN',
      '-Infinity',
      '-9223372036854775808',
      'a\ufffdb',
    ])
    // A text that its sender cut inside a character.
    const bytes = encoded('Traces', tracesRequest([{ name: 'half é' }]))
    bytes[Buffer.from(bytes).indexOf('é') + 1] = 0x20
    expect(readItems(protobufItems(bytes, readSpan))[0]!.name).toBe('half \ufffd ')
  })

  test('a value nested too deeply is dropped and counted', () => {
    const nested = (depth: number): unknown => (depth === 0 ? 1 : [nested(depth - 1)])
    const spans = [{ attributes: { ok: nested(valueDepthMax), deep: nested(valueDepthMax + 1) } }]
    for (const span of [decodeSpan(tracesRequest(spans)), oneOfJson(JSON.stringify(tracesRequest(spans)))])
      expect([[...span.attributes.values.keys()], span.attributes.dropped]).toEqual([['ok'], 1])
  })

  test('more than 1,000 attributes are counted as dropped', () => {
    const manyAttributes = Object.fromEntries(Array.from({ length: 1_005 }, (_, n) => [`a${n}`, n]))
    expect(decodeSpan(tracesRequest([{ attributes: manyAttributes }])).attributes.dropped).toBe(5)
  })

  test('JSON: ids of either case, 64-bit numbers without quotes, unknown fields and null', () => {
    const span =
      '{"traceId":"5B8EFFF798038103D269B633813FC60C","spanId":"EEE19b7ec3c1b174","parentSpanId":null,' +
      '"startTimeUnixNano":1795420800000000123,"futureField":{"a":[1]},"attributes":[{"key":"n","value":' +
      '{"intValue":9007199254740993}},{"key":"none"},{"key":"double","value":{"doubleValue":1e300}}]}'
    const text = `{"other":1,"resourceSpans":[{"scopeSpans":[{"spans":[${span}]}],"resource":{"attributes":null}}]}`
    const read = oneOfJson(text)
    expect(read.traceId + read.spanId + read.parentSpanId).toBe(
      '5b8efff798038103d269b633813fc60ceee19b7ec3c1b174',
    )
    expect(read.start).toEqual({ ms: 1_795_420_800_000, ns: 123 })
    expect(Object.fromEntries(read.attributes.values)).toEqual({
      n: '9007199254740993',
      none: null,
      double: 1e300,
    })
  })

  test('fields may come in any order: the resource after its spans', () => {
    const whole = tracesRequest([{}], 'late')
    const ofResource = object(list(whole['resourceSpans'])[0])
    const scopeBytes = encoded('Traces', { resourceSpans: [{ scopeSpans: ofResource['scopeSpans'] }] })
    const resourceBytes = encoded('Traces', { resourceSpans: [{ resource: ofResource['resource'] }] })
    // Both hold one message in field 1 with a length of at most two bytes; their contents are joined.
    const content = (bytes: Uint8Array) => bytes.subarray(bytes[1]! < 128 ? 2 : 3)
    const joined = Buffer.concat([content(scopeBytes), content(resourceBytes)])
    const bytes = Buffer.concat([Buffer.from([10, (joined.length & 127) | 128, joined.length >> 7]), joined])
    const [span] = readItems(protobufItems(bytes, readSpan))
    expect(span!.origin.resource.values.get('service.name')).toBe('late')
  })

  test('data points of every kind are counted', () => {
    const points = (count: number) => ({ dataPoints: Array.from({ length: count }, () => ({ asDouble: 1 })) })
    const metrics = [{ name: 'a', gauge: points(2) }, { name: 'b', sum: points(3) }, { name: 'c' }]
    const request = { resourceMetrics: [{ scopeMetrics: [{ metrics }] }] }
    expect(readItems(protobufItems(encoded('Metrics', request), readMetric))).toEqual([2, 3, 0])
    expect(readItems(jsonItems(bytesOf(request), jsonLists.metrics, jsonMetric))).toEqual([2, 3, 0])
  })
})

describe('malformed requests', () => {
  const failure = (read: () => unknown): string => {
    try {
      read()
      return 'accepted'
    } catch (error) {
      return error instanceof AppError ? `${error.code} ${error.message}` : String(error)
    }
  }

  test('every truncation of a request is refused or has fewer items', () => {
    const bytes = encoded('Traces', tracesRequest([{ attributes: { a: 'b', n: [1, 2.5] } }]))
    for (let length = 1; length < bytes.length; length++)
      expect(failure(() => readItems(protobufItems(bytes.subarray(0, length), readSpan)))).toStartWith(
        'invalid_body',
      )
    const text = JSON.stringify(tracesRequest([{ attributes: { a: 'b', n: [1, 2.5] } }]))
    for (let length = 0; length < text.length; length++)
      expect(failure(() => oneOfJson(text.slice(0, length)))).toStartWith('invalid_body')
  })

  test.each([
    ['a field without a number', [0, 0]],
    ['a field number beyond 32 bits', [0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]],
    ['a length beyond the end', [10, 0xff, 0xff, 0xff, 0xff, 0x0f]],
    ['a number of eleven bytes', [8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]],
    ['the end of a group that never began', [12]],
    ['a wire type that does not exist', [15]],
    ['groups nested 1,000 deep', Array.from({ length: 1_000 }, () => 19)],
  ])('%s', (_, bytes) => {
    expect(failure(() => readItems(protobufItems(Uint8Array.from(bytes), readSpan)))).toStartWith(
      'invalid_body',
    )
  })

  test.each([
    '',
    '[]',
    'null',
    '{',
    '{"resourceSpans":{}}',
    '{} {}',
    '{"a":1,}',
    '{a:1}',
    '{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"a",}]}]}]}',
    '{"resourceSpans":[{"scopeSpans":[{"spans":[]}] "x"}]}',
  ])('%s', (text) => {
    expect(failure(() => oneOfJson(text))).toStartWith('invalid_body')
  })

  test('unknown fields of every wire type are passed over', () => {
    const unknown = [0xf8, 1, 5, 0xf9, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0xfa, 1, 2, 7, 7, 0xfd, 1, 1, 2, 3, 4]
    const group = [0xfb, 1, ...unknown, 0xfc, 1]
    const bytes = Buffer.concat([
      Uint8Array.from([...unknown, ...group]),
      encoded('Traces', tracesRequest([{}])),
    ])
    expect(readItems(protobufItems(bytes, readSpan))).toHaveLength(1)
  })

  /** What becomes of each item in both forms: a span, or why it was refused. */
  function fates(request: Json): string[] {
    const forms = [
      protobufItems(encoded('Traces', request), readSpan),
      jsonItems(bytesOf(request), jsonLists.traces, jsonSpan),
    ].map((items) =>
      [...items].flatMap((item) => (item === null ? [] : [isRefused(item) ? item.message : 'span'])),
    )
    expect(forms[0]).toEqual(forms[1]!)
    return forms[0]!
  }

  test('an item above 4 MiB is refused undecoded, and the others are read', () => {
    const large = tracesRequest([{ name: 'x'.repeat(4 * 1024 * 1024) }, {}])
    expect(fates(large)).toEqual(['must have at most 4194304 bytes', 'span'])
  })

  test('an item of more than 50,000 fields is refused, and the others are read', () => {
    const createAttributes = (count: number) => ({
      attributes: { list: Array.from({ length: count }, () => 1) },
    })
    expect(fates(tracesRequest([createAttributes(60_000), {}, createAttributes(9_000)]))).toEqual([
      'must have at most 50000 fields',
      'span',
      'span',
    ])
  })

  test('the items of a resource or scope above 64 KiB are refused, and the others are read', () => {
    const items = tracesRequest([{}, {}])
    const [part] = list(items['resourceSpans'])
    const attribute = { key: 'service.name', value: { stringValue: 'x'.repeat(70_000) } }
    const scoped = list(part!['scopeSpans']).map((scopeSpan) => ({
      ...scopeSpan,
      scope: { name: 'x'.repeat(70_000) },
    }))
    const parts = [{ ...part, resource: { attributes: [attribute] } }, { ...part, scopeSpans: scoped }, part]
    const refusal = 'must have a resource and a scope of at most 65536 bytes and 1000 levels'
    expect(fates({ resourceSpans: parts })).toEqual([refusal, refusal, refusal, refusal, 'span', 'span'])
  })

  test.each([
    ['spans', [{ scopeSpans: [{ spans: Array.from({ length: partsMax }, () => ({})) }] }]],
    ['scopes', [{ scopeSpans: Array.from({ length: partsMax }, () => ({})) }]],
    ['resources', Array.from({ length: partsMax + 1 }, () => ({}))],
  ])('a request of more than 250,000 %s is refused as a whole', (_, resourceSpans) => {
    const request = { resourceSpans } as Json
    const whole = 'payload_too_large'
    expect(failure(() => readItems(protobufItems(encoded('Traces', request), readSpan)))).toStartWith(whole)
    expect(failure(() => readItems(jsonItems(bytesOf(request), jsonLists.traces, jsonSpan)))).toStartWith(
      whole,
    )
  })

  test('between two pauses a decoder passes a bounded part of a body, whatever it is made of', () => {
    const pair = (first: number, second: number) => Buffer.alloc(2_000_000, Uint8Array.from([first, second]))
    const bodies = [pair(24, 0), pair(26, 0)]
    for (const body of bodies) expect([...protobufItems(body, readSpan)].length).toBeGreaterThan(90)
    const texts = [
      `{"a":"${'\\"'.repeat(1_000_000)}"}`,
      `{"a":[${'[],'.repeat(1_000_000)}0]}`,
      `{${`"${'a'.repeat(20)}":0,`.repeat(100_000)}"":0}`,
      `${' '.repeat(3_000_000)}{}`,
      `{"a":${'1'.repeat(3_000_000)}}`,
    ]
    for (const text of texts)
      expect([...jsonItems(Buffer.from(text), jsonLists.traces, jsonSpan)].length).toBeGreaterThan(12)
  })
})
