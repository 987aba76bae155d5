/** The model of a chart: series from the server's responses, stacked, with their colours, axes and drawing options. */
import type uPlot from 'uplot'
import { momentOf, wallOf } from '../../server/text/time-zone.ts'
import { bytesText, clockTime, compactCount, dayName, exactDuration } from '../text/format.ts'
import type { BreakdownRow, EventCounts } from '../api/api.ts'
import type { Options } from 'uplot'
import { dayMs, hourMs } from '../../db/contract/units.ts'

export interface Series {
  name: string
  colour: string // a token without its dashes, such as "class-dom"
  counts: number[] // for lines: measures, NaN for gaps
  value: string | null // the value to filter Logs by; null: several values
}

export type ColourOf = (value: string, index: number) => string

const byName: { [value: string]: string } = {
  webmcp: 'class-webmcp',
  dom: 'class-dom',
  screenshot: 'class-screenshot',
  crawler: 'class-crawler',
  detected: 'trust-detected',
  declared: 'trust-declared',
  verified: 'trust-verified',
  linked: 'trust-linked',
  consistent: 'trust-declared',
  unverifiable: 'series-8',
  contradicted: 'block',
  unknown: 'class-other',
  success: 'allow',
  allow: 'allow',
  blocked: 'block',
  deny: 'block',
  error: 'error',
  review: 'review',
}

/** Rising trust, as in the contract. */
export const trustOrder = ['detected', 'declared', 'verified', 'linked']

/** An unknown trust ranks lowest. */
export function trustRank(trust: string): number {
  return trustOrder.indexOf(trust)
}

const ownColours = 8

/** Known values have a fixed colour; other values get one by their index. */
export const colourOf: ColourOf = (value, index) =>
  Object.hasOwn(byName, value) ? (byName[value] ?? '') : `series-${(index % ownColours) + 1}`

/**
 * The rows of a breakdown as series in the given order, and one more for the rest:
 * events without the field, and values that are not among the largest.
 */
export function breakdownSeries(
  rows: readonly BreakdownRow[],
  whole: EventCounts,
  options: { order?: readonly string[]; without: string; colour?: ColourOf },
): Series[] {
  const place = (value: string): number => {
    const index = options.order?.indexOf(value) ?? -1
    return index === -1 ? Number.POSITIVE_INFINITY : index
  }
  const series: Series[] = rows
    .filter((row) => row.steps !== null && row.value !== null && row.count > 0)
    .map((row, index) => {
      const value = row.value ?? ''
      const colour = (options.colour ?? colourOf)(value, index)
      return { name: value, value, colour, counts: row.steps ?? [] }
    })
    .sort((a, b) => place(a.value) - place(b.value) || 0)
  const otherCounts = whole.steps.map(
    (total, step) => total - series.reduce((sum, item) => sum + (item.counts[step] ?? 0), 0),
  )
  if (otherCounts.some((count) => count > 0)) {
    series.push({ name: options.without, value: null, colour: 'class-other', counts: otherCounts })
  }
  return series
}

const outcomeOrder = ['success', 'blocked', 'error']

export function outcomeSeries(counts: EventCounts): Series[] {
  const place = (name: string) => (outcomeOrder.indexOf(name) + outcomeOrder.length + 1) % 4
  return Object.entries(counts.outcomes)
    .filter(([, outcome]) => outcome.count > 0)
    .sort(([a], [b]) => place(a) - place(b) || (a < b ? -1 : 1))
    .map(([name, { steps }], index) => ({
      name,
      value: name,
      colour: colourOf(name, index),
      counts: steps,
    }))
}

/**
 * Columns for the chart: times, then each series added to those before it. The highest comes first, so that lower ones
 * are drawn over it. Each step ends where the next one begins.
 */
export function stacked(series: readonly Series[], edges: readonly number[]): number[][] {
  const steps = Math.max(0, ...series.map((item) => item.counts.length))
  const times = edges.slice(0, steps + 1)
  const sums = Array<number>(steps).fill(0)
  const columns = series.map(({ counts }) => {
    for (let step = 0; step < steps; step++) sums[step] = (sums[step] ?? 0) + (counts[step] ?? 0)
    return [...sums, sums[steps - 1] ?? 0]
  })
  return [times, ...columns.reverse()]
}

/** Columns for a line chart: times, then each series with its gaps. */
export function apart(series: readonly Series[], edges: readonly number[]): (number | null)[][] {
  const steps = Math.max(0, ...series.map((item) => item.counts.length))
  const times = edges.slice(0, steps + 1)
  const columns = series.map(({ counts }) =>
    [...counts, counts[steps - 1] ?? Number.NaN].map((value) => (Number.isNaN(value) ? null : value)),
  )
  return [times, ...columns.reverse()]
}

/** The index of the step that contains a moment; null if none does. */
export function stepAt(edges: readonly number[], ms: number): number | null {
  const next = edges.findIndex((edge) => edge > ms)
  return next > 0 ? next - 1 : null
}

/** The series whose area contains `value` at a step; null above all of them. */
export function seriesAt(series: readonly Series[], step: number, value: number): Series | null {
  let top = 0
  for (const item of series) {
    top += item.counts[step] ?? 0
    if (value <= top && (item.counts[step] ?? 0) > 0) return item
  }
  return null
}

/** Colours and font of the theme. */
export interface ChartInk {
  line: string
  text: string
  font: string
  colours: string[] // of the series, in order
  select: string
}

interface ChartSize {
  width: number
  height: number
}

const axisSteps = [1, 2, 3, 6, 12, 24, 48, 96, 168, 336, 672, 1344, 2688, 5376].map((hours) => hours * hourMs)
const labelWidthPx = 64

