/** Columns of numbers are unpacked as they were packed, at every width. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { runs } from '../../../../tests/support/runs.ts'
import { inflateColumns, openColumns, packColumns, packSealed, raiseColumn } from './number-columns.ts'

const near = fc.tuple(
  fc.maxSafeInteger(),
  fc.constantFrom(0, 1, 255, 256, 65_535, 65_536, 2 ** 32 - 1, 2 ** 32),
)
const columnOf = (rows: number) =>
  fc.oneof(
    fc.array(fc.double({ noNaN: true }), { minLength: rows, maxLength: rows }),
    // Few values, and some that rise.
    fc.array(fc.constantFrom(7, 2 ** 40, 2 ** 32 + 5, 0.5), { minLength: rows, maxLength: rows }),
    fc
      .array(fc.integer({ min: -3, max: 900 }), { minLength: rows, maxLength: rows })
      .map((steps) =>
        steps.map((_, row) => steps.slice(0, row + 1).reduce((sum, step) => sum + step, 10 ** 12)),
      ),
    near.chain(([base, span]) => {
      const low = Math.min(base, Number.MAX_SAFE_INTEGER - span)
      return fc
        .array(fc.integer({ min: 0, max: span }), { minLength: rows, maxLength: rows })
        .map((steps) => {
          return steps.map((step) => low + step)
        })
    }),
  )

test.each([packColumns, packSealed])('any columns of any length come back, in any order: %p', (pack) => {
  const block = fc
    .integer({ min: 1, max: 256 })
    .chain((rows) => fc.array(columnOf(rows), { minLength: 1, maxLength: 5 }))
  fc.assert(
    fc.property(block, (columns) => {
      const rows = columns[0]!.length
      const blob = pack(
        columns.map((column) => Float64Array.from(column)),
        rows,
      )
      const packed = openColumns(inflateColumns(blob), columns.length)
      expect(packed.rows).toBe(rows)
      for (let index = columns.length - 1; index >= 0; index--) {
        const expected = columns[index]!.map((value) => value + 0)
        expect(expected.every((value) => packed.holds(index, value))).toBe(true)
        for (const otherValue of [expected[0]! + 1, expected[0]! - 256, 0, 7, -1, 2 ** 40])
          expect([otherValue, packed.holds(index, otherValue)]).toEqual([
            otherValue,
            expected.includes(otherValue),
          ])
        expect(expected.map((_, row) => packed.value(index, row) + 0)).toEqual(expected)
        expect(Array.from(packed.column(index)).map((value) => value + 0)).toEqual(expected)
      }
    }),
    { numRuns: runs(200) },
  )
})

test('a column that is infinite everywhere holds infinity', () => {
  const packed = openColumns(inflateColumns(packColumns([Float64Array.of(-Infinity, -Infinity)], 2)), 1)
  expect([packed.holds(0, -Infinity), packed.holds(0, Infinity), packed.holds(0, 0)]).toEqual([
    true,
    false,
    false,
  ])
})

test('only the first rows of a longer column are packed', () => {
  const packed = openColumns(inflateColumns(packColumns([Float64Array.of(7, 8, 1e300, 0)], 2)), 1)
  expect(Array.from(packed.column(0))).toEqual([7, 8])
})

test('a raised column has the greater of each value and the floor, and no other column changes', () => {
  const times = fc.integer({ min: 1, max: 200 }).chain((rows) => columnOf(rows))
  fc.assert(
    fc.property(times, fc.maxSafeInteger(), fc.nat(), (values, anywhere, pick) => {
      const rows = values.length
      const otherColumn = Float64Array.from(values, (_, row) => row * 300)
      const raw = inflateColumns(packColumns([otherColumn, Float64Array.from(values), otherColumn], rows))
      const floor = pick % 3 === 0 ? anywhere : values[pick % rows]!
      raiseColumn(raw, 1, floor)
      const raised = openColumns(raw, 3)
      const expected = values.map((value) => Math.max(value, floor) + 0)
      expect(Array.from(raised.column(1), (value) => value + 0)).toEqual(expected)
      expect([raised.column(0), raised.column(2)]).toEqual([otherColumn, otherColumn])
    }),
    { numRuns: 300 },
  )
})

test('sealed columns of times, durations and sessions take less room', () => {
  const rows = 256
  const times = Float64Array.from(
    { length: rows },
    (_, row) => 1.78e12 + row * 259 + (row % 50 === 0 ? -90_000 : 0),
  )
  const sessions = Float64Array.from(
    { length: rows },
    (_, row) => 2 ** 40 + Bun.hash.xxHash32(String(Bun.hash.xxHash32(String(row)) % 40)),
  )
  for (const column of [times, sessions])
    expect(packSealed([column], rows).length * 1.4).toBeLessThan(packColumns([column], rows).length)
})
