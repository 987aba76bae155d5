/** The largest values of a field as bars, each a link to its events; the rest is summed in one row. */
import './breakdown.css'
import { Text } from '../components/text.tsx'
import { count } from '../text/format.ts'
import { ValueLink } from '../range/value-link.tsx'
import { colourOf } from './chart-model.ts'
import type { ComponentChildren } from 'preact'
import type { ChosenFilter } from '../range/filters.tsx'
import type { Cut, Tally } from '../api/api.ts'

export interface Bar {
  key: string
  name: string
  mark?: ComponentChildren
  colour: string // token
  count: number
  href?: string // of its events in Logs
  filter?: ChosenFilter // the filter that a click adds to the page
}

interface BarsProps {
  title: string
  unit: string
  bars: Bar[] // most first
  rest: { names: number; count: number } // values without a bar
  restName?: string
  empty?: string
  /** Names are sentences, shown above their bars. */
  wide?: boolean
}

const barsMax = 8

export function Bars({ title, unit, bars, rest, restName, empty, wide }: BarsProps) {
  const max = wide ? 64 : 26
  const shown = bars.slice(0, barsMax)
  const left = bars.slice(barsMax).reduce((sum, bar) => sum + bar.count, rest.count)
  const names = rest.names + Math.max(0, bars.length - barsMax)
  const highest = Math.max(1, ...shown.map((bar) => bar.count))
  return (
    <section class={wide ? 'panel bars wide' : 'panel bars'}>
      <header>
        <h2>{title}</h2>
        <small class="muted">{unit}</small>
      </header>
      {shown.length === 0 && left === 0 && <p class="muted">{empty ?? 'No data in this range.'}</p>}
      <ul>
        {shown.map((bar) => (
          <li key={bar.key}>
            <span class="bar-name">
              {bar.mark}
              <BarName bar={bar} max={max} />
            </span>
            <Track share={bar.count / highest} colour={bar.colour} />
            <b>{count(bar.count)}</b>
          </li>
        ))}
        {left > 0 && (
          <li class="muted">
            <span class="bar-name">{restName ?? (names > 0 ? `${count(names)} more` : 'others')}</span>
            <span class="bar-track" />
            <b>{count(left)}</b>
          </li>
        )}
      </ul>
    </section>
  )
}

function BarName({ bar, max }: { bar: Bar; max: number }) {
  const name = <Text value={bar.name} max={max} />
  if (bar.filter) {
    return (
      <ValueLink filter={bar.filter} logs={bar.href}>
        {name}
      </ValueLink>
    )
  }
  return bar.href === undefined ? name : <a href={bar.href}>{name}</a>
}

function Track({ share, colour }: { share: number; colour: string }) {
  return (
    <span class="bar-track" aria-hidden="true">
      <i style={{ width: `${share * 100}%`, background: `var(--${colour})` }} />
    </span>
  )
}

/** Bars of the values of a breakdown. */
export function breakdownBars(
  cut: Cut,
  of: {
    by: string // the filter for its values
    href: (value: string) => string | undefined // undefined: Logs has no such filter
    colour?: (value: string, index: number) => string
  },
): Bar[] {
  return cut.rows
    .filter((row) => row.value !== null && row.count > 0)
    .map((row, index) => {
      const value = row.value ?? ''
      const colour = (of.colour ?? colourOf)(value, index)
      const href = of.href(value)
      const bar = { key: value, name: value, colour, count: row.count, filter: { name: of.by, value } }
      return href === undefined ? bar : { ...bar, href }
    })
}

/** Events without a bar: values beyond the limits, and events without the field. */
export function breakdownRest(cut: Cut, whole: Pick<Tally, 'count'>): { names: number; count: number } {
  const barred = cut.rows.reduce((sum, row) => sum + (row.value === null ? 0 : row.count), 0)
  return { names: cut.more?.values ?? 0, count: Math.max(0, whole.count - barred) }
}

export function countOf(cut: Cut, ...values: string[]): { count: number; before: number } {
  const rows = cut.rows.filter((row) => row.value !== null && values.includes(row.value))
  return {
    count: rows.reduce((sum, row) => sum + row.count, 0),
    before: rows.reduce((sum, row) => sum + row.before, 0),
  }
}

/** Values of this period with their previous counts. */
export function distinct(cut: Cut): { now: number; before: number; fresh: number } {
  const named = cut.rows.filter((row) => row.value !== null)
  const more = cut.more?.values ?? 0
  return {
    now: named.filter((row) => row.count > 0).length + more,
    before: named.filter((row) => row.before > 0).length,
    fresh: named.filter((row) => row.count > 0 && row.before === 0).length,
  }
}