/** Round times in the zone, spaced for their labels: divisors of a day, or whole days. */
export function timeSplits(fromMs: number, toMs: number, widthPx: number, timeZone: string): number[] {
  const labels = Math.max(2, Math.floor(widthPx / labelWidthPx))
  const leastMs = (toMs - fromMs) / labels
  const stepMs = axisSteps.find((step) => step >= leastMs) ?? Math.ceil(leastMs / dayMs) * dayMs
  const splits: number[] = []
  // A label at the end would be cut off.
  const lastMs = toMs - ((toMs - fromMs) * (labelWidthPx / 3)) / Math.max(1, widthPx)
  for (let wall = Math.ceil(wallOf(fromMs, timeZone) / stepMs) * stepMs; ; wall += stepMs) {
    const splitMs = momentOf(wall, timeZone)
    if (splitMs > lastMs) return splits
    if (splitMs >= fromMs && splitMs > (splits.at(-1) ?? -Infinity)) splits.push(splitMs)
  }
}

/** "14:00" within a day, "Fri 14" at its start; "14 Nov" between days, "Nov 2025" for years. */
export function timeLabels(splits: readonly number[], timeZone: string): string[] {
  const stepMs = (splits[1] ?? 0) - (splits[0] ?? 0)
  return splits.map((splitMs) => {
    const [weekday = '', date = '', month = '', year = ''] = dayName(splitMs, timeZone, yearAgoMs).split(' ')
    if (wallOf(splitMs, timeZone) % dayMs !== 0) return clockTime(splitMs, timeZone)
    if (stepMs > 60 * dayMs) return `${month} ${year}`
    return stepMs > 2 * dayMs ? `${date} ${month}` : `${weekday} ${date}`
  })
}

/** No event has a time in this year, so labels of days always include the year. */
const yearAgoMs = 0

const roundParts = [1, 2, 2.5, 5, 10]

const splitHeightPx = 26

/** The number of divisions of the height whose labels do not overlap. */
export function partsIn(heightPx: number): number {
  return Math.max(1, Math.min(4, Math.floor(heightPx / splitHeightPx)))
}

/** Round numbers from zero to above the maximum. Counts are whole, so the steps are, too. */
export function countSplits(highest: number, parts = 4): number[] {
  const minPart = Math.max(1, highest) / parts
  const magnitude = 10 ** Math.floor(Math.log10(minPart))
  const part = roundParts.find((candidate) => candidate * magnitude >= minPart) ?? 10
  const step = Math.max(1, part === 2.5 && magnitude < 10 ? 5 * magnitude : part * magnitude)
  const splits: number[] = []
  for (let split = 0; splits.length === 0 || (splits.at(-1) ?? 0) < highest; split += step) splits.push(split)
  return splits
}

type ShowValue = (value: number) => string

/** How the values of a chart are drawn: a stack of counts unless it says otherwise. */
export interface ChartShape {
  lines?: boolean // instead of a stack, for values that do not add up
  showValue?: ShowValue // formats the values
}

/** The units in which values are shown, smallest first. Numbers on an axis are round in the unit of its highest one. */
const units = new Map<ShowValue | undefined, number[]>([
  [exactDuration, [1, 1_000, 60_000, 3_600_000, 86_400_000]],
  [bytesText, [1, 1e3, 1e6, 1e9, 1e12]],
])

export function valueSplits(highest: number, parts: number, showValue?: ShowValue): number[] {
  const unit = units.get(showValue)?.findLast((candidate) => candidate <= highest) ?? 1
  return countSplits(highest / unit, parts).map((split) => split * unit)
}

/** "0", "500 ms", "1 s" */
export function valueLabels(splits: readonly number[], showValue: ShowValue = compactCount): string[] {
  return splits.map((split) => (split === 0 ? '0' : showValue(split).replace(/\.0(?= )/, '')))
}

export function chartOptions(
  series: readonly Series[],
  size: ChartSize,
  ink: ChartInk,
  stepped: Options['series'][number]['paths'],
  timeZone: string,
  { lines = false, showValue }: ChartShape = {},
): Options {
  const axis = { stroke: ink.text, font: ink.font, ticks: { show: false } }
  const grid = { stroke: ink.line, width: 1 }
  return {
    ...size,
    ms: 1,
    padding: [12, 12, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: true, y: false, setScale: false, dist: 4 },
    },
    scales: {
      x: { time: true },
      y: { range: (chart, _, max) => [0, valueSplits(max, partsOf(chart), showValue).at(-1) ?? 1] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 28,
        gap: 6,
        splits: (chart, _, min, max) => timeSplits(min, max, chart.bbox.width / devicePixels(), timeZone),
        values: (_, splits) => timeLabels(splits, timeZone),
      },
      {
        ...axis,
        grid,
        size: showValue ? 58 : 46,
        gap: 8,
        splits: (chart, _, __, max) => valueSplits(max, partsOf(chart), showValue),
        values: (_, splits) => valueLabels(splits, showValue),
      },
    ],
    series: [
      {},
      // Drawn from the highest down, in the order of the columns.
      ...series
        .map((item, index) => ({
          label: item.name,
          ...(lines
            ? { stroke: ink.colours[index] ?? ink.text, width: 2 }
            : { fill: ink.colours[index] ?? ink.text, width: 0 }),
          points: { show: false },
          ...(stepped && { paths: stepped }),
        }))
        .reverse(),
    ],
  }
}

/** Height without the time axis and the padding above. */
function partsOf({ height }: Pick<uPlot, 'height'>): number {
  return partsIn(height - 40)
}

function devicePixels(): number {
  return typeof window === 'undefined' ? 1 : window.devicePixelRatio
}
