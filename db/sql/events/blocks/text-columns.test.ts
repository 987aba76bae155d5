/** Texts come back from columns byte by byte, whatever they contain and in whatever order they are read. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { runs } from '../../../../tests/support/runs.ts'
import { columnsMark, cutText, packTextColumns, valueMark, type Spilled } from './text-columns.ts'
import { openBodies, packBodies } from './texts.ts'

/** Null when the texts cannot be columns. */
function comeBack(texts: string[], spilled: Spilled[] = []): Uint8Array | null {
  const packed = packTextColumns(texts, spilled)
  if (packed === null) return null
  expect(packed[0]).toBe(columnsMark)
  const bodies = openBodies(packed, texts.length)
  for (let row = texts.length - 1; row >= 0; row--) {
    expect(bodies.text(row)).toBe(texts[row]!)
    if (row % 50 === 0) expect(openBodies(packed, texts.length).text(row)).toBe(texts[row]!)
  }
  const whole = openBodies(packed, texts.length).frame(0)
  expect([whole.firstRow, whole.bytes.toString()]).toEqual([0, texts.map((text) => `${text}\0`).join('')])
  const sorted = spilled.toSorted(
    ([row, field], [otherRow, otherField]) => row - otherRow || field - otherField,
  )
  expect(openBodies(packed, texts.length).spilled()).toEqual(sorted)
  return packed
}

const scalar = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.integer(),
  fc.double({ noNaN: true }),
  fc.boolean(),
  fc.constantFrom(
    null,
    '',
    '0',
    '-0',
    '007',
    '9007199254740993',
    'a "b" \\',
    '2026-06-01T00:00:00.000Z',
    1e21,
  ),
)
/** As ids that contain a counter. */
const counted = fc.tuple(fc.constantFrom('', 'user-', 'p0', '-', '漢'), fc.integer({ min: -9, max: 4_000 }))
const countedText = fc
  .tuple(counted, counted)
  .map(([[a, n], [b, m]]) => JSON.stringify({ a: `${a}${n}`, b: { c: `${b}${m}` } }))
const record = fc.dictionary(
  fc.constantFrom('a', 'b', 'c', 'a1', '"a":', '\\'),
  fc.oneof(scalar, fc.object()),
)
const anyText = fc.oneof(
  countedText,
  record.map((value) => JSON.stringify(value)),
  record.map((value) => JSON.stringify(value, null, 1)),
  fc.json(),
  fc.constant(''),
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('{"a":"', '"a":"b', '{"a":,"b":1}', '"', '\\"', '1-2', '{"a":1e5,"a":1E5}'),
)

test('any texts come back', () => {
  const texts = fc.array(anyText, { minLength: 1, maxLength: 120, size: 'max' })
  fc.assert(
    fc.property(texts, (textList) => void comeBack(textList)),
    { numRuns: runs(40) },
  )
})

test('texts of JSON with few names are columns', () => {
  const flat = fc.dictionary(fc.constantFrom('a', 'b', '"a":', '\\'), scalar)
  const texts = fc.array(
    flat.map((value) => JSON.stringify(value)),
    { minLength: 1, maxLength: 100 },
  )
  fc.assert(
    fc.property(texts, (textList) => comeBack(textList) !== null),
    { numRuns: runs(60), endOnFailure: true },
  )
})

test('columns of each kind come back', () => {
  const kinds: ((n: number) => unknown)[] = [
    () => 'constant',
    (n) => `coded ${n % 20}`,
    (n) => `plain 漢字 ${Math.imul(n, 0x9e3779b1)}`,
    (n) => String.fromCodePoint(0x1f600 + n), // beginnings that are half a character
    (n) => n * 7,
    (n) => -n * 3_000_000,
    (n) => Number.MAX_SAFE_INTEGER - n,
    (n) => Math.imul(n, 0x9e3779b1) / 7,
    (n) => new Date(1_780_000_000_000 + n * 259).toISOString(),
    (n) => new Date(-62_000_000_000_000 + n * 86_400_000).toISOString(),
    (n) => new Date(Math.imul(n, 0x9e3779b1) - 1).toISOString(), // also before 1970
    (n) => `2026-02-${String((n % 31) + 1).padStart(2, '0')}T00:00:00.000Z`, // some of them are no dates
    (n) => (n % 3 === 0 ? undefined : n),
    (n) => [n, { deep: n % 2 === 0 }, null],
    (n) => (n === 77 ? '' : 'most'),
  ]
  for (const kind of kinds) {
    const texts = Array.from({ length: 256 }, (_, n) => JSON.stringify({ value: kind(n), n: n % 5 }))
    const packed = comeBack(texts)
    expect(packed!.length).toBeLessThan(packBodies(texts, []).length)
  }
})

