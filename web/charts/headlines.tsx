/** The headline numbers of a page: value, change, and the value of the period before. */
import './headlines.css'
import type { PeriodView } from '../api/api.ts'
import { count } from '../text/format.ts'
import type { Measure } from '../text/measures.ts'
import { query } from '../app/router.ts'
import { choiceOf, compares, lengthName, rangeWords } from '../range/range.ts'
import { type Change, changeOf, percent, pointsOf } from './change.ts'

export type Headline = { name: string; note?: string; href?: string } & (
  | { kind: 'count'; now: number | null; before: number | null } // null: no value
  | { kind: 'share'; now: number | null; before: number | null }
)

/** The value of a measure and of the previous period. */
export function countLine(
  { name }: Pick<Measure, 'name'>,
  { count: now, before }: { count: number; before: number | null },
): Headline & { kind: 'count' } {
  return { kind: 'count', name, now, before }
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
  const before = line.before ?? 0
  const change = line.kind === 'count' ? changeOf(line.now ?? 0, before) : pointsOf(line.now, line.before)
  if (change.text === '') return null
  const from = line.kind === 'count' ? count(before) : percent(line.before)
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
