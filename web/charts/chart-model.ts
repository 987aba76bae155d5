/** Series of a chart: named counts per step, built from the server's responses and stacked for drawing. */
import type { CutRow, Tally } from '../api/api.ts'

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
  rows: readonly CutRow[],
  whole: Tally,
  options: { order?: readonly string[]; without: string; colour?: ColourOf },
): Series[] {
  const place = (value: string): number => {
    const at = options.order?.indexOf(value) ?? -1
    return at === -1 ? Number.POSITIVE_INFINITY : at
  }
  const series: Series[] = rows
    .filter((row) => row.steps !== null && row.value !== null && row.count > 0)
    .map((row, index) => {
      const value = row.value ?? ''
      const colour = (options.colour ?? colourOf)(value, index)
      return { name: value, value, colour, counts: row.steps ?? [] }
    })
    .sort((a, b) => place(a.value) - place(b.value) || 0)
  const rest = whole.steps.map(
    (total, step) => total - series.reduce((sum, one) => sum + (one.counts[step] ?? 0), 0),
  )
  if (rest.some((count) => count > 0)) {
    series.push({ name: options.without, value: null, colour: 'class-other', counts: rest })
  }
  return series
}

const outcomeOrder = ['success', 'blocked', 'error']

export function outcomeSeries(tally: Tally): Series[] {
  const place = (name: string) => (outcomeOrder.indexOf(name) + outcomeOrder.length + 1) % 4
  return Object.entries(tally.outcomes)
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
  const steps = Math.max(0, ...series.map((one) => one.counts.length))
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
  const steps = Math.max(0, ...series.map((one) => one.counts.length))
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
  for (const one of series) {
    top += one.counts[step] ?? 0
    if (value <= top && (one.counts[step] ?? 0) > 0) return one
  }
  return null
}
