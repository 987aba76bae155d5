/** What a step of a chart holds, beside the pointer; the same words are announced when keys point at it. */
import type { RefObject } from 'preact'
import type uPlot from 'uplot'
import { Text } from '../components/text.tsx'
import { count } from '../text/format.ts'
import { stepName } from '../range/range.ts'
import type { Series } from './series.ts'

interface StepTipProps {
  series: Series[]
  edges: number[]
  endMs: number
  zone: string
  step: number | null
  anchor: number | null
  showValue?: (value: number) => string
  chart: RefObject<uPlot | null>
}

const rowsMax = 10

export function StepTip(props: StepTipProps) {
  const { series, step, edges, zone, anchor, showValue } = props
  const chart = props.chart.current
  if (step === null || !chart) return null
  // Counts of several steps are added up; measures are not.
  const [from, to] =
    anchor === null || showValue ? [step, step] : [Math.min(anchor, step), Math.max(anchor, step)]
  const sumOf = (one: Series): number =>
    one.counts.slice(from, to + 1).reduce((sum, events) => sum + events, 0)
  // Shown in the order of the stack, top first.
  const rows = series
    .map((one) => ({ ...one, sum: sumOf(one) }))
    .filter((one) => one.sum > 0 || (showValue !== undefined && one.sum === 0))
    .reverse()
  const total = rows.reduce((sum, one) => sum + one.sum, 0)
  const at = (edge: number): number => edges[edge] ?? 0
  const x = chart.valToPos((at(step) + at(step + 1)) / 2, 'x') + chart.over.offsetLeft
  const right = x > chart.width / 2
  const running = at(step + 1) > props.endMs
  return (
    <div
      class="step-tip panel"
      role="status"
      style={right ? { right: `${chart.width - x + 12}px` } : { left: `${x + 12}px` }}
    >
      <p class="muted">
        {stepName(at(from), at(to + 1), zone)}
        {running && ', so far'} <span class="zone-name">{zone}</span>
      </p>
      {showValue === undefined && (
        <p>
          <b>{count(total)}</b> total
        </p>
      )}
      {showValue !== undefined && rows.length === 0 && <p>No data</p>}
      <ul>
        {rows.slice(0, rowsMax).map((one) => (
          <li key={one.name}>
            <i class="series-mark" style={{ background: `var(--${one.colour})` }} />
            <Text value={one.name} max={28} />
            <b>{(showValue ?? count)(one.sum)}</b>
          </li>
        ))}
      </ul>
    </div>
  )
}
