/** Values in the JSON form of protobuf: every spelling of a number is read exactly, and every other type is refused. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { jsonItems, jsonLists, readLog, readSpan } from './json.ts'
import { isRefused } from './model.ts'
import type { Span } from './model.ts'

const traceId = '5b8efff798038103d269b633813fc60c'
const spanId = 'eee19b7ec3c1b174'
const ids = `"traceId":"${traceId}","spanId":"${spanId}"`

/** What became of each span: itself, or why it was refused. */
function spansOf(...spans: string[]): (Span | string)[] {
  const text = `{"resourceSpans":[{"scopeSpans":[{"spans":[${spans.join(',')}]}]}]}`
  return [...jsonItems(Buffer.from(text), jsonLists.traces, readSpan)]
    .filter((item) => item !== null)
    .map((item) => (isRefused(item) ? `${item.path} ${item.message}`.trim() : item))
}

const spanOf = (fields: string) => spansOf(`{${ids},${fields}}`)[0]!
const valueOf = (value: string): unknown => {
  const span = spanOf(`"attributes":[{"key":"a","value":${value}}]`)
  return typeof span === 'string' ? span : span.attributes.values.get('a')
}

/** Texts of JSON numbers that are this integer: `1500`, `1500.0`, `15e2`, `1.5E+3`, `0.15e4`, `15000e-1`. */
const spellings = (integer: bigint) => {
  const sign = integer < 0n ? '-' : ''
  const digits = String(integer).replace('-', '')
  const zeros = /0*$/.exec(digits)![0].length
  return fc.oneof(
    fc.constant(sign + digits),
    fc.nat({ max: 6 }).map((count) => `${sign}${digits}.${'0'.repeat(count + 1)}`),
    fc.constant(`${sign}${digits.slice(0, digits.length - zeros) || '0'}e${zeros}`),
    fc.constant(`${sign}${digits}00E-2`),
    fc.nat({ max: digits.length - 1 }).map((cut) => {
      const whole = digits.slice(0, digits.length - cut)
      return cut === 0 ? sign + digits : `${sign}${whole}.${digits.slice(-cut)}e+${cut}`
    }),
    fc.constant(`${sign}0.${digits}e${digits.length}`),
  )
}

const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
const quotedOrNot = (text: string) => fc.constantFrom(text, `"${text}"`)

test('an integer of 64 bits is read exactly from every spelling, as a number and as text', () => {
  const spelled = int64.chain((integer) =>
    fc.tuple(fc.constant(integer), spellings(integer).chain(quotedOrNot)),
  )
  fc.assert(
    fc.property(spelled, ([integer, text]) => {
      const isSafe = Number.isSafeInteger(Number(integer))
      expect(valueOf(`{"intValue":${text}}`)).toBe(isSafe ? Number(integer) : String(integer))
    }),
  )
})

test('a time is read to the nanosecond from every spelling', () => {
  const spelled = fc
    .bigInt({ min: 1n, max: 2n ** 64n - 1n })
    .chain((nanoseconds) => fc.tuple(fc.constant(nanoseconds), spellings(nanoseconds).chain(quotedOrNot)))
  fc.assert(
    fc.property(spelled, ([nanoseconds, text]) => {
      const span = spanOf(`"startTimeUnixNano":${text}`)
      expect(typeof span === 'string' ? span : span.start).toEqual({
        ms: Number(nanoseconds / 1_000_000n),
        ns: Number(nanoseconds % 1_000_000n),
      })
    }),
  )
})

test('a double is read from every spelling, and NaN and infinities by name', () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), (number, isText) => {
      const json = JSON.stringify(number)
      expect(valueOf(`{"doubleValue":${isText ? `"${json}"` : json}}`)).toBe(number + 0)
    }),
  )
  for (const name of ['NaN', 'Infinity', '-Infinity']) expect(valueOf(`{"doubleValue":"${name}"}`)).toBe(name)
})

