/** The table of tools: cost, use and findings, one row per tool. */
import { ChangeMark, changeOf, percent, shareOf } from '../../charts/headlines.tsx'
import { type Column, type CsvFile, DataTable, changeCell, sketchedCell } from '../../charts/data-table.tsx'
import { shareColumn } from '../../charts/breakdown.tsx'
import { now } from '../../app/clock.ts'
import { Text } from '../../components/text.tsx'
import { ago, count, exactDuration, fullTime, utcTime } from '../../text/format.ts'
import { measures } from '../../text/measures.ts'
import { navigate, place, withQuery } from '../../app/router.ts'
import { findingNames } from './lint.ts'
import type { ToolRow } from './rows.ts'
import { hourMs } from '../../../db/contract/units.ts'

function toolHref(siteId: string, name: string): string {
  return place.value.path + withQuery(place.value.search, { site: [siteId], tool: [name] })
}

interface ToolTableProps {
  rows: ToolRow[]
  all: number
  showSite: boolean
  compare: boolean
  csv: CsvFile<ToolRow>
}

export function ToolTable({ rows, all: totalCount, showSite, compare, csv }: ToolTableProps) {
  return (
    <DataTable
      title="Tools"
      firstRows={6}
      about={
        rows.length === totalCount
          ? `${count(totalCount)} registered or called`
          : `${count(rows.length)} of ${count(totalCount)}`
      }
      csv={csv}
      columns={columnsOf(showSite, compare)}
      rows={rows}
      keyOf={(row) => `${row.siteId}\n${row.name}`}
      sortBy="Tokens"
      onOpen={(row) => !row.isRest && navigate(toolHref(row.siteId, row.name))}
      empty="No tools match these filters."
    />
  )
}

function columnsOf(showSite: boolean, compare: boolean): Column<ToolRow>[] {
  const site: Column<ToolRow> = {
    name: 'Site',
    value: (row) => row.siteId,
    show: (row) => <Text value={row.siteId} max={24} />,
  }
  const change: Column<ToolRow> = {
    name: 'Change',
    unit: '%',
    value: (row) => row.calls - row.before,
    csv: (row) => changeCell(row.calls, row.before),
    show: (row) => <CallsChange row={row} />,
    number: true,
  }
  return [
    { name: 'Tool', value: (row) => row.name, show: (row) => <ToolName row={row} /> },
    {
      name: 'Findings',
      value: (row) => row.findings.length || null,
      show: (row) => <Findings row={row} />,
    },
    ...(showSite ? [site] : []),
    {
      name: 'Page',
      value: (row) => row.page || null,
      show: (row) => row.page !== '' && <Text value={row.page} max={24} mono />,
    },
    {
      name: 'Tokens',
      value: (row) => (row.registered ? row.tokens : null),
      show: (row) => row.registered && <Tokens row={row} />,
      number: true,
    },
    { name: measures.toolCalls.name, value: (row) => row.calls, number: true },
    ...(compare ? [change] : []),
    {
      ...shareColumn<ToolRow>('Error rate', (row) => shareOf(row.errors, row.calls)),
      show: (row) => (row.calls === 0 ? '' : percent(shareOf(row.errors, row.calls))),
    },
    took('p50', 'Median duration', (row) => row.took?.p50Ms),
    took('p95', '95th percentile of the duration', (row) => row.took?.p95Ms),
    {
      name: 'Last called',
      time: true,
      unit: 'hour',
      value: (row) => row.lastHour,
      show: (row) => <LastCalled row={row} />,
    },
    {
      name: 'Version',
      value: (row) => (row.registered ? row.version : null),
      number: true,
    },
  ]
}

/** Accurate to 2 %. CSV has milliseconds with the significant digits. */
function took(
  name: string,
  says: string,
  readValue: (row: ToolRow) => number | null | undefined,
): Column<ToolRow> {
  return {
    name,
    about: `${says}, accurate to 2 %. Calls without a duration are not counted.`,
    unit: 'ms',
    value: (row) => readValue(row) ?? null,
    csv: (row) => sketchedCell(readValue(row)),
    show: (row) => {
      const ms = readValue(row)
      return ms == null ? '' : exactDuration(ms)
    },
    number: true,
  }
}

function CallsChange({ row }: { row: ToolRow }) {
  const change = changeOf(row.calls, row.before)
  return change.text === 'new' ? <>new</> : <ChangeMark change={change} />
}

function ToolName({ row }: { row: ToolRow }) {
  if (row.isRest) return <span class="muted">{row.name}</span>
  return (
    <span class={row.enabled ? 'tool-name' : 'tool-name disabled'}>
      <a href={toolHref(row.siteId, row.name)}>
        <Text value={row.name} max={36} />
      </a>
      {!row.registered && <span class="chip block">not registered</span>}
      {!row.enabled && <span class="chip plain">disabled</span>}
      {row.title !== null && (
        <small>
          <Text value={row.title} max={40} />
        </small>
      )}
    </span>
  )
}

function Tokens({ row }: { row: ToolRow }) {
  if (!row.estimated) return <>{count(row.tokens)}</>
  return (
    <span title="Estimated: one token per 4 characters of the descriptor">
      <span aria-hidden="true">≈ </span>
      <span class="visually-hidden">about </span>
      {count(row.tokens)}
    </span>
  )
}

/** Counts are stored by hour; the tool's own page shows the exact time. */
function LastCalled({ row }: { row: ToolRow }) {
  if (row.lastHour === null) return <span class="muted">{row.registered ? 'not in range' : ''}</span>
  const startMs = Date.parse(row.lastHour)
  const inHour = now() - startMs < hourMs
  return (
    <time dateTime={row.lastHour} title={`Within the hour from ${fullTime(startMs)}\n${utcTime(startMs)}`}>
      {inHour ? 'this hour' : ago(startMs, now())}
    </time>
  )
}

function Findings({ row }: { row: ToolRow }) {
  const names = [...new Set(row.findings.map((finding) => findingNames[finding.code]))]
  const grave = row.findings.some((finding) => finding.code === 'instructions' || finding.code === 'hidden')
  if (names.length === 0) return null
  return (
    <span class={grave ? 'chip error' : 'chip block'} title={names.join(', ')}>
      {names[0]}
      {names.length > 1 && ` +${names.length - 1}`}
    </span>
  )
}
