/** A chart with its title, grouping and legend, and the same numbers as a table. */
import './chart.css'
import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import type { PeriodView } from '../api/api.ts'
import { isoTime } from '../app/clock.ts'
import { Text } from '../components/text.tsx'
import { count } from '../text/format.ts'
import { navigate } from '../app/router.ts'
import { perStep } from '../../server/text/time-zone.ts'
import { stepName } from '../range/range.ts'
import { type ChosenFilter, type LogsFilter, ValueLink, filterOfPart, logsHref } from '../range/filters.tsx'
import type { ChartShape, Series } from './chart-model.ts'
import { StackChart } from './stack-chart.tsx'

export interface Division {
  name: string // "class"
  series: Series[] // lowest first
  /** The events of a series, for Logs. */
  filterOf: (value: string) => LogsFilter
  /** The filter of the page for a series, where Logs has none. */
  ownFilterOf?: (value: string) => ChosenFilter
}

interface ChartPanelProps extends ChartShape {
  what: string // "Visits"
  period: PeriodView
  divisions: Division[] // the first is the default
  filter: LogsFilter // the events of the whole chart, for Logs
  note?: string // beside the title, such as the accuracy
}

export function ChartPanel({
  what: subject,
  period,
  divisions,
  filter,
  note,
  ...plotProps
}: ChartPanelProps) {
  const chosen = useSignal(divisions[0]?.name ?? '')
  const division = divisions.find((candidate) => candidate.name === chosen.value) ?? divisions[0]
  if (!division) return null
  const startMs = Date.parse(period.since)
  const endMs = Math.min(Date.parse(period.until), Math.max(startMs, Date.parse(period.now)))
  const { edges, zone } = period
  const title = `${subject} ${perStep(edges)}, by ${division.name}`
  const linkOf = (value: string | null, times: LogsFilter): string =>
    logsHref({ ...(value === null ? filter : division.filterOf(value)), siteIds: period.siteIds, ...times })
  const whole = { since: period.since, until: period.until }
  const empty = division.series.every((item) => item.counts.every((value) => !value))
  return (
    <section class="panel chart-panel">
      <header>
        <h2>{title}</h2>
        {divisions.length > 1 && !empty && (
          <Divide divisions={divisions} shown={division.name} chosen={chosen} />
        )}
        {!empty && (
          <small class="muted">
            {note !== undefined && `${note} · `}
            {zone} · drag to zoom
          </small>
        )}
      </header>
      {empty ? (
        <p class="muted chart-empty">No events in this range.</p>
      ) : (
        <>
          <ul class="legend">
            {division.series.map((item) => (
              <li key={item.name}>
                {item.value === null ? (
                  <span>
                    <SeriesName series={item} />
                  </span>
                ) : (
                  <LegendLink
                    filter={
                      division.ownFilterOf?.(item.value) ??
                      filterOfPart(division.filterOf(item.value), filter)
                    }
                    logs={division.ownFilterOf ? undefined : linkOf(item.value, whole)}
                  >
                    <SeriesName series={item} />
                  </LegendLink>
                )}
              </li>
            ))}
          </ul>
          <StackChart
            label={title}
            series={division.series}
            edges={edges}
            endMs={endMs}
            zone={zone}
            {...plotProps}
            onPick={(step, series) => {
              const [since = startMs, until = endMs] = edges.slice(step, step + 2)
              const times = { since: isoTime(since), until: isoTime(until) }
              navigate(linkOf(series?.value ?? null, times))
            }}
          />
          <AsTable series={division.series} edges={edges} zone={zone} title={title} {...plotProps} />
        </>
      )}
    </section>
  )
}

interface DivideProps {
  divisions: Division[]
  shown: string
  chosen: Signal<string>
}

function Divide({ divisions, shown, chosen }: DivideProps) {
  const group = useId()
  return (
    <fieldset class="divide">
      <legend class="visually-hidden">Group by</legend>
      {divisions.map(({ name }) => (
        <label key={name}>
          <input
            type="radio"
            name={group}
            class="visually-hidden"
            checked={name === shown}
            onChange={() => (chosen.value = name)}
          />
          {name}
        </label>
      ))}
    </fieldset>
  )
}

interface LegendLinkProps {
  filter: ChosenFilter | null
  logs: string | undefined
  children: ComponentChildren
}

function LegendLink(props: LegendLinkProps) {
  const { filter, logs, children } = props
  if (filter === null) return logs === undefined ? <span>{children}</span> : <a href={logs}>{children}</a>
  return (
    <ValueLink filter={filter} logs={logs}>
      {children}
    </ValueLink>
  )
}

function SeriesName({ series }: { series: Series }) {
  return (
    <>
      <i class="series-mark" style={{ background: `var(--${series.colour})` }} />
      <Text value={series.name} max={24} />
    </>
  )
}

interface AsTableProps extends ChartShape {
  title: string
  series: Series[]
  edges: number[]
  zone: string
}

/** Renders the cells only when the table is opened, or for print. */
function AsTable({ title, series, edges, zone, lines, showValue = count }: AsTableProps) {
  const shown = (value: number): string => (Number.isNaN(value) ? '' : showValue(value))
  const open = useSignal(false)
  return (
    <details onToggle={(event) => (open.value = event.currentTarget.open)}>
      <summary>Show as table</summary>
      {open.value && (
        <div class="data-scroll" tabIndex={0}>
          <table class="data-table" aria-label={title}>
            <thead>
              <tr>
                <th scope="col">Time, {zone}</th>
                {series.map((item) => (
                  <th key={item.name} scope="col" class="number">
                    <Text value={item.name} max={24} />
                  </th>
                ))}
                {!lines && (
                  <th scope="col" class="number">
                    All
                  </th>
                )}
              </tr>
            </thead>
            <tbody>
              {edges.slice(1).map((end, step) => (
                <tr key={step}>
                  <td>{stepName(edges[step] ?? end, end, zone)}</td>
                  {series.map((item) => (
                    <td key={item.name} class="number">
                      {shown(item.counts[step] ?? 0)}
                    </td>
                  ))}
                  {!lines && (
                    <td class="number">
                      {showValue(series.reduce((sum, item) => sum + (item.counts[step] ?? 0), 0))}
                    </td>
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  )
}
