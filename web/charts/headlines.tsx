/** The headline numbers of a page, and how a number compares with the period before, without false precision. */
import './headlines.css'
import { count } from '../text/format.ts'
import { query } from '../app/router.ts'
import { choiceOf, compares, lengthName, rangeWords } from '../range/range.ts'
import type { PeriodView } from '../api/api.ts'
import type { Measure } from '../text/measures.ts'

export type Headline = { name: string; note?: string; href?: string } & (
  | { kind: 'count'; now: number | null; before: number | null } // null: no value
  | { kind: 'share'; now: number | null; before: number | null }
)

/** The value of a measure and of the previous period. */
export function countLine(
  { name }: Pick<Measure, 'name'>,
  { count: now, before: previousCount }: { count: number; before: number | null },
): Headline & { kind: 'count' } {
  return { kind: 'count', name, now, before: previousCount }
}

export function Headlines({ period, lines }: { period: PeriodView; lines: Headline[] }) {
  const compare = compares(period, choiceOf(query.value))
  return (
    <dl class="headlines panel">
      {lines.map((line) => (
        <div key={line.name}>
          <dt>
            <span>{line.name}</span>
            <span class="visually-hidden"> {rangeWords(period)}</span>
          </dt>
          <dd>
            <strong>
              <Value line={line} />
            </strong>
            <small>
              {compare && line.before !== null && <Compared line={line} period={period} />}
              {line.note !== undefined && <span>{line.note}</span>}
            </small>
          </dd>
        </div>
      ))}
    </dl>
  )
}

function Value({ line }: { line: Headline }) {
  const shown = line.kind === 'share' ? percent(line.now) : line.now === null ? '–' : count(line.now)
  return line.href === undefined ? <>{shown}</> : <a href={line.href}>{shown}</a>
}

function Compared({ line, period }: { line: Headline; period: PeriodView }) {
  const previousCount = line.before ?? 0
  const change =
    line.kind === 'count' ? changeOf(line.now ?? 0, previousCount) : pointsOf(line.now, line.before)
  if (change.text === '') return null
  const from = line.kind === 'count' ? count(previousCount) : percent(line.before)
  return (
    <span class="change" title={`${from} in the ${lengthName(period)} before`}>
      <ChangeMark change={change} /> {change.text === 'new' ? 'none before' : `from ${from}`}
    </span>
  )
}

const arrowWords = { '▲': 'up', '▼': 'down', '': '' } as const

/** The arrow is visual; screen readers get the word. */
export function ChangeMark({ change }: { change: Change }) {
  if (change.arrow === '') return change.text === 'new' ? null : <>{change.text}</>
  return (
    <b>
      <span aria-hidden="true">{change.arrow}</span>
      <span class="visually-hidden">{arrowWords[change.arrow]}</span> {change.text}
    </b>
  )
}

/** How a number compares with the period before, without false precision. */
interface Change {
  arrow: '▲' | '▼' | ''
  text: string
}

/** "▲ 18 %"; "new" without a previous value; "12×" for large factors. */
export function changeOf(now: number, previousCount: number): Change {
  if (now === previousCount) return { arrow: '', text: now === 0 ? '' : 'no change' }
  if (previousCount === 0) return { arrow: '', text: 'new' }
  const arrow = now > previousCount ? '▲' : '▼'
  if (now >= 11 * previousCount) return { arrow, text: `${count(Math.round(now / previousCount))}×` }
  const percent = Math.round((Math.abs(now - previousCount) / previousCount) * 100)
  return { arrow, text: percent === 0 ? 'under 1 %' : `${percent} %` }
}

/** The change of a share from 0 to 1: "▲ 3 pts", computed from the rounded percentages. Null: no share. */
export function pointsOf(now: number | null, previousShare: number | null): Change {
  if (now === null || previousShare === null) return { arrow: '', text: '' }
  const points = Math.round(now * 100) - Math.round(previousShare * 100)
  if (points === 0) return { arrow: '', text: 'no change' }
  return {
    arrow: points > 0 ? '▲' : '▼',
    text: `${Math.abs(points)} ${points * points === 1 ? 'pt' : 'pts'}`,
  }
}

export function shareOf(part: number, whole: number): number | null {
  return whole === 0 ? null : part / whole
}

/** "61 %"; "under 1 %" and "over 99 %" where rounding would mislead; "–" for a share of nothing. */
export function percent(share: number | null): string {
  if (share === null) return '–'
  if (share > 0 && share < 0.005) return 'under 1 %'
  if (share < 1 && share > 0.995) return 'over 99 %'
  return `${Math.round(share * 100)} %`
}
