/** A breakdown by the values of a field: as bars, each a link to its events, and as rows and columns of a table. */
import './breakdown.css'
import { Text } from '../components/text.tsx'
import { count } from '../text/format.ts'
import { type ChosenFilter, ValueLink } from '../range/filters.tsx'
import { colourOf } from './chart-model.ts'
import { measures } from '../text/measures.ts'
import { ChangeMark, changeOf, percent, shareOf } from './headlines.tsx'
import { changeCell, type Column, percentCell } from './data-table.tsx'
import type { ComponentChildren } from 'preact'
import type { BreakdownView, BreakdownRow, EventCounts } from '../api/api.ts'

interface Bar {
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

/** The largest values as bars; the rest is summed in one row. */
export function Bars({ title, unit, bars, rest: remainder, restName, empty, wide }: BarsProps) {
  const max = wide ? 64 : 26
  const shown = bars.slice(0, barsMax)
  const remainingCount = bars.slice(barsMax).reduce((sum, bar) => sum + bar.count, remainder.count)
  const names = remainder.names + Math.max(0, bars.length - barsMax)
  const highest = Math.max(1, ...shown.map((bar) => bar.count))
  return (
    <section class={wide ? 'panel bars wide' : 'panel bars'}>
      <header>
        <h2>{title}</h2>
        <small class="muted">{unit}</small>
      </header>
      {shown.length === 0 && remainingCount === 0 && <p class="muted">{empty ?? 'No data in this range.'}</p>}
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
        {remainingCount > 0 && (
          <li class="muted">
            <span class="bar-name">{restName ?? (names > 0 ? `${count(names)} more` : 'others')}</span>
            <span class="bar-track" />
            <b>{count(remainingCount)}</b>
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
  breakdown: BreakdownView,
  options: {
    by: string // the filter for its values
    href: (value: string) => string | undefined // undefined: Logs has no such filter
    colour?: (value: string, index: number) => string
  },
): Bar[] {
  return breakdown.rows
    .filter((row) => row.value !== null && row.count > 0)
    .map((row, index) => {
      const value = row.value ?? ''
      const colour = (options.colour ?? colourOf)(value, index)
      const href = options.href(value)
      const bar = { key: value, name: value, colour, count: row.count, filter: { name: options.by, value } }
      return href === undefined ? bar : { ...bar, href }
    })
}

/** Events without a bar: values beyond the limits, and events without the field. */
export function breakdownRest(
  breakdown: BreakdownView,
  whole: Pick<EventCounts, 'count'>,
): { names: number; count: number } {
  const barred = breakdown.rows.reduce((sum, row) => sum + (row.value === null ? 0 : row.count), 0)
  return { names: breakdown.more?.values ?? 0, count: Math.max(0, whole.count - barred) }
}

export function countOf(breakdown: BreakdownView, ...values: string[]): { count: number; before: number } {
  const rows = breakdown.rows.filter((row) => row.value !== null && values.includes(row.value))
  return {
    count: rows.reduce((sum, row) => sum + row.count, 0),
    before: rows.reduce((sum, row) => sum + row.before, 0),
  }
}

/** Values of this period with their previous counts. */
export function distinct(breakdown: BreakdownView): { now: number; before: number; fresh: number } {
  const namedRows = breakdown.rows.filter((row) => row.value !== null)
  const hiddenCount = breakdown.more?.values ?? 0
  return {
    now: namedRows.filter((row) => row.count > 0).length + hiddenCount,
    before: namedRows.filter((row) => row.before > 0).length,
    fresh: namedRows.filter((row) => row.count > 0 && row.before === 0).length,
  }
}

/** The previous count and the change since: sorted by amount, shown in percent on the page and in CSV. */
export function changeColumns<Row extends { count: number; before: number }>(): Column<Row>[] {
  return [
    { name: 'Before', number: true, value: (row) => row.before },
    {
      name: 'Change',
      number: true,
      unit: '%',
      value: (row) => row.count - row.before,
      csv: (row) => changeCell(row.count, row.before),
      show: (row) => {
        const change = changeOf(row.count, row.before)
        return change.text === 'new' ? 'new' : <ChangeMark change={change} />
      },
    },
  ]
}

/** A share from 0 to 1. */
export function shareColumn<Row>(name: string, share: (row: Row) => number | null): Column<Row> {
  return {
    name,
    number: true,
    unit: '%',
    value: share,
    csv: (row) => percentCell(share(row)),
    show: (row) => percent(share(row)),
  }
}

const outcomeOf = ({ outcomes }: BreakdownRow, outcome: string): number =>
  Object.hasOwn(outcomes, outcome) ? (outcomes[outcome] ?? 0) : 0

/** Successful and failed events, and the share of successes. */
export function acceptedColumns(): Column<BreakdownRow>[] {
  const failed = (row: BreakdownRow): number => row.count - outcomeOf(row, 'success')
  return [
    { name: measures.accepted.name, number: true, value: (row) => outcomeOf(row, 'success') },
    { name: measures.notAccepted.name, number: true, value: failed },
    shareColumn(`Share ${measures.notAccepted.name.toLowerCase()}`, (row) => shareOf(failed(row), row.count)),
  ]
}

/** Events with the outcome blocked, whatever the decision was. */
export const blockedColumns: Column<BreakdownRow>[] = [
  { name: measures.blocked.name, number: true, value: (row) => outcomeOf(row, 'blocked') },
  shareColumn(`Share ${measures.blocked.name.toLowerCase()}`, (row) =>
    shareOf(outcomeOf(row, 'blocked'), row.count),
  ),
]

/** A row of a table of values: a value, the rest beyond 1,000 values per hour, or the events without the field. */
export interface ValueRow extends BreakdownRow {
  kind: 'value' | 'others' | 'missing'
}

/** All rows of a breakdown and one for the rest, so that the column adds up to the page's total. */
export function valueRows(breakdown: BreakdownView, whole: EventCounts): ValueRow[] {
  const rows: ValueRow[] = breakdown.rows
    .filter((row) => row.count > 0 || row.before > 0)
    .map((row) => ({ ...row, kind: row.value === null ? 'others' : 'value' }))
  const sum = (measure: 'count' | 'before') =>
    rows.reduce((total, row) => total + row[measure], breakdown.more?.[measure] ?? 0)
  const missingCount = Math.max(0, whole.count - sum('count'))
  if (missingCount === 0) return rows
  const outcomes: BreakdownRow['outcomes'] = {}
  // The outcomes of values without a row are not known per value.
  if (breakdown.more === null) {
    for (const [outcome, counts] of Object.entries(whole.outcomes)) {
      const remainingCount = rows.reduce((total, row) => total - outcomeOf(row, outcome), counts.count)
      if (remainingCount > 0) outcomes[outcome] = remainingCount
    }
  }
  const missingBefore = Math.max(0, whole.before - sum('before'))
  return [
    ...rows,
    { kind: 'missing', value: null, count: missingCount, before: missingBefore, outcomes, steps: null },
  ]
}

/** The name of a row of `valueRows`, also in CSV: "(no vendor)". */
export function valueName({ kind, value }: Pick<ValueRow, 'kind' | 'value'>, noun: string): string {
  return kind === 'value' ? (value ?? '') : kind === 'others' ? '(others)' : `(no ${noun})`
}
