/** The vendors that were detected: who is behind each, how often it came and was blocked, how that changed. */
import type { DetectCounts, PeriodView } from '../../api.ts'
import { shareOf } from '../../charts/change.ts'
import { changeColumns, shareColumn, valueName, type ValueRow, valueRows } from '../../charts/cut-columns.tsx'
import { type Column, DataTable } from '../../charts/data-table.tsx'
import { Text } from '../../components/text.tsx'
import { count, hourTime } from '../../format.ts'
import { measures } from '../../measures.ts'
import { query } from '../../router.ts'
import { wholeCounts } from '../../range/questions.ts'
import { choiceOf, compares, lengthName, rangeWords } from '../../range/range.ts'
import { knownAgent } from './known-agents.ts'

interface AgentRow extends ValueRow {
  blocked: number
  share: number | null
  fresh: boolean // not detected in the time before, though others were
  period: PeriodView
}

/** What "new" means here: it is about the time before, not about all time. */
function newWords(period: PeriodView): string {
  const [since, until] = [period.before.since, period.before.until].map((time) =>
    hourTime(Date.parse(time), period.zone),
  )
  return `detected in this range, and not once in the ${lengthName(period)} before (${since} to ${until})`
}

/** Blocked are decisions of the vendor that ended so, counted once each. */
function agentRows({ vendors, decided, detected, period }: DetectCounts): AgentRow[] {
  const blockedOf = new Map(
    valueRows(decided, noTally).map((row) => [row.value, row.outcomes['blocked'] ?? 0]),
  )
  return valueRows(vendors, detected).map((row) => ({
    ...row,
    blocked: row.kind === 'missing' ? 0 : (blockedOf.get(row.value) ?? 0),
    share: shareOf(row.count, detected.count),
    fresh: row.kind === 'value' && row.count > 0 && row.before === 0 && detected.before > 0,
    period,
  }))
}

/** Decisions without a vendor have no row here: those of the range are on Authz. */
const noTally = { count: 0, before: 0, steps: [], outcomes: {} }

const purposeText = (vendor: string | null): string => knownAgent(vendor ?? '')?.purposes.join(', ') ?? ''
const operatorText = (vendor: string | null): string => knownAgent(vendor ?? '')?.operator ?? ''

function VendorName({ row }: { row: AgentRow }) {
  if (row.kind !== 'value') return <span class="muted">{valueName(row, 'vendor')}</span>
  return (
    <>
      <b>
        <Text value={row.value ?? ''} max={32} />
      </b>
      {row.fresh && compares(row.period, choiceOf(query.value)) && (
        <span class="new-mark" title={`New: ${newWords(row.period)}`}>
          new
        </span>
      )}
    </>
  )
}

const columns: Column<AgentRow>[] = [
  { name: 'Vendor', value: (row) => valueName(row, 'vendor'), show: (row) => <VendorName row={row} /> },
  { name: 'Operator', value: (row) => operatorText(row.value) || null },
  { name: 'Purpose', value: (row) => purposeText(row.value) || null },
  { name: measures.detections.name, number: true, value: (row) => row.count },
  shareColumn('Share', (row) => row.share),
  ...changeColumns<AgentRow>(),
  {
    name: measures.blocked.name,
    about: measures.blocked.definition,
    number: true,
    value: (row) => row.blocked,
    show: (row) => (row.blocked === 0 ? <span class="muted">0</span> : count(row.blocked)),
  },
]

const compared = new Set(['Before', 'Change'])

export function AgentTable({ data, onOpen }: { data: DetectCounts; onOpen: (vendor: string) => void }) {
  const compare = compares(data.period, choiceOf(query.value)) && data.detected.before > 0
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
      csv={{
        page: 'detect',
        table: 'vendors',
        period: data.period,
        all: async (signal) => agentRows(await wholeCounts('detect', signal)),
      }}
      columns={compare ? columns : columns.filter((column) => !compared.has(column.name))}
      rows={rows}
      keyOf={(row) => `${row.kind} ${row.value}`}
      sortBy={measures.detections.name}
      onOpen={(row) => row.value !== null && onOpen(row.value)}
    />
  )
}
