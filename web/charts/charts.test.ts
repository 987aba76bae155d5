/** Charts and tables: stacks contain every count, axes are round, shares round safely, tables sort, CSV is safe. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { BreakdownRow, EventCounts } from '../api/api.ts'
import { changeOf, percent, pointsOf } from './headlines.tsx'
import {
  breakdownSeries,
  chartOptions,
  countSplits,
  outcomeSeries,
  partsIn,
  seriesAt,
  stacked,
  timeLabels,
  timeSplits,
  valueLabels,
  valueSplits,
} from './chart-model.ts'
import {
  type Column,
  changeCell,
  csvName,
  csvRowsMax,
  csvText,
  everyRow,
  sketchedCell,
  sorted,
  tableCsv,
} from './data-table.tsx'
import { bytesText, count, exactDuration } from '../text/format.ts'
import { breakdownBars, breakdownRest, distinct, shareColumn, valueName, valueRows } from './breakdown.tsx'

const hourMs = 3_600_000
const counts = fc.array(fc.nat(50), { minLength: 3, maxLength: 3 })
const total = (numbers: readonly number[]) => numbers.reduce((sum, number) => sum + number, 0)
const countsOf = (steps: number[]): EventCounts => ({ count: total(steps), before: 0, steps, outcomes: {} })
const row = (value: string | null, steps: number[] | null, count = total(steps ?? [])): BreakdownRow => ({
  value,
  count,
  before: 0,
  outcomes: {},
  steps,
})

describe('series', () => {
  test('law: the series of a breakdown add up to the total in each step', () => {
    fc.assert(
      fc.property(fc.array(counts, { maxLength: 5 }), counts, (values, restCounts) => {
        const whole = [0, 1, 2].map(
          (step) => total(values.map((valueCounts) => valueCounts[step]!)) + restCounts[step]!,
        )
        const rows = values.map((steps, index) => row(`v${index}`, steps))
        const series = breakdownSeries(rows, countsOf(whole), { without: 'none' })
        const sums = [0, 1, 2].map((step) => total(series.map((entry) => entry.counts[step]!)))
        expect(sums).toEqual(whole)
        expect(series.at(-1)?.name === 'none').toBe(total(restCounts) > 0)
      }),
    )
  })

  test('law: columns are stacked from the highest, end at the last step, and contain every count', () => {
    fc.assert(
      fc.property(fc.array(counts, { minLength: 1, maxLength: 5 }), (values) => {
        const series = values.map((steps, index) => ({
          name: `v${index}`,
          value: null,
          colour: 'x',
          counts: steps,
        }))
        const [times, ...columns] = stacked(
          series,
          [0, 1, 2, 3].map((step) => 1_000 + step * hourMs),
        )
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

  test('known values keep their order, and a point finds its area', () => {
    const rows = [row('dom', [5]), row('crawler', [3]), row('new one', [1]), row(null, [9])]
    const series = breakdownSeries(rows, countsOf([18]), {
      order: ['crawler', 'webmcp', 'dom'],
      without: 'others',
    })
    expect(series.map((entry) => entry.name)).toEqual(['crawler', 'dom', 'new one', 'others'])
    expect(series.map((entry) => entry.colour).slice(0, 2)).toEqual(['class-crawler', 'class-dom'])
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
    const sampleCounts = { count: 1, before: 0, steps: [1] }
    const outcomes = {
      zeta: sampleCounts,
      error: sampleCounts,
      success: sampleCounts,
      blocked: sampleCounts,
      never: { ...sampleCounts, count: 0 },
    }
    const names = outcomeSeries({ ...sampleCounts, outcomes }).map((series) => series.name)
    expect(names).toEqual(['success', 'blocked', 'error', 'zeta'])
  })
})

describe('axes', () => {
  test('counts: from zero to above the maximum in a few whole, equal steps', () => {
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

  test('durations and bytes: round in the unit of the highest, and no two labels are equal', () => {
    const labels = (highest: number, show: (value: number) => string) =>
      valueLabels(valueSplits(highest, 4, show), show).join(', ')
    expect(labels(940, exactDuration)).toBe('0, 250 ms, 500 ms, 750 ms, 1 s')
    expect(labels(12_400, exactDuration)).toBe('0, 5 s, 10 s, 15 s')
    expect(labels(79_000, exactDuration)).toBe('0, 1 min, 2 min')
    expect(labels(5_000_000, exactDuration)).toBe('0, 1 h, 2 h')
    expect(labels(3_500_000, bytesText)).toBe('0, 1 MB, 2 MB, 3 MB, 4 MB')
    expect(labels(1_040, count)).toBe('0, 500, 1,000, 1,500')
    fc.assert(
      fc.property(fc.constantFrom(exactDuration, bytesText), fc.nat(10_000_000_000), (show, highest) => {
        const splits = valueSplits(highest, 4, show)
        expect(splits.at(-1)).toBeGreaterThanOrEqual(highest)
        expect(new Set(valueLabels(splits, show)).size).toBe(splits.length)
      }),
    )
  })

  test('a stack may be of bytes: filled, with their axis', () => {
    const shape = { showValue: bytesText }
    const ink = { line: '', text: '', font: '', select: '', colours: ['red'] }
    const series = [{ name: 'a', value: 'a', colour: 'series-1', counts: [2_000_000] }]
    const optionsOf = (lines: boolean) =>
      chartOptions(series, { width: 400, height: 200 }, ink, undefined, 'UTC', { ...shape, lines })
    type LabelsOf = (chart: null, splits: number[]) => string[]
    const labels = optionsOf(false).axes?.[1]?.values as unknown as LabelsOf
    expect(labels(null, [0, 1_048_576])).toEqual(['0', '1 MB'])
    expect(
      [optionsOf(false), optionsOf(true)].map(({ series: [, entry] }) => [entry?.fill, entry?.stroke]),
    ).toEqual([
      ['red', undefined],
      [undefined, 'red'],
    ])
  })

  test('times: round in the zone, inside the range, at most as many as fit', () => {
    const start = Date.parse('2026-11-14T03:00:00Z')
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 9_600 }),
        fc.integer({ min: 100, max: 1_200 }),
        (hours, width) => {
          const splits = timeSplits(start, start + hours * hourMs, width, 'UTC')
          expect(splits.length).toBeLessThanOrEqual(Math.max(2, Math.floor(width / 64)) + 1)
          for (const splitMs of splits) expect([splitMs % hourMs, splitMs >= start]).toEqual([0, true])
        },
      ),
    )
    const days = timeSplits(start, start + 168 * hourMs, 600, 'UTC')
    expect(timeLabels(days, 'UTC').slice(0, 2)).toEqual(['Sun 15', 'Mon 16'])
    const hours = timeSplits(start, start + 24 * hourMs, 400, 'UTC')
    expect(timeLabels(hours, 'UTC')).toContain('12:00')
    const kathmandu = timeSplits(start, start + 168 * hourMs, 600, 'Asia/Kathmandu')
    expect(timeLabels(kathmandu, 'Asia/Kathmandu').slice(0, 2)).toEqual(['Sun 15', 'Mon 16'])
    expect(kathmandu[0]).toBe(Date.parse('2026-11-14T18:15:00Z'))
    // The day on which clocks go back has 25 hours, and its labels stay at midnight.
    const autumn = timeSplits(
      Date.parse('2026-10-23T22:00Z'),
      Date.parse('2026-10-27T23:00Z'),
      500,
      'Europe/Berlin',
    )
    const midnights = timeLabels(autumn, 'Europe/Berlin').filter((label) => !label.includes(':'))
    expect(midnights).toEqual(['Sat 24', 'Sun 25', 'Mon 26', 'Tue 27'])
  })
})

describe('changes and shares', () => {
  test('changes', () => {
    const textOf = (now: number, countBefore: number) =>
      `${changeOf(now, countBefore).arrow}${changeOf(now, countBefore).text}`
    expect(textOf(118, 100)).toBe('▲18 %')
    expect(textOf(50, 100)).toBe('▼50 %')
    expect(textOf(0, 100)).toBe('▼100 %')
    expect(textOf(10_001, 10_000)).toBe('▲under 1 %')
    expect(textOf(1_200, 100)).toBe('▲12×')
    expect(textOf(5, 0)).toBe('new')
    expect(textOf(7, 7)).toBe('no change')
    expect(textOf(0, 0)).toBe('')
  })

  test('shares never round to 0 % or 100 %, and points match the shown shares', () => {
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

describe('breakdowns', () => {
  const breakdown = {
    rows: [
      row('a', null, 5),
      { ...row('b', null, 3), before: 2 },
      { ...row('c', null, 0), before: 4 },
      row(null, null, 2),
    ],
    more: { values: 7, count: 4, before: 1 },
  }

  test('bars omit zero counts, and the rest counts all values without a bar', () => {
    const bars = breakdownBars(breakdown, { by: 'vendor', href: (value) => `/${value}` })
    expect(bars.map((bar) => [bar.name, bar.count, bar.href])).toEqual([
      ['a', 5, '/a'],
      ['b', 3, '/b'],
    ])
    expect(breakdownRest(breakdown, { count: 20 })).toEqual({ names: 7, count: 12 })
  })

  test('distinct values of this period, of the previous one, and new ones', () => {
    expect(distinct({ ...breakdown, more: null })).toEqual({ now: 2, before: 2, fresh: 1 })
  })
})

describe('tables', () => {
  test('law: sorting keeps every row and puts missing values last in both directions', () => {
    const column = { name: 'n', value: (valueRow: { n: number | null }) => valueRow.n }
    const rows = [{ n: 2 }, { n: null }, { n: 10 }, { n: 1 }]
    expect(sorted(rows, column, true).map((sortedRow) => sortedRow.n)).toEqual([1, 2, 10, null])
    expect(sorted(rows, column, false).map((sortedRow) => sortedRow.n)).toEqual([10, 2, 1, null])
  })

  test('CSV quotes where needed and escapes formulas, but not numbers', () => {
    expect(
      csvText(
        ['a', 'b,c'],
        [
          ['=1+1', -5],
          ['say "hi"\n', '-x'],
        ],
      ),
    ).toBe(`a,"b,c"\n'=1+1,-5\n"say ""hi""\n",'-x\n`)
  })

  test('the file name has the page, the table and the days of the range, or today without a range', () => {
    const week = { since: '2026-11-15T15:00:00.000Z', until: '2026-11-22T15:00:00.000Z' }
    const noon = Date.UTC(2026, 10, 22, 12)
    const detect = { page: 'detect', table: 'vendors' }
    expect(csvName({ ...detect, period: week }, noon)).toBe('detect-vendors-2026-11-15--2026-11-22.csv')
    const days = { since: '2026-11-01T00:00:00.000Z', until: '2026-11-03T00:00:00.000Z' }
    expect(csvName({ ...detect, period: days }, noon)).toBe('detect-vendors-2026-11-01--2026-11-02.csv')
    expect(csvName({ page: 'sessions', table: 'list' }, noon)).toBe('sessions-list-2026-11-22.csv')
  })

  test('cells have the unit of the header: percent, three digits of a sketch, or the text of the page', () => {
    interface Row {
      name: string
      share: number | null
      tookMs: number
    }
    const columns: Column<Row>[] = [
      { name: 'Name', value: (row) => row.name },
      shareColumn('Share', (row) => row.share),
      { name: 'p95', unit: 'ms', value: (row) => row.tookMs, csv: (row) => sketchedCell(row.tookMs) },
    ]
    const rows = [
      { name: 'a', share: 0.123_456, tookMs: 1234.56 },
      { name: 'b', share: null, tookMs: 0.123_45 },
    ]
    expect(tableCsv(columns, rows)).toBe('Name,"Share, %","p95, ms"\na,12.35,1230\nb,,0.123\n')
    expect([changeCell(3, 2), changeCell(1, 0), changeCell(0, 4)]).toEqual([50, null, -100])
  })

  test('reads every row of a paged list in order, up to a limit', async () => {
    const pages = new Map([
      ['', { rows: [1, 2], next: 'b' }],
      ['b', { rows: [3], next: 'c' }],
      ['c', { rows: [4], next: null }],
    ])
    expect(await everyRow(async (cursor) => pages.get(cursor ?? '')!)).toEqual([1, 2, 3, 4])
    let rows = 0
    const endless = async () => ({ rows: Array.from({ length: 20_000 }, () => ++rows), next: 'more' })
    expect(await everyRow(endless)).toHaveLength(csvRowsMax)
  })

  test('law: rows of a breakdown and the rest add up to the total, for each outcome', () => {
    const row = (value: string | null, count: number, blocked: number) => ({
      value,
      count,
      before: 1,
      outcomes: { success: count - blocked, blocked },
      steps: null,
    })
    const countsOf = (count: number, countBefore: number) => ({ count, before: countBefore, steps: [] })
    const whole = { ...countsOf(20, 5), outcomes: { success: countsOf(15, 0), blocked: countsOf(5, 0) } }
    const rows = valueRows({ rows: [row('x', 9, 3), row(null, 4, 0)], more: null }, whole)
    expect(
      rows.map((valueRow) => [
        valueName(valueRow, 'tool'),
        valueRow.count,
        valueRow.before,
        valueRow.outcomes,
      ]),
    ).toEqual([
      ['x', 9, 1, { success: 6, blocked: 3 }],
      ['(others)', 4, 1, { success: 4, blocked: 0 }],
      ['(no tool)', 7, 3, { success: 5, blocked: 2 }],
    ])
    expect(valueRows({ rows: [row('x', 20, 5)], more: null }, whole)).toHaveLength(1)
  })
})

test('labels of counts do not overlap in a low chart', () => {
  fc.assert(
    fc.property(fc.nat(1_000_000), fc.integer({ min: 20, max: 400 }), (highest, heightPx) => {
      const splits = countSplits(highest, partsIn(heightPx))
      expect(splits.at(-1)).toBeGreaterThanOrEqual(highest)
      // A label is 11 px high; only the lowest chart has no more than both ends.
      if (splits.length > 2) expect(heightPx / (splits.length - 1)).toBeGreaterThan(20)
    }),
  )
})
