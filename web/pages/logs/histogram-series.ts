/** Counts by outcome as series of the chart, the good ones lowest. */
import type { ColourOf, Series } from '../../charts/series.ts'

const order = ['success', 'blocked', 'error']
const ownMax = 6

export function histogramSeries(counts: { [outcome: string]: number[] }, colourOf: ColourOf): Series[] {
  const place = (name: string): number => (order.includes(name) ? order.indexOf(name) : order.length)
  const sum = (steps: number[]): number => steps.reduce((total, count) => total + count, 0)
  const all = Object.entries(counts)
    .filter(([, steps]) => sum(steps) > 0)
    .sort(([a, x], [b, y]) => place(a) - place(b) || sum(y) - sum(x) || (a < b ? -1 : 1))
  const series: Series[] = all
    .slice(0, ownMax)
    .map(([name, steps], index) => ({ name, value: name, colour: colourOf(name, index), counts: steps }))
  const rest = all.slice(ownMax)
  if (rest.length === 0) return series
  const first = rest[0]?.[1] ?? []
  const left = first.map((_, step) => rest.reduce((total, [, steps]) => total + (steps[step] ?? 0), 0))
  return [...series, { name: 'others', value: null, colour: 'class-other', counts: left }]
}
