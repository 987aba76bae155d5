/** Computes the options of a chart. Nothing here touches the page. */
import type uPlot from 'uplot'
import type { Options } from 'uplot'
import { momentOf, wallOf } from '../../server/text/time-zone.ts'
import { clockTime, compactCount, dayName } from '../text/format.ts'
import type { Series } from './chart-model.ts'

export interface ChartInk {
  line: string
  text: string
  font: string
  colours: string[] // of the series, in order
  select: string
}

export interface ChartSize {
  width: number
  height: number
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const axisSteps = [1, 2, 3, 6, 12, 24, 48, 96, 168, 336, 672, 1344, 2688, 5376].map((hours) => hours * hourMs)
const labelWidthPx = 64

/** Round times in the zone, spaced for their labels: divisors of a day, or whole days. */
export function timeSplits(fromMs: number, toMs: number, widthPx: number, timeZone: string): number[] {
  const room = Math.max(2, Math.floor(widthPx / labelWidthPx))
  const wanted = (toMs - fromMs) / room
  const stepMs = axisSteps.find((step) => step >= wanted) ?? Math.ceil(wanted / dayMs) * dayMs
  const splits: number[] = []
  // A label at the end would be cut off.
  const lastMs = toMs - ((toMs - fromMs) * (labelWidthPx / 3)) / Math.max(1, widthPx)
  for (let wall = Math.ceil(wallOf(fromMs, timeZone) / stepMs) * stepMs; ; wall += stepMs) {
    const at = momentOf(wall, timeZone)
    if (at > lastMs) return splits
    if (at >= fromMs && at > (splits.at(-1) ?? -Infinity)) splits.push(at)
  }
}

/** "14:00" within a day, "Fri 14" at its start; "14 Nov" between days, "Nov 2025" for years. */
export function timeLabels(splits: readonly number[], timeZone: string): string[] {
  const stepMs = (splits[1] ?? 0) - (splits[0] ?? 0)
  return splits.map((at) => {
    const [weekday = '', date = '', month = '', year = ''] = dayName(at, timeZone, yearAgoMs).split(' ')
    if (wallOf(at, timeZone) % dayMs !== 0) return clockTime(at, timeZone)
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
  const wanted = Math.max(1, highest) / parts
  const magnitude = 10 ** Math.floor(Math.log10(wanted))
  const part = roundParts.find((one) => one * magnitude >= wanted) ?? 10
  const step = Math.max(1, part === 2.5 && magnitude < 10 ? 5 * magnitude : part * magnitude)
  const splits: number[] = []
  for (let at = 0; splits.length === 0 || (splits.at(-1) ?? 0) < highest; at += step) splits.push(at)
  return splits
}

export function chartOptions(
  series: readonly Series[],
  size: ChartSize,
  ink: ChartInk,
  stepped: Options['series'][number]['paths'],
  timeZone: string,
  showValue?: (value: number) => string, // draws lines instead of a stack, and formats their values
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
      y: { range: (chart, _, max) => [0, countSplits(max, partsOf(chart)).at(-1) ?? 1] },
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
        splits: (chart, _, __, max) => countSplits(max, partsOf(chart)),
        values: (_, splits) => splits.map(showValue ?? compactCount),
      },
    ],
    series: [
      {},
      // Drawn from the highest down, in the order of the columns.
      ...series
        .map((one, index) => ({
          label: one.name,
          ...(showValue
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
