/** The table of detected vendors and their agents: operator, purpose, counts, blocked, change. */
import { fetchAllRows } from '../../range/counts-query.ts'
import { shareOf } from '../../charts/headlines.tsx'
import { changeColumns, shareColumn, valueName, valueRows, type ValueRow } from '../../charts/breakdown.tsx'
import { DataTable, type Column } from '../../charts/data-table.tsx'
import { Text } from '../../components/text.tsx'
import { count, counted, hourTime } from '../../text/format.ts'
import { measures } from '../../text/measures.ts'
import { query } from '../../app/router.ts'
import { choiceOf, compares, lengthName, rangeWords } from '../../range/range.ts'
import { ValueLink, logsHref } from '../../range/filters.tsx'
import { knownAgent } from './vendor-dialog.tsx'
import type { CountedName, DetectCounts, PeriodView } from '../../api/api.ts'

interface AgentRow extends ValueRow {
  agent: NamedAgent | null // null: all visits of the vendor
  agents: NamedAgent[] // of the vendor
  purpose: string
  blocked: number
  share: number | null
  fresh: boolean // not detected in the previous period, while other agents were
  period: PeriodView
}

/** "New" refers to the previous period, not to all time. */
function newWords(period: PeriodView): string {
  const [since, until] = [period.before.since, period.before.until].map((time) =>
    hourTime(Date.parse(time), period.zone),
  )
  return `detected in this range but not in the ${lengthName(period)} before (${since} to ${until})`
}

/** Counts each blocked decision of the vendor once. */
function agentRows({ vendors, decided, detected, period, agents }: DetectCounts): AgentRow[] {
  const byVendor = agentsByVendor(agents)
  const blockedOf = new Map(
    valueRows(decided, noCounts).map((row) => [row.value, row.outcomes['blocked'] ?? 0]),
  )
  return valueRows(vendors, detected).map((row) => ({
    ...row,
    ...ofVendor(byVendor, row),
    blocked: row.kind === 'missing' ? 0 : (blockedOf.get(row.value) ?? 0),
    share: shareOf(row.count, detected.count),
    fresh: row.kind === 'value' && row.count > 0 && row.before === 0 && detected.before > 0,
    period,
  }))
}

/** Agents without a vendor are children of the row without one. */
function ofVendor(byVendor: Map<string, NamedAgent[]>, { kind, value }: ValueRow) {
  const key = kind === 'value' ? vendorKey({ name: value ?? '' }) : kind === 'missing' ? 'missing' : 'other'
  const agents = byVendor.get(key) ?? []
  return { agent: null, agents, purpose: purposeText(agents, count) }
}

/** One row per name of a vendor and one for visits without a name, so that they add up to the vendor's total. */
function childRows(vendor: AgentRow): AgentRow[] {
  const { agents, period, count: whole, before: previousCount, share } = vendor
  const namedAgents = agents.filter(({ name, isOthers }) => name !== null || isOthers)
  if (namedAgents.length === 0) return []
  const remainingCount = (countField: 'count' | 'before' | 'blocked') =>
    Math.max(0, vendor[countField] - namedAgents.reduce((sum, namedAgent) => sum + namedAgent[countField], 0))
  const nameless = agents.find(({ name, isOthers }) => name === null && !isOthers)
  const unnamedAgent: NamedAgent = {
    name: null,
    isOthers: false,
    purposes: nameless?.purposes ?? [],
    count: remainingCount('count'),
    before: remainingCount('before'),
    blocked: remainingCount('blocked'),
  }
  return [...namedAgents, unnamedAgent]
    .filter((agent) => agent.count > 0 || agent.before > 0 || agent.blocked > 0)
    .map((agent) => ({
      kind: vendor.kind,
      value: vendor.value,
      outcomes: {},
      steps: null,
      period,
      agent,
      agents: [],
      purpose: purposeText([agent], count),
      blocked: agent.blocked,
      count: agent.count,
      before: agent.before,
      share: share === null || whole === 0 ? null : (share * agent.count) / whole,
      fresh: agent.name !== null && agent.count > 0 && agent.before === 0 && previousCount > 0,
    }))
}

/** Decisions without a vendor have no row here. Authz shows them. */
const noCounts = { count: 0, before: 0, steps: [], outcomes: {} }

const operatorText = (vendor: string | null): string => knownAgent(vendor ?? '')?.operator ?? ''

