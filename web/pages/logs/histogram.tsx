/** How the shown events lie in time; dragging chooses a time, clicking a bar looks closer. */
import { useComputed, useSignal, useSignalEffect } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { ApiError, api, type EventFilter, type Histogram as Counts } from '../../api.ts'
import { colourOf, type Series } from '../../charts/series.ts'
import { StackChart } from '../../charts/stack-chart.tsx'
import { isoTime } from '../../clock.ts'
import { filterParams } from '../../filter-params.ts'
import { counted, duration, utcTime } from '../../format.ts'
import { navigate, place, query, withQuery } from '../../router.ts'
import type { Question } from '../../range/questions.ts'
import { recall, remember } from '../../seen.ts'
import { histogramSeries } from './histogram-series.ts'
import type { LogsModel } from './model.ts'

/** While events come the bars follow at most so often. */
const againMs = 4_000

export const histogramOf = (filter: EventFilter): Question<Counts> => ({
  text: `histogram?${filterParams(filter)}`,
  ask: (signal) => api.histogram(filter, signal),
})

export function Histogram({ model, filter }: { model: LogsModel; filter: EventFilter }) {
  const counts = useSignal(recall<Counts>(histogramOf(filter).text))
  const asked = useSignal({ text: '', atMs: Number.NEGATIVE_INFINITY })
  const timer = useSignal(0)
  const running = useSignal(new AbortController())
  const text = useComputed(() => `${JSON.stringify(filter)}${query.value.get('q') ?? ''}`)
  const load = async (): Promise<void> => {
    running.peek().abort()
    running.value = new AbortController()
    const stop = running.peek().signal
    asked.value = { text: text.peek(), atMs: performance.now() }
    try {
      const question = histogramOf(filter)
      const found = await question.ask(stop)
      if (stop.aborted) return
      remember(question.text, found)
      counts.value = found
    } catch (error) {
      // The table says what is wrong; bars that are a little old do no harm.
      if (!(error instanceof ApiError) && !stop.aborted) throw error
    }
  }
  useEffect(() => void load(), [text.value])
  useSignalEffect(() => {
    void model.entries.value
    void model.waiting.value
    if (timer.peek() !== 0) return
    const dueMs = Math.max(0, asked.peek().atMs + againMs - performance.now())
    timer.value = Number(
      setTimeout(() => {
        timer.value = 0
        void load()
      }, dueMs),
    )
  })
  useEffect(
    () => () => {
      clearTimeout(timer.peek())
      running.peek().abort()
    },
    [],
  )
  const shown = counts.value
  if (!shown) return <div class="panel histogram" aria-busy="true" />
  return <Drawn shown={shown} series={histogramSeries(shown.counts, colourOf)} />
}

function Drawn({ shown, series }: { shown: Counts; series: Series[] }) {
  const startMs = Date.parse(shown.since)
  const untilMs = Date.parse(shown.until)
  const { stepMs } = shown
  const span = `${utcTime(startMs)} to ${utcTime(untilMs)}`
  const label = `${counted(shown.total, 'event')} in steps of ${duration(stepMs)}, ${span}`
  return (
    <section class="panel histogram" aria-label="Events over time">
      <p class="muted">
        {counted(shown.total, 'event')}
        {query.value.has('since') ? ' in this time' : ' in the last day'}, a bar for {duration(stepMs)}. Drag
        to choose a time.
        {!shown.complete && ` The newest were counted, back to ${utcTime(Date.parse(shown.lookedSince))}.`}
      </p>
      {series.length > 0 && (
        <StackChart
          label={label}
          series={series}
          startMs={startMs}
          stepMs={stepMs}
          steps={Math.round((untilMs - startMs) / stepMs)}
          endMs={untilMs}
          onPick={(step) => {
            const here = place.peek()
            const since = startMs + step * stepMs
            const times = { since: [isoTime(since)], until: [isoTime(since + stepMs)], event: [] }
            navigate(here.path + withQuery(here.search, times))
          }}
        />
      )}
    </section>
  )
}
