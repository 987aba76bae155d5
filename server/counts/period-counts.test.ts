/** A breakdown sums the steps and outcomes of each value, returns the largest values, and loses no event. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { breakdownRowsMax, makeBreakdown } from './period-counts.ts'
import type { Period } from './period.ts'

const hourMs = 3_600_000
const edges = [0, 1, 2, 3, 4].map((hour) => hour * hourMs)
const period = { sinceMs: 0, untilMs: 4 * hourMs, edges, nowMs: 4 * hourMs - 1 } as Period

const row = fc.record({
  value: fc.oneof(fc.constant(null), fc.constantFrom('', 'a', 'b', '__proto__'), fc.string()),
  outcome: fc.constantFrom('success', 'blocked', 'constructor'),
  startMs: fc.integer({ min: 0, max: 3 }).map((hour) => hour * hourMs),
  firstMs: fc.constant(0),
  lastMs: fc.constant(0),
  count: fc.integer({ min: 1, max: 1_000 }),
})
const sum = (rows: readonly { count: number }[]) => rows.reduce((total, { count }) => total + count, 0)

test('every event is in one row, one outcome and, with steps, one step', () => {
  fc.assert(
    fc.property(fc.array(row), fc.array(row), (now, rowsBefore) => {
      const breakdown = makeBreakdown({ rows: now }, { rows: rowsBefore }, period, { stepped: true })
      expect(sum(breakdown.rows) + (breakdown.more?.count ?? 0)).toBe(sum(now))
      for (const breakdownRow of breakdown.rows) {
        expect(Object.values(breakdownRow.outcomes).reduce((total, count) => total + count, 0)).toBe(
          breakdownRow.count,
        )
        if (breakdownRow.steps)
          expect(breakdownRow.steps.reduce((total, count) => total + count, 0)).toBe(breakdownRow.count)
        expect(breakdownRow.before).toBe(sum(rowsBefore.filter(({ value }) => value === breakdownRow.value)))
      }
      const counts = breakdown.rows.map((breakdownRow) => breakdownRow.count)
      expect(counts).toEqual(counts.toSorted((a, b) => b - a))
    }),
  )
})

test('values beyond the maximum of rows are summed', () => {
  const rows = Array.from({ length: breakdownRowsMax + 7 }, (_, index) => ({
    value: `v${index}`,
    outcome: 'success',
    startMs: 0,
    firstMs: 0,
    lastMs: 0,
    count: index < 5 ? 100 : 1,
  }))
  const breakdown = makeBreakdown({ rows }, { rows: rows.slice(-3) }, period)
  expect(breakdown.rows).toHaveLength(breakdownRowsMax)
  expect(breakdown.more?.values).toBe(7)
  expect(breakdown.more?.count).toBe(7)
  expect(sum(breakdown.rows) + 7).toBe(sum(rows))
})