test('hashed texts come back, from the columns that hold them or from a list', () => {
  const texts = Array.from({ length: 100 }, (_, n) =>
    JSON.stringify(n % 2 === 0 ? { subject: `user "${n}"`, n } : { n }),
  )
  const even = texts.flatMap((_, row): Spilled[] => (row % 2 === 0 ? [[row, 9, `user "${row}"`]] : []))
  const namedBlock = comeBack(texts, even)!
  const listed = comeBack(texts, even.with(7, [14, 9, 'another text']))!
  expect(namedBlock.length).toBeLessThan(listed.length)
  comeBack(texts, even.slice(1))
  comeBack(texts, [...even, [0, 3, 'x'], [1, 3, 'y']])
  comeBack(texts, [[99, 2, 'only']])
})

test('texts that would not come back stay as they are', () => {
  expect(packTextColumns([`{"a":"${valueMark}"}`], [])).toBeNull()
  expect(packTextColumns(['a\0b'], [])).toBeNull()
  expect(packTextColumns(['{"a":"\ud800"}'], [])).toBeNull()
})

test('texts with too many values, or too many names, come back beside others', () => {
  const wide = JSON.stringify(Array.from({ length: 256 }, (_, n) => n))
  expect(comeBack(['{"a":1}', wide, '{"a":2}', wide])).not.toBeNull()
  const names = Array.from({ length: 256 }, (_, n) => JSON.stringify({ [`name ${n}`]: n, a: n }))
  expect(comeBack(names)).not.toBeNull()
})

test('what is near a row holds each string of its text', () => {
  const record = (n: number) => ({
    a: `/page/${n}`,
    at: new Date(n * 1_000).toISOString(),
    n: String(n * 3),
    c: 'same',
  })
  const texts = Array.from({ length: 200 }, (_, n) => JSON.stringify(record(n)))
  const bodies = openBodies(comeBack(texts)!, texts.length)
  const isNear = (n: number, part: string) =>
    bodies
      .near(n, part.toUpperCase())
      .some((bytes) => bytes.toString().toUpperCase().includes(part.toUpperCase()))
  for (const [n] of texts.entries())
    for (const value of Object.values(record(n)))
      for (const part of [value, value.slice(1), value.slice(0, -1), value.slice(n % 3, 7), value.at(-1)!])
        expect([n, part, isNear(n, part)]).toEqual([n, part, true])
  expect(isNear(0, '/page/200')).toBe(false)
})

test('a blob that ends early is rejected', () => {
  const packed = packTextColumns(['{"a":1}', '{"a":2}'], [])!
  expect(() => openBodies(packed.subarray(0, packed.length - 3), 2).text(0)).toThrow()
})

test('a text is cut at its values', () => {
  const { shape, values, columns } = cutText('{"a":"x\\"y","b":[1.5e+3,true],"a":{"b":null}}')
  expect(shape.replaceAll(valueMark, '_')).toBe('{"a":"_","b":[_,_],"a":{"b":_}}')
  expect(values).toEqual(['x\\"y', '1.5e+3', 'true', 'null'])
  expect(columns).toEqual(['"a"', '"b"', '"b"1', '"b"2'])
})

test('values that end in numbers come back, and take little room', () => {
  const lists = fc.array(countedText, { minLength: 1, maxLength: 256, size: 'max' })
  fc.assert(
    fc.property(lists, (textList) => void comeBack(textList)),
    { numRuns: runs(40) },
  )
  const pages = Array.from({ length: 256 }, (_, n) => JSON.stringify({ page: `/products/${(n * 7) % 120}` }))
  const otherTexts = pages.map((_, n) =>
    JSON.stringify({ page: Bun.hash.wyhash(String((n * 7) % 120)).toString(36) }),
  )
  expect(comeBack(pages)!.length * 2).toBeLessThan(comeBack(otherTexts)!.length)
})
