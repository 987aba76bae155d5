/** The histogram above Logs: events over time by outcome. Dragging selects a time range. */
import { useQuery } from '../../query/use-query.ts'
import { useComputed } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { api, type EventFilter, type Histogram as Counts } from '../../api/api.ts'
import { colourOf, type ColourOf, type Series } from '../../charts/chart-model.ts'
import { StackChart } from '../../charts/stack-chart.tsx'
import { isoTime, zone } from '../../app/clock.ts'
import { filterParams } from '../../api/event-shapes.ts'
import { counted, duration, fullTime } from '../../text/format.ts'
import { navigate, place, query, withQuery } from '../../app/router.ts'
import type { Query } from '../../query/query.ts'
import type { LogsModel } from './model.ts'

/** While events arrive, the bars are fetched at most every 4 s. */
const restMs = 4_000

export const histogramQuery = (filter: EventFilter): Query<Counts> => ({
  key: `histogram?${filterParams(filter)}&zone=${zone.value}`,
  fetch: (signal) => api.histogram(filter, zone.peek(), signal),
})

/** The bars of exactly this filter. None are drawn until they have loaded. */
export function Histogram({ model, filter }: { model: LogsModel; filter: EventFilter }) {
  const moved = useComputed(() => [model.entries.value, model.waiting.value])
  const { data: counts } = useQuery(histogramQuery(filter), moved.value, { restMs })
  // Rows change ten times per second. The chart renders only when the bars change.
  return useMemo(() => (counts ? <Drawn shown={counts} /> : <NoBars />), [counts])
}

const unitsByMs: { readonly [ms: number]: string } = {
  60_000: 'minute',
  3_600_000: 'hour',
  86_400_000: 'day',
}

/** The label after "one bar per": 3600000 → "hour", 600000 → "10 min". */
const stepText = (stepMs: number): string => unitsByMs[stepMs] ?? duration(stepMs)

const NoBars = () => <div class="panel histogram" aria-busy="true" />

function Drawn({ shown }: { shown: Counts }) {
  const series = useMemo(() => histogramSeries(shown.counts, colourOf), [shown])
  const { stepMs, edges } = shown
  const startMs = edges[0] ?? 0
  const untilMs = edges.at(-1) ?? startMs
  const span = `${fullTime(startMs)} to ${fullTime(untilMs)}`
  const label = `${counted(shown.total, 'event')}, one bar per ${stepText(stepMs)}, ${span}`
  return (
    <section class="panel histogram" aria-label="Events over time">
      <p class="muted">
        {shown.total === 0 ? 'No events' : counted(shown.total, 'event')}{' '}
        {query.value.has('since') ? 'in this range' : 'in the last 24 hours'}
        {shown.total > 0 && `, one bar per ${stepText(stepMs)}. Drag to select a time range`}.
        {!shown.complete &&
          ` Only the newest events were counted, back to ${fullTime(Date.parse(shown.lookedSince))}.`}{' '}
        <span class="zone-name">{zone.value}</span>
      </p>
      {series.length > 0 && (
        <StackChart
          label={label}
          series={series}
          edges={edges}
          endMs={untilMs}
          zone={zone.value}
          onPick={(step) => {
            const currentPlace = place.peek()
            const [since = startMs, until = untilMs] = edges.slice(step, step + 2)
            const times = { since: [isoTime(since)], until: [isoTime(until)], event: [] }
            navigate(currentPlace.path + withQuery(currentPlace.search, times))
          }}
        />
      )}
    </section>
  )
}

/** Counts by outcome as series of the chart, successes at the bottom. */
const order = ['success', 'blocked', 'error']
const ownMax = 6

function histogramSeries(counts: { [outcome: string]: number[] }, colourOf: ColourOf): Series[] {
  const place = (name: string): number => (order.includes(name) ? order.indexOf(name) : order.length)
  const sum = (steps: number[]): number => steps.reduce((total, count) => total + count, 0)
  const outcomeEntries = Object.entries(counts)
    .filter(([, steps]) => sum(steps) > 0)
    .sort(([a, x], [b, y]) => place(a) - place(b) || sum(y) - sum(x) || (a < b ? -1 : 1))
  const series: Series[] = outcomeEntries
    .slice(0, ownMax)
    .map(([name, steps], index) => ({ name, value: name, colour: colourOf(name, index), counts: steps }))
  const otherEntries = outcomeEntries.slice(ownMax)
  if (otherEntries.length === 0) return series
  const first = otherEntries[0]?.[1] ?? []
  const otherSteps = first.map((_, step) =>
    otherEntries.reduce((total, [, steps]) => total + (steps[step] ?? 0), 0),
  )
  return [...series, { name: 'others', value: null, colour: 'class-other', counts: otherSteps }]
}
