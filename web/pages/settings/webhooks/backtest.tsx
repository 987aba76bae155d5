/** The alerts that the rule in the dialog would have raised in the last 30 days: chart, count and list. */
import './backtest.css'
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { webhookApi, type BacktestView, type RuleSettings } from '../../../api/webhook-api.ts'
import { Text } from '../../../components/text.tsx'
import { counted, shortTime } from '../../../text/format.ts'
import { measureText, type MeasureName } from './measure-rule.ts'

/** Typing pauses for this long before the rule is tested. */
const restMs = 350
const listed = 8

/** `definition` null: the rule has nothing that can be tested. */
export function Backtest({ definition }: { definition: RuleSettings | null }) {
  const backtestView = useSignal<BacktestView | null>(null)
  const problem = useSignal<string | null>(null)
  const text = JSON.stringify(definition)
  useEffect(() => {
    const ending = new AbortController()
    const timer = setTimeout(() => {
      if (definition === null) return
      webhookApi.backtest(definition, ending.signal).then(
        (answer) => {
          backtestView.value = answer
          problem.value = null
        },
        (error: unknown) => {
          if (!ending.signal.aborted) problem.value = error instanceof Error ? error.message : String(error)
        },
      )
    }, restMs)
    return () => {
      clearTimeout(timer)
      ending.abort()
    }
  }, [text])
  if (definition === null) return null
  return (
    <section class="backtest" aria-label="Back-test" aria-live="polite">
      <h3>Back-test</h3>
      {problem.value !== null && <p class="muted">{problem.value}</p>}
      {problem.value === null && backtestView.value !== null && (
        <Result view={backtestView.value} measure={definition.measure ?? 'count'} />
      )}
      {problem.value === null && backtestView.value === null && (
        <p class="muted">Testing the rule on past events…</p>
      )}
    </section>
  )
}

function Result({ view, measure }: { view: BacktestView; measure: MeasureName }) {
  const { fired, noisy, incidents, since, until, complete, group, groups } = view
  const days = Math.max(1, Math.round((Date.parse(until) - Date.parse(since)) / 86_400_000))
  const range = complete
    ? 'in the last 30 days'
    : `in the last ${counted(days, 'day')} with data that could be read`
  const judged = view.judgedSince !== null && (
    <p class="hint">
      Judge not recorded before {shortTime(Date.parse(view.judgedSince))}. Verdicts before are not compared.
    </p>
  )
  if (view.points.length === 0 && judged !== false) return judged
  if (view.points.length === 0)
    return (
      <p class="muted">There are no events to test the rule on. It is evaluated as soon as they arrive.</p>
    )
  if (view.points.every(({ expected }) => expected === null))
    return (
      <p class="muted">
        Less than two weeks of events are stored to compare with. The rule can fire once there are two weeks.
      </p>
    )
  return (
    <>
      <p>
        <strong class={noisy ? 'noisy' : ''}>Would have fired {counted(fired, 'time')}</strong> {range}.
        {noisy && ' Consider a higher threshold or a longer wait.'}
      </p>
      {judged}
      <Chart view={view} measure={measure} />
      {groups.length > 1 && (
        <p class="hint">
          Shown: <Text value={group} max={40} />, one of {groups.length} groups.
        </p>
      )}
      {incidents.length > 0 && (
        <ul class="backtest-alerts">
          {incidents.slice(0, listed).map((incident) => (
            <li key={`${incident.group} ${incident.from}`}>
              <span>{shortTime(Date.parse(incident.from))}</span>
              <span>{incident.to === null ? 'still firing' : lasted(incident.from, incident.to)}</span>
              <span>
                {incident.noData ? 'no events' : measureText(measure, incident.value)}
                {incident.expected !== null && ` (usually ${measureText(measure, incident.expected)})`}
              </span>
              {incident.group !== '' && <Text value={incident.group} max={32} />}
            </li>
          ))}
          {fired > listed && <li class="muted">{counted(fired - listed, 'more alert')}</li>}
        </ul>
      )}
    </>
  )
}

function lasted(from: string, to: string): string {
  const minutes = Math.round((Date.parse(to) - Date.parse(from)) / 60_000)
  const isInHours = minutes === 60 || minutes >= 120
  return isInHours ? counted(Math.round(minutes / 60), 'hour') : counted(minutes, 'minute')
}

const width = 720
const height = 120

/** Values as a line, the threshold or the usual range behind it, and the alerts as marked times. */
function Chart({ view, measure }: { view: BacktestView; measure: MeasureName }) {
  const { points, threshold, incidents, group } = view
  const firstMs = Date.parse(points[0]!.at)
  const lastMs = Date.parse(points.at(-1)!.at)
  const span = Math.max(1, lastMs - firstMs)
  const highs = points.map(({ value, high }) => Math.max(value ?? 0, high ?? 0))
  const top = Math.max(...highs, threshold ?? 0, measure === 'share' ? 0.01 : 1) * 1.05
  const x = (time: string) => Math.max(0, Math.min(width, ((Date.parse(time) - firstMs) / span) * width))
  const y = (value: number) => height - (value / top) * height
  const line = points
    .filter(({ value }) => value !== null)
    .map(({ at: time, value }, n) => `${n === 0 ? 'M' : 'L'}${x(time).toFixed(1)} ${y(value!).toFixed(1)}`)
  const groupIncidents = incidents.filter((incident) => incident.group === group)
  const highest = measureText(measure, Math.max(...points.map(({ value }) => value ?? 0)))
  const summary = `${counted(points.length, 'value')}, highest ${highest}, ${counted(groupIncidents.length, 'alert')}`
  return (
    <figure class="backtest-chart">
      <figcaption>{measureText(measure, top / 1.05)}</figcaption>
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={summary}>
        {groupIncidents.map(({ from, to }) => {
          const left = x(from)
          const right = to === null ? width : x(to)
          return <rect class="fired" x={left} y="0" width={Math.max(2, right - left)} height={height} />
        })}
        <path class="usual" d={band(points, x, y)} />
        {threshold !== null && <line class="limit" x1="0" x2={width} y1={y(threshold)} y2={y(threshold)} />}
        <path class="value" d={line.join('')} />
      </svg>
      <div class="backtest-times">
        <span>{shortTime(firstMs)}</span>
        <span>{shortTime(lastMs)}</span>
      </div>
    </figure>
  )
}

/** The range of values that a change is measured against. */
function band(
  points: BacktestView['points'],
  x: (time: string) => number,
  y: (value: number) => number,
): string {
  const usual = points.filter(({ low, high }) => typeof low === 'number' && typeof high === 'number')
  if (usual.length === 0) return ''
  const upper = usual.map(({ at: time, high }) => `${x(time).toFixed(1)} ${y(high!).toFixed(1)}`)
  const lower = usual.toReversed().map(({ at: time, low }) => `${x(time).toFixed(1)} ${y(low!).toFixed(1)}`)
  return `M${[...upper, ...lower].join('L')}Z`
}
