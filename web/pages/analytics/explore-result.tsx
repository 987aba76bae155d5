/** The answer of Explore as a chart or a table, each with a CSV file of exactly what it shows. */
import { type ExploreAnswer } from '../../api/api.ts'
import { now, zone } from '../../app/clock.ts'
import { query } from '../../app/router.ts'
import { ChartPanel, type Division } from '../../charts/chart-panel.tsx'
import { type Column, csvName, csvText, DataTable, download } from '../../charts/data-table.tsx'
import { Text, visibleText } from '../../components/text.tsx'
import { pageFilterName } from '../../../db/contract/event-fields.ts'
import { filterable, type LogsFilter, ValueLink } from '../../range/filters.tsx'
import { OtherRanges } from '../../range/other-ranges.tsx'
import { periodSentence, rangeWords } from '../../range/range.ts'
import { counted, isoWithOffset } from '../../text/format.ts'
import {
  byWord,
  explorationOf,
  leftOut,
  measureWords,
  rowsOf,
  seriesOf,
  shownView,
  stepCells,
} from './explore-model.ts'

export function Result({ answer }: { answer: ExploreAnswer }) {
  const { period, all: allNumbers, measure, by: dimension } = answer
  const { show, unit } = measureWords[measure]
  const shown = shownView({ ...explorationOf(query.value), measure })
  if (!period) return null
  const accuracyNotes = [
    allNumbers.error > 0 && unit !== 'ms' && `estimates, standard error ${percentText(allNumbers.error)}`,
    unit === 'ms' && 'accurate to 2 %',
  ].filter((note) => note !== false)
  const notes = [...accuracyNotes, leftOut(answer)].filter((note) => note !== null)
  return (
    <>
      <p class="period-line muted">
        {periodSentence(period, false)} <Total answer={answer} />
      </p>
      <Limits answer={answer} />
      {allNumbers.events === 0 ? (
        <Nothing answer={answer} />
      ) : shown === 'table' ? (
        <ResultTable answer={answer} about={[rangeWords(period), ...accuracyNotes].join(' · ')} />
      ) : (
        <>
          <ChartPanel
            what={measureWords[measure].name}
            period={period}
            divisions={[
              {
                name:
                  dimension === null ? 'total' : visibleText(byWord(pageFilterName(dimension))).slice(0, 60),
                series: seriesOf(answer),
                filterOf: (value) => logsFilterOf(dimension, value),
                ...ownFilter(dimension),
              },
            ]}
            filter={{}}
            lines={shown === 'lines'}
            // Counts have shorter words on an axis.
            {...((shown === 'lines' || unit !== undefined) && { showValue: show })}
            {...(notes.length > 0 && { note: notes.join(' · ') })}
          />
          <p class="explore-file">
            <button type="button" class="link-button" onClick={() => saveChart(answer)}>
              Save as CSV
            </button>
          </p>
        </>
      )}
    </>
  )
}

/** "≈ 1,034 distinct sessions." or "803 ms: 95 % of the durations are shorter." */
function Total({ answer: { measure, all: allNumbers } }: { answer: ExploreAnswer }) {
  const { show, about: description, unit } = measureWords[measure]
  if (allNumbers.total === null) return null
  const isEstimate = unit !== 'ms' && allNumbers.error > 0
  return (
    <>
      {isEstimate && '≈ '}
      <b>{show(allNumbers.total)}</b>
      {unit === undefined ? ` ${description}.` : `: ${description}.`}
    </>
  )
}

const percentText = (share: number): string => `${(share * 100).toFixed(share < 0.001 ? 3 : 1)} %`

/** The filter of Logs for a value; {} where Logs has none. */
function logsFilterOf(dimension: string | null, value: string): LogsFilter {
  const name = dimension === null ? '' : pageFilterName(dimension)
  const field = name === 'sessionId' ? 'sessionId' : filterable[name]?.logs
  return field == null ? {} : { [field]: value }
}

function ownFilter(dimension: string | null): Pick<Division, 'ownFilterOf'> {
  if (dimension === null || Object.keys(logsFilterOf(dimension, '')).length > 0) return {}
  return { ownFilterOf: (value) => ({ name: pageFilterName(dimension), value }) }
}