test('kinds and codes are read by name and by number', () => {
  const kinds = ['"SPAN_KIND_CLIENT"', '3', '"3"', '3.0', '3e0', 'null', '""', '77']
  expect(kinds.map((kind) => (spanOf(`"kind":${kind}`) as Span).kind)).toEqual([3, 3, 3, 3, 3, 0, 0, 77])
  const codes = ['"STATUS_CODE_ERROR"', '2', '"STATUS_CODE_UNSET"', 'null']
  expect(codes.map((code) => (spanOf(`"status":{"code":${code}}`) as Span).status)).toEqual([2, 2, 0, 0])
})

test('ids are hex of either case, or the base64 that protobuf libraries write', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 16, maxLength: 16 }),
      fc.uint8Array({ minLength: 8, maxLength: 8 }),
      (traceBytes, spanBytes) => {
        for (const spell of [
          (bytes: Uint8Array) => Buffer.from(bytes).toString('hex'),
          (bytes: Uint8Array) => Buffer.from(bytes).toString('hex').toUpperCase(),
          (bytes: Uint8Array) => Buffer.from(bytes).toString('base64'),
        ]) {
          const [span] = spansOf(`{"traceId":"${spell(traceBytes)}","spanId":"${spell(spanBytes)}"}`)
          expect(typeof span === 'string' ? span : [span!.traceId, span!.spanId]).toEqual([
            Buffer.from(traceBytes).toString('hex'),
            Buffer.from(spanBytes).toString('hex'),
          ])
        }
      },
    ),
  )
})

test('bytes are base64 of either alphabet, with padding or without', () => {
  for (const text of ['+/8=', '-_8=', '+/8', '-_8']) expect(valueOf(`{"bytesValue":"${text}"}`)).toBe('+/8=')
  expect(valueOf('{"bytesValue":"not base64"}')).toBe('attributes.0.value.bytesValue must be base64')
})

/** Fields of a span, each with values that its type does not allow. */
const wrong: [field: string, json: string, values: string[]][] = [
  ['name', '"name":?', ['1', 'true', '[]', '{}']],
  ['traceId', '"traceId":?', ['1', '[]', '{}']],
  [
    'kind',
    '"kind":?',
    ['true', '[3]', '{}', '1.5', '"x"', '"SPAN_KIND_NONE"', '3000000000', '" 3"', '"0x3"'],
  ],
  ['status', '"status":?', ['1', '"ERROR"', '[]']],
  ['status.code', '"status":{"code":?}', ['true', '[2]', '{}', '0.5', '"ERROR"']],
  ['startTimeUnixNano', '"startTimeUnixNano":?', ['-1', '0.5', 'true', '[1]', '{}', '"now"', '1e20', '" 1"']],
  ['droppedAttributesCount', '"droppedAttributesCount":?', ['-1', 'true', '"x"', '4294967296']],
  ['attributes', '"attributes":?', ['{}', '"x"', '1', 'true']],
  ['attributes.0', '"attributes":[?]', ['1', '"x"', '[]']],
  ['attributes.0.key', '"attributes":[{"key":?}]', ['1', '{}', '[]', 'false']],
  ['attributes.0.value', '"attributes":[{"value":?}]', ['1', '"x"', '[]', 'true']],
  ['events', '"events":?', ['{}', '"x"', '1']],
  ['events.1', '"events":[{},?]', ['1', '"x"', '[]']],
  ['events.1.timeUnixNano', '"events":[{},{"timeUnixNano":?}]', ['true', '"x"', '-1']],
  ['events.0.attributes.0.value', '"events":[{"attributes":[{"value":?}]}]', ['1', '"x"']],
  ...(
    [
      ['stringValue', ['1', 'true', '[]', '{}']],
      ['boolValue', ['1', '0', '"true"', '"false"', '[]', '{}']],
      [
        'intValue',
        [
          'true',
          '[1]',
          '{}',
          '1.5',
          '""',
          '"x"',
          '"NaN"',
          '9223372036854775808',
          '1e19',
          '" 1"',
          '"1 "',
          '"0x10"',
          '1e-1',
        ],
      ],
      [
        'doubleValue',
        ['true', '[1]', '{}', '""', '"x"', '"nan"', '"1e999"', '1e999', '" 1"', '"0x1"', '"+1"'],
      ],
      ['bytesValue', ['1', '[]', '{}', '"?"']],
      ['arrayValue', ['1', '[]', '"x"']],
      ['arrayValue.values', []],
      ['kvlistValue', ['1', '[]', '"x"']],
    ] as [string, string[]][]
  ).map(([kind, values]): [string, string, string[]] => [
    `attributes.0.value.${kind}`,
    `"attributes":[{"key":"a","value":{"${kind}":?}}]`,
    values,
  ]),
]