function AgentName({ row: { agent, agents, ...row } }: { row: AgentRow }) {
  if (agent === null) {
    const names = agents.filter(({ name, count: events }) => name !== null && events > 0).length
    return names === 0 ? null : <span class="muted">{counted(names, 'name')}</span>
  }
  if (agent.name === null) return <span class="muted">{agentName(agent)}</span>
  const { siteIds, since, until } = row.period
  const vendor = row.kind === 'value' ? { vendor: row.value ?? '' } : {}
  return (
    <>
      <ValueLink
        filter={{ name: 'name', value: agent.name }}
        logs={logsHref({ ...vendor, name: agent.name, type: 'agent.detected', siteIds, since, until })}
      >
        <Text value={agent.name} max={32} />
      </ValueLink>
      <NewMark row={{ ...row, agent, agents }} />
    </>
  )
}

const agentName = ({ name, isOthers }: NamedAgent): string => name ?? (isOthers ? '(others)' : '(no name)')

function NewMark({ row }: { row: AgentRow }) {
  if (!row.fresh || !compares(row.period, choiceOf(query.value))) return null
  return (
    <span class="new-mark" title={`New: ${newWords(row.period)}`}>
      new
    </span>
  )
}

function VendorName({ row }: { row: AgentRow }) {
  if (row.agent !== null) return <span class="visually-hidden">{valueName(row, 'vendor')}</span>
  if (row.kind !== 'value') return <span class="muted">{valueName(row, 'vendor')}</span>
  return (
    <>
      <b>
        <Text value={row.value ?? ''} max={32} />
      </b>
      <NewMark row={row} />
    </>
  )
}

const columns: Column<AgentRow>[] = [
  { name: 'Vendor', value: (row) => valueName(row, 'vendor'), show: (row) => <VendorName row={row} /> },
  {
    name: 'Agent',
    about: 'agent.name in visits',
    value: (row) => row.agent && agentName(row.agent),
    show: (row) => <AgentName row={row} />,
  },
  {
    name: 'Purpose',
    about: 'agent.purpose in visits',
    value: (row) => row.purpose || null,
    show: (row) => row.purpose && <Text value={row.purpose} max={48} />,
  },
  { name: 'Operator', value: (row) => (row.agent === null && operatorText(row.value)) || null },
  { name: measures.visits.name, number: true, value: (row) => row.count },
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
        all: async (signal) => agentRows(await fetchAllRows('detect', signal)),
      }}
      columns={compare ? columns : columns.filter((column) => !compared.has(column.name))}
      rows={rows}
      childrenOf={childRows}
      keyOf={(row) => `${row.kind} ${JSON.stringify([row.value, row.agent && agentName(row.agent)])}`}
      sortBy={measures.visits.name}
      onOpen={(row) => row.value !== null && onOpen(row.value)}
    />
  )
}

/** Visits of one name of a vendor with their purposes; null: visits without a name. */
interface NamedAgent {
  name: string | null
  isOthers: boolean // names beyond the limit
  purposes: { purpose: string; count: number }[] // most first
  count: number
  before: number
  blocked: number
}

/** The key of a vendor: its name, or the reason for its absence. */
function vendorKey(vendor: CountedName): string {
  return typeof vendor === 'string' ? vendor : `name ${vendor.name}`
}

/** Grouped by `vendorKey`. Names are sorted by count over all purposes. */
function agentsByVendor(agents: DetectCounts['agents']): Map<string, NamedAgent[]> {
  const vendors = new Map<string, Map<string, NamedAgent>>()
  for (const { vendor, name, purpose, count, before: previousCount, blocked } of agents) {
    const names = vendors.get(vendorKey(vendor)) ?? new Map<string, NamedAgent>()
    vendors.set(vendorKey(vendor), names)
    const text = typeof name === 'string' ? null : name.name
    const key = vendorKey(name)
    const row = names.get(key) ?? {
      name: text,
      isOthers: name === 'other',
      purposes: [],
      count: 0,
      before: 0,
      blocked: 0,
    }
    names.set(key, row)
    row.count += count
    row.before += previousCount
    row.blocked += blocked
    if (count === 0 || purpose === 'missing') continue
    row.purposes.push({ purpose: purpose === 'other' ? '(others)' : purpose.name, count })
  }
  return new Map(
    Array.from(vendors, ([vendor, names]) => {
      const rows = [...names.values()].sort((a, b) => b.count - a.count || b.before - a.before)
      for (const row of rows) row.purposes.sort((a, b) => b.count - a.count)
      return [vendor, rows]
    }),
  )
}

/** "training", or with counts when there are several: "training 12, user 3". */
function purposeText(agents: readonly NamedAgent[], countText: (count: number) => string): string {
  const counts = new Map<string, number>()
  for (const { purpose, count } of agents.flatMap(({ purposes }) => purposes))
    counts.set(purpose, (counts.get(purpose) ?? 0) + count)
  const sorted = [...counts].sort(([, a], [, b]) => b - a)
  if (sorted.length === 1) return sorted[0]![0]
  return sorted.map(([purpose, count]) => `${purpose} ${countText(count)}`).join(', ')
}
