/** A stacked or line chart over time with a tooltip. Pointer and keyboard read steps and select ranges. */
import './chart.css'
import uPlot from 'uplot'
import { chooseTimes, stepName } from '../range/range.ts'
import { useSignal, type Signal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { themeOnScreen } from '../app/theme.ts'
import {
  type ChartInk,
  type ChartShape,
  type Series,
  apart,
  chartOptions,
  seriesAt,
  stacked,
  stepAt,
} from './chart-model.ts'
import { Text } from '../components/text.tsx'
import { count } from '../text/format.ts'
import type { RefObject } from 'preact'

interface StackChartProps extends ChartShape {
  label: string
  series: Series[] // lowest first
  edges: number[] // start of each step, and the end of the last one
  endMs: number // the end of counting, inside the last step while that one runs
  zone: string // time zone of the axis
  /** A step was clicked, on a series or (null) outside all of them. */
  onPick: (step: number, series: Series | null) => void
}

interface Drawn {
  chart: RefObject<uPlot | null>
  props: RefObject<StackChartProps>
  fed: RefObject<Series[] | null> // the series that the chart holds
  pointed: Signal<number | null>
  anchor: Signal<number | null> // start of a keyboard selection
}

const keyHelp =
  'Arrow keys move between steps. Shift and arrow keys select a range. Enter applies it or opens Logs.'

export function StackChart(props: StackChartProps) {
  const host = useRef<HTMLDivElement>(null)
  const drawn: Drawn = {
    chart: useRef<uPlot | null>(null),
    props: useRef(props),
    fed: useRef<Series[] | null>(null),
    pointed: useSignal<number | null>(null),
    anchor: useSignal<number | null>(null),
  }
  drawn.props.current = props
  const look = JSON.stringify([props.zone, props.series.map(({ name, colour }) => [name, colour])])
  useChart(host, drawn, look)
  return (
    <div
      class="stack-chart"
      tabIndex={0}
      role="group"
      aria-roledescription="chart"
      aria-label={`${props.label}. ${keyHelp}`}
      onKeyDown={(event) => onKey(event, drawn)}
      onBlur={() => point(drawn, null)}
    >
      <div class="plot" ref={host} />
      <StepTip {...props} step={drawn.pointed.value} anchor={drawn.anchor.value} chart={drawn.chart} />
    </div>
  )
}

function useChart(host: RefObject<HTMLDivElement | null>, drawn: Drawn, look: string): void {
  const scheme = themeOnScreen.value
  // Before paint, so that the chart appears in the same frame as the numbers beside it.
  const { series, edges } = drawn.props.current
  useLayoutEffect(() => {
    const element = host.current
    if (!element) return
    const plot = makeChart(element, drawn, scheme)
    drawn.chart.current = plot
    drawn.fed.current = drawn.props.current.series
    const sized = new ResizeObserver(() => {
      const { width, height } = sizeOf(element)
      // The first call reports the initial size. Setting a size draws again.
      if (width !== plot.width || height !== plot.height) plot.setSize({ width, height })
    })
    sized.observe(element)
    return () => {
      sized.disconnect()
      drawn.chart.current = null
      plot.destroy()
    }
  }, [scheme, look])
  useLayoutEffect(() => {
    // A new chart has its data already.
    if (drawn.fed.current === series) return
    drawn.fed.current = series
    drawn.chart.current?.setData(dataOf(drawn.props.current))
  }, [series, edges.join()])
}

const sizeOf = (element: HTMLElement) => ({ width: element.clientWidth, height: element.clientHeight })

function makeChart(element: HTMLElement, drawn: Drawn, theme: string): uPlot {
  const { series, lines = false, zone } = drawn.props.current
  const ink = readInk(
    element,
    theme,
    series.map((item) => item.colour),
  )
  const paths = lines ? stepLines : uPlot.paths.stepped?.({ align: 1 })
  const options = chartOptions(series, sizeOf(element), ink, paths, zone, drawn.props.current)
  options.hooks = {
    setCursor: [(chart) => (drawn.pointed.value = pointedStep(chart, drawn))],
    setSelect: [(chart) => takeSelection(chart, drawn)],
    ready: [(chart) => chart.over.addEventListener('click', () => pick(chart, drawn))],
  }
  return new uPlot(options, dataOf(drawn.props.current), element)
}

/** A line over each step that has a value. uPlot's own leaves out the step before a gap, so a lone one is invisible. */
const stepLines: uPlot.Series.PathBuilder = (chart, index, first, last) => {
  const stroke = new Path2D()
  const times = chart.data[0]
  const values = chart.data[index]!
  let isDown = false
  for (let step = first; step <= last && step + 1 < times.length; step++) {
    const value = values[step]
    if (value === null || value === undefined) {
      isDown = false
      continue
    }
    const y = chart.valToPos(value, 'y', true)
    const x = chart.valToPos(times[step]!, 'x', true)
    if (isDown) stroke.lineTo(x, y)
    else stroke.moveTo(x, y)
    stroke.lineTo(chart.valToPos(times[step + 1]!, 'x', true), y)
    isDown = true
  }
  return { stroke, fill: null, clip: null, flags: 1 }
}

function dataOf({ series, edges, lines }: StackChartProps): uPlot.AlignedData {
  return (lines ? apart : stacked)(series, edges) as uPlot.AlignedData
}

/** The step under the cursor; null outside. */
function pointedStep(chart: uPlot, drawn: Drawn): number | null {
  const { left = -1 } = chart.cursor
  return left < 0 ? null : stepAt(drawn.props.current.edges, chart.posToVal(left, 'x'))
}

/** A dragged range is widened to whole steps and becomes the page's range. */
function takeSelection(chart: uPlot, drawn: Drawn): void {
  const { left, width } = chart.select
  if (width <= 0) return
  const { edges } = drawn.props.current
  const [fromMs, toMs] = [left, left + width].map((px) => chart.posToVal(px, 'x')) as [number, number]
  const first = stepAt(edges, Math.max(fromMs, edges[0] ?? fromMs))
  const last = edges.findIndex((edge) => edge >= toMs)
  chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
  chooseSteps(edges, first, last === -1 ? edges.length - 1 : last)
}

/** From the start of one step to the start of another, or to the end. */
function chooseSteps(edges: readonly number[], first: number | null, until: number): void {
  const fromMs = edges[first ?? edges.length]
  const toMs = edges[until]
  if (fromMs !== undefined && toMs !== undefined && toMs > fromMs) chooseTimes(fromMs, toMs)
}

function pick(chart: uPlot, drawn: Drawn): void {
  const step = pointedStep(chart, drawn)
  const { series, onPick, lines } = drawn.props.current
  if (step === null) return
  if (lines) return onPick(step, null)
  const value = chart.posToVal(chart.cursor.top ?? 0, 'y')
  onPick(step, seriesAt(series, step, value))
}

/** Moves the cursor to a step or hides it, and shows the selection so far. */
function point(drawn: Drawn, step: number | null): void {
  const chart = drawn.chart.current
  const { edges } = drawn.props.current
  drawn.pointed.value = step
  if (step === null) drawn.anchor.value = null
  if (!chart) return
  const xOf = (edge: number): number => chart.valToPos(edges[edge] ?? 0, 'x')
  chart.setCursor({ left: step === null ? -10 : (xOf(step) + xOf(step + 1)) / 2, top: 10 }, false)
  const anchor = drawn.anchor.value
  const height = chart.over.clientHeight
  if (anchor === null || step === null) chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
  else {
    const from = Math.min(anchor, step)
    const to = Math.max(anchor, step) + 1
    chart.setSelect({ left: xOf(from), top: 0, width: xOf(to) - xOf(from), height }, false)
  }
}

function onKey(event: KeyboardEvent, drawn: Drawn): void {
  const { edges, onPick } = drawn.props.current
  const currentStep = drawn.pointed.value
  const last = edges.length - 2
  const moves: { [key: string]: number } = {
    ArrowLeft: currentStep === null ? last : Math.max(0, currentStep - 1),
    ArrowRight: currentStep === null ? 0 : Math.min(last, currentStep + 1),
    Home: 0,
    End: last,
  }
  const to = moves[event.key]
  if (to !== undefined) {
    drawn.anchor.value = event.shiftKey ? (drawn.anchor.value ?? currentStep ?? to) : null
    point(drawn, to)
  } else if (event.key === 'Escape' && currentStep !== null) point(drawn, null)
  else if (event.key === 'Enter' && currentStep !== null) {
    const anchor = drawn.anchor.value
    point(drawn, null)
    if (anchor === null) onPick(currentStep, null)
    else {
      const from = Math.min(anchor, currentStep)
      const until = Math.max(anchor, currentStep) + 1
      chooseSteps(edges, from, until)
    }
  } else return
  event.preventDefault()
  event.stopPropagation()
}

/** Cached per theme, because reading a style makes the browser compute the styles of the whole page. */
let inkCache = { theme: '', values: new Map<string, string>() }

/** `theme` is the visible theme. */
function readInk(host: HTMLElement, theme: string, tokens: readonly string[]): ChartInk {
  if (inkCache.theme !== theme) inkCache = { theme, values: new Map() }
  const { values } = inkCache
  const font = values.get('font') ?? getComputedStyle(host).fontFamily
  values.set('font', font)
  const colour = (token: string): string => {
    const value = values.get(token) ?? resolved(host, token)
    values.set(token, value)
    return value
  }
  return {
    line: colour('line'),
    text: colour('ink-3'),
    select: colour('accent-soft'),
    font: `11px ${font}`,
    colours: tokens.map(colour),
  }
}

/** A token's value depends on the theme and resolves only when it is used as a colour. */
function resolved(host: HTMLElement, token: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(--${token})`
  host.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}

/** The values of a step beside the pointer, and the same text for screen readers when the keyboard moves the cursor. */
interface StepTipProps extends ChartShape {
  series: Series[]
  edges: number[]
  endMs: number
  zone: string
  step: number | null
  anchor: number | null
  chart: RefObject<uPlot | null>
}

const rowsMax = 10

function StepTip(props: StepTipProps) {
  const { series, step, edges, zone, anchor, lines = false, showValue = count } = props
  const chart = props.chart.current
  if (step === null || !chart) return null
  // Counts of several steps are added. Measures are not.
  const [from, to] =
    anchor === null || lines ? [step, step] : [Math.min(anchor, step), Math.max(anchor, step)]
  const sumOf = (item: Series): number =>
    item.counts.slice(from, to + 1).reduce((sum, events) => sum + events, 0)
  // In the order of the stack, top first.
  const rows = series
    .map((item) => ({ ...item, sum: sumOf(item) }))
    .filter((row) => row.sum > 0 || (lines && row.sum === 0))
    .reverse()
  const total = rows.reduce((sum, row) => sum + row.sum, 0)
  const timeOf = (edge: number): number => edges[edge] ?? 0
  const x = chart.valToPos((timeOf(step) + timeOf(step + 1)) / 2, 'x') + chart.over.offsetLeft
  const right = x > chart.width / 2
  const running = timeOf(step + 1) > props.endMs
  return (
    <div
      class="step-tip panel"
      role="status"
      style={right ? { right: `${chart.width - x + 12}px` } : { left: `${x + 12}px` }}
    >
      <p class="muted">
        {stepName(timeOf(from), timeOf(to + 1), zone)}
        {running && ', so far'} <span class="zone-name">{zone}</span>
      </p>
      {!lines && (
        <p>
          <b>{showValue(total)}</b> total
        </p>
      )}
      {lines && rows.length === 0 && <p>No data</p>}
      <ul>
        {rows.slice(0, rowsMax).map((row) => (
          <li key={row.name}>
            <i class="series-mark" style={{ background: `var(--${row.colour})` }} />
            <Text value={row.name} max={28} />
            <b>{showValue(row.sum)}</b>
          </li>
        ))}
      </ul>
    </div>
  )
}