function Limits({ answer: { truncated, expired } }: { answer: ExploreAnswer }) {
  return (
    <>
      {truncated && (
        <p class="muted">
          This field has more values than can be counted individually. Values beyond the limit are in others,
          whatever their size. Add filters to see them.
        </p>
      )}
      {expired > 0 && (
        <p class="muted">
          Explore measures stored events only. Retention deleted up to {counted(expired, 'event')} in this
          range that may match.
        </p>
      )}
    </>
  )
}

function Nothing({ answer: { period, measure } }: { answer: ExploreAnswer }) {
  if (!period) return null
  const { name } = measureWords[measure]
  return (
    <section class="panel nothing-here">
      <h2>
        No {name.startsWith('p') ? 'durations' : name.toLowerCase()} {rangeWords(period)}
      </h2>
      {period.filters.length > 0 && <p class="muted">No events match these filters.</p>}
      <OtherRanges period={period} />
    </section>
  )
}

type Row = ReturnType<typeof rowsOf>[number]

function ResultTable({ answer, about: caption }: { answer: ExploreAnswer; about: string }) {
  const { measure, by: dimension, all: allNumbers, period } = answer
  const { name, show, isSum, unit } = measureWords[measure]
  const isEstimate = (row: Row): boolean => row.numbers.error > 0 && unit !== 'ms'
  const columns: Column<Row>[] = [
    {
      name: dimension === null ? 'All' : columnName(pageFilterName(dimension)),
      value: (row) => row.name,
      show: (row) => <RowName by={dimension} row={row} />,
    },
    {
      name,
      number: true,
      ...(unit !== undefined && { unit }),
      value: (row) => row.numbers.total,
      csv: (row) =>
        unit === 'ms' && row.numbers.total !== null
          ? Number(row.numbers.total.toPrecision(3))
          : row.numbers.total,
      show: (row) =>
        row.numbers.total === null ? '' : `${isEstimate(row) ? '≈ ' : ''}${show(row.numbers.total)}`,
    },
  ]
  if (isSum)
    columns.push({
      name: 'Share',
      number: true,
      unit: '%',
      value: (row) => (allNumbers.total ? (row.numbers.total ?? 0) / allNumbers.total : null),
      csv: (row) =>
        allNumbers.total ? Math.round(((row.numbers.total ?? 0) / allNumbers.total) * 10_000) / 100 : null,
      show: (row) =>
        allNumbers.total ? `${(((row.numbers.total ?? 0) / allNumbers.total) * 100).toFixed(1)} %` : '',
    })
  if (measure !== 'events' && measure !== 'errors')
    columns.push({ name: 'Events', number: true, value: (row) => row.numbers.events })
  return (
    <DataTable
      key={measure} // sorted by the measure
      title={
        dimension === null
          ? name
          : `${name} by ${visibleText(byWord(pageFilterName(dimension))).slice(0, 60)}`
      }
      about={caption}
      csv={{ page: 'explore', table: fileWord(answer), ...(period && { period }) }}
      rows={rowsOf(answer)}
      isRest={(row) => row.key === 'other'}
      keyOf={(row) => row.key}
      sortBy={name}
      columns={columns}
    />
  )
}

/** As in the other tables: "Vendor". The name of a member of metadata is not ours. */
function columnName(name: string): string {
  const word = byWord(name)
  return word === name && name.includes('.') ? name : word.charAt(0).toUpperCase() + word.slice(1)
}

function RowName({ by: dimension, row }: { by: string | null; row: Row }) {
  if (dimension === null || row.key === 'other') return <>{row.name}</>
  const name = row.key === 'missing' ? row.name : <Text value={row.name} max={48} />
  return <ValueLink filter={{ name: pageFilterName(dimension), value: row.value ?? '' }}>{name}</ValueLink>
}

const fileWord = ({ measure, by: dimension }: ExploreAnswer): string =>
  `${measure}${
    dimension === null
      ? ''
      : `-by-${pageFilterName(dimension)
          .replaceAll(/[^A-Za-z0-9]+/g, '-')
          .slice(0, 40)}`
  }`

/** The chart as a file: what it shows, with the total of each step where steps add up. */
function saveChart(answer: ExploreAnswer): void {
  const { period, measure } = answer
  if (!period) return
  const series = seriesOf(answer)
  const { unit } = measureWords[measure]
  const head = [
    `Time, ${zone.peek()}`,
    ...series.map(({ name }) => (unit === undefined ? name : `${name}, ${unit}`)),
  ]
  const cells = stepCells(series, period.edges, isoWithOffset)
  download(csvName({ page: 'explore', table: fileWord(answer), period }, now()), csvText(head, cells))
}
