/** Vendors beyond a page's maximum count as one, and no detection is missing. */
import { expect, test } from 'bun:test'
import { breakdownRowsMax } from './period-counts.ts'
import { largestVendors } from './detections.ts'

const createName = (name: string) => ({ name })

test('the largest vendors keep their names, the others count as one with those past the value limit', () => {
  const rows = Array.from({ length: breakdownRowsMax + 10 }, (_, n) => ({
    class: createName(n % 2 === 0 ? 'dom' : 'crawler'),
    vendor: createName(`vendor ${n}`),
    count: 1_000 - n,
  }))
  rows.push({ class: createName('dom'), vendor: 'other' as never, count: 5_000 })
  const cells = largestVendors(rows)
  const sum = (list: { count: number }[]) => list.reduce((total, { count }) => total + count, 0)
  expect(sum(cells)).toBe(sum(rows))
  expect(new Set(cells.map(({ vendor }) => JSON.stringify(vendor))).size).toBe(breakdownRowsMax)
  const otherCells = cells.filter(({ vendor }) => vendor === 'other')
  // The vendor of "dom" joins what was "other" already; crawlers keep a cell of their own.
  expect(otherCells.map(({ class: agentClass }) => agentClass)).toEqual([
    createName('crawler'),
    createName('dom'),
  ])
  expect(sum(otherCells)).toBe(5_000 + sum(rows.slice(breakdownRowsMax - 1, -1)))
})

test('a vendor with the name of a state is not that state', () => {
  const rows = [
    { class: createName('dom'), vendor: createName('other'), count: 2 },
    { class: createName('dom'), vendor: 'missing' as const, count: 1 },
  ]
  expect(largestVendors(rows)).toEqual(rows)
})