test('a value of another type refuses its span with the path, and no other span of the request', () => {
  for (const [field, json, values] of wrong) {
    for (const value of values) {
      const trace = json.includes('"traceId"') ? '' : `"traceId":"${traceId}",`
      const span = `{"spanId":"${spanId}",${trace}${json.replace('?', value)}}`
      const [spanBefore, refused, spanAfter] = spansOf(`{${ids}}`, span, `{${ids}}`)
      expect([span, typeof spanBefore, typeof spanAfter]).toEqual([span, 'object', 'object'])
      expect(`${span} ${String(refused)}`).toStartWith(`${span} ${field} must be `)
    }
  }
})

test('items, scopes and resources that are no objects refuse themselves', () => {
  const good = `{"scopeSpans":[{"spans":[{${ids}}]}]}`
  const read = (text: string) =>
    [...jsonItems(Buffer.from(`{"resourceSpans":[${text}]}`), jsonLists.traces, readSpan)]
      .filter((item) => item !== null)
      .map((item) => (isRefused(item) ? `${item.path} ${item.message}`.trim() : 'span'))
  expect(read(`1,${good}`)).toEqual(['each of resourceSpans must be an object', 'span'])
  expect(read(`null,${good}`)).toEqual(['each of resourceSpans must be an object', 'span'])
  expect(read(`{"scopeSpans":{}},${good}`)).toEqual(['scopeSpans must be a list', 'span'])
  expect(read(`{"scopeSpans":["x",{"spans":[{${ids}}]}]}`)).toEqual([
    'each of scopeSpans must be an object',
    'span',
  ])
  expect(read(`{"scopeSpans":[{"spans":"x"},{"spans":[{${ids}}]}]}`)).toEqual([
    'spans must be a list',
    'span',
  ])
  expect(read(`{"scopeSpans":[{"spans":[7,"x",[],true,{${ids}}]}]}`)).toEqual([
    ...Array.from({ length: 4 }, () => 'must be an object'),
    'span',
  ])
  expect(read(`{"resource":{"attributes":[{"key":1}]},"scopeSpans":[{"spans":[{},{}]}]},${good}`)).toEqual([
    ...Array.from({ length: 2 }, () => 'resource.attributes.0.key must be a string'),
    'span',
  ])
  expect(read(`{"scopeSpans":[{"scope":{"name":7},"spans":[{}]}]},${good}`)).toEqual([
    'scope.name must be a string',
    'span',
  ])
})

test('log records alike', () => {
  const records = [
    '{"body":{"intValue":"1e3"}}',
    '{"body":{"intValue":"x"}}',
    '{"body":"text"}',
    '{"eventName":5}',
  ]
  const text = `{"resourceLogs":[{"scopeLogs":[{"logRecords":[${records.join(',')}]}]}]}`
  const items = [...jsonItems(Buffer.from(text), jsonLists.logs, readLog)].filter((item) => item !== null)
  expect(items.map((item) => (isRefused(item) ? item.path : item.body))).toEqual([
    1_000,
    'body.value.intValue',
    'body.value',
    'eventName',
  ])
})
