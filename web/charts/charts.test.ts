/** Stacks keep every count, axes stay round, words do not lie, tables sort, CSV is safe. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { CutRow, Tally } from '../api.ts'
import { changeOf, percent, pointsOf } from './change.ts'
import { countSplits, partsIn, timeLabels, timeSplits } from './chart-options.ts'
import { csvText } from './csv.ts'
import { cutBars, cutRest, distinct } from './cut-bars.ts'
import { sorted } from './data-table.tsx'
import { cutSeries, outcomeSeries, seriesAt, stacked } from './series.ts'

const hourMs = 3_600_000
const counts = fc.array(fc.nat(50), { minLength: 3, maxLength: 3 })
const total = (all: readonly number[]) => all.reduce((sum, one) => sum + one, 0)
const tally = (steps: number[]): Tally => ({ count: total(steps), before: 0, steps, outcomes: {} })
const row = (value: string | null, steps: number[] | null, count = total(steps ?? [])): CutRow => ({
  value,
  count,
  before: 0,
  outcomes: {},
  steps,
})

describe('series', () => {
  test('the series of a cut sum up to the whole, step by step', () => {
    fc.assert(
      fc.property(fc.array(counts, { maxLength: 5 }), counts, (values, without) => {
        const whole = [0, 1, 2].map((step) => total(values.map((one) => one[step]!)) + without[step]!)
        const rows = values.map((steps, index) => row(`v${index}`, steps))
        const series = cutSeries(rows, tally(whole), { without: 'none' })
        const sums = [0, 1, 2].map((step) => total(series.map((one) => one.counts[step]!)))
        expect(sums).toEqual(whole)
        expect(series.at(-1)?.name === 'none').toBe(total(without) > 0)
      }),
    )
  })

  test('columns fall from the highest, are closed by the end, and give each count back', () => {
    fc.assert(
      fc.property(fc.array(counts, { minLength: 1, maxLength: 5 }), (values) => {
        const series = values.map((steps, index) => ({
          name: `v${index}`,
          value: null,
          colour: 'x',
          counts: steps,
        }))
        const [times, ...columns] = stacked(series, 1_000, hourMs)
        expect(times).toEqual([0, 1, 2, 3].map((step) => 1_000 + step * hourMs))
        const rising = columns.reverse()
        rising.forEach((column, index) => {
          expect(column[3]).toBe(column[2])
          for (let step = 0; step < 3; step++) {
            expect(column[step]! - (rising[index - 1]?.[step] ?? 0)).toBe(values[index]![step]!)
          }
        })
      }),
    )
  })

  test('the order of known words holds, and a point finds its area', () => {
    const rows = [row('dom', [5]), row('crawler', [3]), row('new one', [1]), row(null, [9])]
    const series = cutSeries(rows, tally([18]), { order: ['crawler', 'webmcp', 'dom'], without: 'others' })
    expect(series.map((one) => one.name)).toEqual(['crawler', 'dom', 'new one', 'others'])
    expect(series.map((one) => one.colour).slice(0, 2)).toEqual(['class-crawler', 'class-dom'])
    expect([1, 3, 3.5, 8.5, 9.5, 18.5].map((value) => seriesAt(series, 0, value)?.name)).toEqual([
      'crawler',
      'crawler',
      'dom',
      'new one',
      'others',
      undefined,
    ])
  })

  test('outcomes: success, blocked, error, then others', () => {
    const one = { count: 1, before: 0, steps: [1] }
    const outcomes = { zeta: one, error: one, success: one, blocked: one, never: { ...one, count: 0 } }
    const names = outcomeSeries({ ...one, outcomes }).map((series) => series.name)
    expect(names).toEqual(['success', 'blocked', 'error', 'zeta'])
  })
})

describe('axes', () => {
  test('counts: from zero beyond the highest in a few whole, even steps', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1_000_000_000 }), (highest) => {
        const splits = countSplits(highest)
        expect(splits[0]).toBe(0)
        expect(splits.at(-1)!).toBeGreaterThanOrEqual(highest)
        expect(splits.length).toBeLessThanOrEqual(6)
        for (const split of splits) expect(Number.isInteger(split)).toBe(true)
        expect(new Set(splits.slice(1).map((split, index) => split - splits[index]!)).size).toBeLessThan(2)
      }),
    )
  })

  test('times: round in UTC, inside the range, not more than fit', () => {
    const start = Date.parse('2026-11-14T03:00:00Z')
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 9_600 }),
        fc.integer({ min: 100, max: 1_200 }),
        (hours, width) => {
          const splits = timeSplits(start, start + hours * hourMs, width)
          expect(splits.length).toBeLessThanOrEqual(Math.max(2, Math.floor(width / 64)) + 1)
          for (const at of splits) expect([at % hourMs, at >= start]).toEqual([0, true])
        },
      ),
    )
    const days = timeSplits(start, start + 168 * hourMs, 600)
    expect(timeLabels(days).slice(0, 2)).toEqual(['Sun 15', 'Mon 16'])
    const hours = timeSplits(start, start + 24 * hourMs, 400)
    expect(timeLabels(hours)).toContain('12:00')
  })
})

describe('words', () => {
  test('changes', () => {
    const told = (now: number, before: number) =>
      `${changeOf(now, before).arrow}${changeOf(now, before).text}`
    expect(told(118, 100)).toBe('▲18 %')
    expect(told(50, 100)).toBe('▼50 %')
    expect(told(0, 100)).toBe('▼100 %')
    expect(told(10_001, 10_000)).toBe('▲under 1 %')
    expect(told(1_200, 100)).toBe('▲12 times')
    expect(told(5, 0)).toBe('new')
    expect(told(7, 7)).toBe('no change')
    expect(told(0, 0)).toBe('')
  })

  test('shares never round to all or nothing, and points are those of the shown shares', () => {
    expect([percent(0), percent(1), percent(0.001), percent(0.999), percent(null)]).toEqual([
      '0 %',
      '100 %',
      'under 1 %',
      'over 99 %',
      '–',
    ])
    expect(pointsOf(0.456, 0.454)).toEqual({ arrow: '▲', text: '1 pt' })
    expect(pointsOf(0.4, 0.43)).toEqual({ arrow: '▼', text: '3 pts' })
    expect(pointsOf(null, 0.4).text).toBe('')
  })
})

describe('cuts', () => {
  const cut = {
    rows: [
      row('a', null, 5),
      { ...row('b', null, 3), before: 2 },
      { ...row('c', null, 0), before: 4 },
      row(null, null, 2),
    ],
    more: { values: 7, count: 4, before: 1 },
  }

  test('bars leave out what did not come; the rest is what they do not show', () => {
    const bars = cutBars(cut, { href: (value) => `/${value}` })
    expect(bars.map((bar) => [bar.name, bar.count, bar.href])).toEqual([
      ['a', 5, '/a'],
      ['b', 3, '/b'],
    ])
    expect(cutRest(cut, { count: 20 })).toEqual({ names: 7, count: 12 })
  })

  test('distinct values now, before, and new', () => {
    expect(distinct({ ...cut, more: null })).toEqual({ now: 2, before: 2, fresh: 1 })
  })
})

describe('tables', () => {
  test('sorting keeps every row and puts missing values last either way', () => {
    const column = { name: 'n', value: (one: { n: number | null }) => one.n }
    const rows = [{ n: 2 }, { n: null }, { n: 10 }, { n: 1 }]
    expect(sorted(rows, column, true).map((one) => one.n)).toEqual([1, 2, 10, null])
    expect(sorted(rows, column, false).map((one) => one.n)).toEqual([10, 2, 1, null])
  })

  test('CSV quotes what must be quoted and disarms formulas, but not numbers', () => {
    expect(
      csvText(
        ['a', 'b,c'],
        [
          ['=1+1', -5],
          ['say "hi"\n', '-x'],
        ],
      ),
    ).toBe(`a,"b,c"\r\n'=1+1,-5\r\n"say ""hi""\n",'-x\r\n`)
  })
})

test('labels of counts have room, however low the chart is', () => {
  fc.assert(
    fc.property(fc.nat(1_000_000), fc.integer({ min: 20, max: 400 }), (highest, heightPx) => {
      const splits = countSplits(highest, partsIn(heightPx))
      expect(splits.at(-1)).toBeGreaterThanOrEqual(highest)
      // A label is 11 px high; only the lowest chart has no more than both ends.
      if (splits.length > 2) expect(heightPx / (splits.length - 1)).toBeGreaterThan(20)
    }),
  )
})
