/** How the shown events lie in time; dragging chooses a time, clicking a bar looks closer. */
import type { Query } from '../../query/query.ts'
import { useQuery } from '../../query/use-query.ts'
import { useComputed } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { api, type EventFilter, type Histogram as Counts } from '../../api/api.ts'
import { colourOf } from '../../charts/series.ts'
import { StackChart } from '../../charts/stack-chart.tsx'
import { isoTime } from '../../app/clock.ts'
import { filterParams } from '../../api/filter-params.ts'
import { counted, duration, fullTime } from '../../text/format.ts'
import { navigate, place, query, withQuery } from '../../app/router.ts'
import { zone } from '../../app/zone.ts'
import { histogramSeries } from './histogram-series.ts'
import type { LogsModel } from './model.ts'

/** While events arrive, the bars are fetched at most every 4 s. */
const restMs = 4_000

export const histogramQuery = (filter: EventFilter): Query<Counts> => ({
  key: `histogram?${filterParams(filter)}&zone=${zone.value}`,
  fetch: (signal) => api.histogram(filter, zone.peek(), signal),
})

/** Only ever the bars of this very filter: until its own are there, none are drawn. */
export function Histogram({ model, filter }: { model: LogsModel; filter: EventFilter }) {
  const moved = useComputed(() => [model.entries.value, model.waiting.value])
  const { data: found } = useQuery(histogramQuery(filter), moved.value, { restMs })
  // Rows come ten times a second; the bars are drawn when they are others.
  return useMemo(() => (found ? <Drawn shown={found} /> : <NoBars />), [found])
}

const unitsByMs: { readonly [ms: number]: string } = {
  60_000: 'minute',
  3_600_000: 'hour',
  86_400_000: 'day',
}

/** 3600000 → "hour", 600000 → "10 min": what follows "one bar per". */
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
            const here = place.peek()
            const [since = startMs, until = untilMs] = edges.slice(step, step + 2)
            const times = { since: [isoTime(since)], until: [isoTime(until)], event: [] }
            navigate(here.path + withQuery(here.search, times))
          }}
        />
      )}
    </section>
  )
}
