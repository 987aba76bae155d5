/** The largest values of a member as bars, each leading to its events; what has no room is summed in one. */
import './bars.css'
import type { ComponentChildren } from 'preact'
import { Text } from '../components/text.tsx'
import { count } from '../text/format.ts'
import type { ChosenFilter } from '../range/filters.ts'
import { ValueLink } from '../range/value-link.tsx'

export interface Bar {
  key: string
  name: string
  mark?: ComponentChildren
  colour: string // token
  count: number
  href?: string // of its events in Logs
  filter?: ChosenFilter // by which the page is filtered in place
}

interface BarsProps {
  title: string
  unit: string
  bars: Bar[] // most first
  rest: { names: number; count: number } // what the bars do not show
  restName?: string
  empty?: string
  /** Names are sentences and stand above their bars. */
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
