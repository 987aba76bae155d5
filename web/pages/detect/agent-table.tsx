/** The vendors that were detected: who is behind each, how often it came and was refused, how that changed. */
import type { CutRow, DetectCounts, PeriodView } from '../../api.ts'
import { changeOf, percent, shareOf } from '../../charts/change.ts'
import { type Column, DataTable } from '../../charts/data-table.tsx'
import { ChangeMark } from '../../charts/headlines.tsx'
import { Text } from '../../components/text.tsx'
import { count } from '../../format.ts'
import { query } from '../../router.ts'
import { choiceOf, lengthName, rangeWords, utcHour } from '../../range/range.ts'
import { knownAgent } from './known-agents.ts'

interface AgentRow {
  vendor: string | null
  count: number
  before: number
  refused: number
  share: number | null
  fresh: boolean // not detected in the time before, though others were
  period: PeriodView
}

/** What "new" means here: it is about the time before, not about all time. */
function newWords(period: PeriodView): string {
  const [since, until] = [period.before.since, period.before.until].map((time) => utcHour(Date.parse(time)))
  return `detected in this range, and not once in the ${lengthName(period)} before (${since} to ${until} UTC)`
}

/** Refusals are decisions that ended blocked, counted once each. */
function agentRows({ vendors, decided, detected, period }: DetectCounts): AgentRow[] {
  const refusedOf = new Map(decided.rows.map((row) => [row.value, row.outcomes['blocked'] ?? 0]))
  return vendors.rows.map(({ value, count: events, before }: CutRow) => ({
    vendor: value,
    count: events,
    before,
    refused: refusedOf.get(value) ?? 0,
    share: shareOf(events, detected.count),
    fresh: events > 0 && before === 0 && detected.before > 0,
    period,
  }))
}

const purposeText = (vendor: string | null): string => knownAgent(vendor ?? '')?.purposes.join(', ') ?? ''
const operatorText = (vendor: string | null): string => knownAgent(vendor ?? '')?.operator ?? ''

function VendorName({ row }: { row: AgentRow }) {
  if (row.vendor === null) return <span class="muted">(others, more than 1,000 an hour)</span>
  return (
    <>
      <b>
        <Text value={row.vendor} max={32} />
      </b>
      {row.fresh && choiceOf(query.value).compare && (
        <span class="new-mark" title={`New: ${newWords(row.period)}`}>
          new
        </span>
      )}
    </>
  )
}

const columns: Column<AgentRow>[] = [
  { name: 'Vendor', value: (row) => row.vendor ?? '(others)', show: (row) => <VendorName row={row} /> },
  { name: 'Operator', value: (row) => operatorText(row.vendor) || null },
  { name: 'Purpose', value: (row) => purposeText(row.vendor) || null },
  { name: 'Detections', number: true, value: (row) => row.count },
  {
    name: 'Share',
    number: true,
    value: (row) => (row.share === null ? null : Math.round(row.share * 10_000) / 10_000),
    show: (row) => percent(row.share),
  },
  { name: 'Before', number: true, value: (row) => row.before },
  {
    name: 'Change',
    number: true,
    value: (row) => row.count - row.before,
    show: (row) => {
      const change = changeOf(row.count, row.before)
      return change.text === 'new' ? 'new' : <ChangeMark change={change} />
    },
  },
  {
    name: 'Refused',
    number: true,
    value: (row) => row.refused,
    show: (row) => (row.refused === 0 ? <span class="muted">0</span> : count(row.refused)),
  },
]

const compared = new Set(['Before', 'Change'])

export function AgentTable({ data, onOpen }: { data: DetectCounts; onOpen: (vendor: string) => void }) {
  const compare = choiceOf(query.value).compare && data.detected.before > 0
  const rows = agentRows(data)
  const fresh = compare && rows.some((row) => row.fresh)
  return (
    <DataTable
      title="Agents"
      firstRows={6}
      about={
        <>
          {rangeWords(data.period)}
          {fresh && `; new: ${newWords(data.period)}`}
        </>
      }
      csvName="agents"
      columns={compare ? columns : columns.filter((column) => !compared.has(column.name))}
      rows={rows}
      keyOf={(row) => row.vendor ?? ''}
      sortBy="Detections"
      onOpen={(row) => row.vendor !== null && onOpen(row.vendor)}
    />
  )
}
