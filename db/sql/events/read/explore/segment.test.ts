/** A segment measured by codes has the numbers that its events have one by one. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { runs } from '../../../../../tests/support/runs.ts'
import { segmentEvents } from '../../blocks/block.ts'
import { groupsOf, sumTally } from './groups.ts'
import type { CodedColumn } from './members.ts'
import { measureSegment, type CodedSegment } from './segment.ts'

const values = [null, 'a', '3', '40', '{"b":1}', '0']
const steps = 3
/** The first positions have events, and the others have none. */
const rows = 200

const column = fc
  .array(fc.nat({ max: values.length - 1 }), { minLength: rows, maxLength: rows })
  .map((rowCodes): CodedColumn => {
    const codes = new Uint16Array(segmentEvents)
    codes.set(rowCodes)
    const number = (code: number) => (/^\d+$/.test(values[code] ?? '') ? Number(values[code]) : null)
    return { codes, size: values.length, text: (code) => values[code]!, number }
  })
const filter = fc.record({
  column,
  values: fc.subarray(['a', '3', '40', 'none', '']).map((texts) => new Set(texts)),
})
const queries = fc.record({
  by: fc.option(column),
  measured: fc.option(
    fc.array(column, { minLength: 1, maxLength: 3 }).filter((columns) => columns.length !== 2),
  ),
  filters: fc.array(filter, { maxLength: 2 }),
  hours: fc.array(fc.nat({ max: 7 }), { minLength: rows, maxLength: rows }),
})
const stepOf = new Int32Array(65_536).fill(-1)
stepOf.set([0, 0, -1, 1, 2, 2])

function amountAt(measured: readonly CodedColumn[] | null, position: number): number | null {
  if (measured === null) return 1
  const [whole = null, ...parts] = measured.map(({ codes, number }) => number(codes[position]!))
  if (whole !== null || parts.every((part) => part === null)) return whole
  return parts.reduce<number>((sum, part) => sum + (part ?? 0), 0)
}

test('the sums of any columns, filters and hours', () => {
  fc.assert(
    fc.property(queries, ({ by: groupColumn, measured, filters, hours }) => {
      const offsets = new Uint16Array(segmentEvents).fill(0xffff)
      offsets.set(hours)
      const groups = groupsOf(steps)
      const tally = sumTally(steps)
      const expected = sumTally(steps)
      const groupOf = (code: number) =>
        groupColumn === null ? groups.of('all') : groups.ofText(groupColumn.text(code))
      for (let position = 0; position < rows; position++) {
        const step = stepOf[hours[position]!]!
        const amount = amountAt(measured, position)
        const passes = filters.every((condition) =>
          condition.values.has(condition.column.text(condition.column.codes[position]!) ?? ''),
        )
        if (step >= 0 && amount !== null && passes)
          expected.add(groupOf(groupColumn?.codes[position] ?? 0), step, amount)
      }
      const segment: CodedSegment = { by: groupColumn, groupOf, measured, filters, offsets, stepOf, steps }
      expect(measureSegment(segment, tally)).toBe(true)
      const sets = groups.values.map((_, group) => [group])
      expect(tally.numbers(sets)).toEqual(expected.numbers(sets))
    }),
    { numRuns: runs(60) },
  )
})

test('too many values and steps are left to a slower way', () => {
  const groupColumn = {
    codes: new Uint16Array(segmentEvents),
    size: 60_000,
    text: () => 'a',
    number: () => null,
  }
  const offsets = new Uint16Array(segmentEvents)
  const segment = { by: groupColumn, groupOf: () => 2, measured: null, filters: [], offsets, stepOf }
  expect(measureSegment({ ...segment, steps: 18 }, sumTally(18))).toBe(false)
  expect(measureSegment({ ...segment, steps: 17 }, sumTally(17))).toBe(true)
})
