/** The tables of Authz: decisions by a field, decisions by outcome, and the newest denials. */
import { useQuery } from '../../query/use-query.ts'
import { fetchAllRows } from '../../range/counts-query.ts'
import { blockedColumns, changeColumns, valueName, valueRows } from '../../charts/breakdown.tsx'
import { DataTable, everyRow, type Column } from '../../charts/data-table.tsx'
import { Text } from '../../components/text.tsx'
import { decisionNames, measures } from '../../text/measures.ts'
import { query } from '../../app/router.ts'
import { ValueLink, filterable, logsHref } from '../../range/filters.tsx'
import { choiceOf, compares } from '../../range/range.ts'
import { count, counted, eventTime, fullTime, utcTime } from '../../text/format.ts'
import { prefetchQuery } from '../../query/query.ts'
import {
  api,
  type AuthzCounts,
  type BreakdownView,
  type PeriodView,
  type ReceivedEvent,
} from '../../api/api.ts'
import { now } from '../../app/clock.ts'
import { ClassMark, Vial } from '../../components/marks.tsx'
import { Problem } from '../../components/problem.tsx'

interface DecisionTableProps {
  title: string
  head: string
  field?: 'tool' | 'vendor' // the filter in Logs, if there is one
  of: 'tools' | 'rules' | 'reasons' | 'vendors'
  data: AuthzCounts
}

/** Decisions by the values of one field: count, blocked, change. */
export function DecisionTable({ title, head, field, of: name, data }: DecisionTableProps) {
  const { period, evaluated } = data
  const scope = { type: 'authz.evaluated', siteIds: period.siteIds, since: period.since, until: period.until }
  const noun = head.toLowerCase()
  const rowsOf = (breakdown: BreakdownView, counts: AuthzCounts) =>
    breakdown.rows.length === 0 ? [] : valueRows(breakdown, counts.evaluated)
  return (
    <DataTable
      title={title}
      csv={{
        page: 'authz',
        table: name,
        period,
        all: async (signal) => {
          const whole = await fetchAllRows('authz', signal)
          return rowsOf(whole[name], whole)
        },
      }}
      rows={rowsOf(data[name], { ...data, evaluated })}
      keyOf={(row) => `${row.kind} ${row.value}`}
      sortBy={measures.decisions.name}
      empty={`No decision in this range has a ${noun}.`}
      columns={[
        {
          name: head,
          value: (row) => valueName(row, noun),
          show: (row) => {
            if (row.kind !== 'value') return <span class="muted">{valueName(row, noun)}</span>
            const value = row.value ?? ''
            const text = <Text value={value} max={40} />
            const logs = field === undefined ? undefined : logsHref({ ...scope, [field]: value })
            return (
              <ValueLink filter={{ name: noun, value }} logs={logs}>
                {text}
              </ValueLink>
            )
          },
        },
        { name: measures.decisions.name, number: true, value: (row) => row.count },
        ...blockedColumns,
        ...(compares(period, choiceOf(query.value)) ? changeColumns() : []),
      ]}
    />
  )
}

interface OutcomeRow {
  decision: string | null // null: another decision, or none
  name: string
  count: number
  outcomes: { [outcome: string]: number }
}

const order = ['allow', 'deny', 'review']
const outcomeOrder = ['success', 'blocked', 'error']
const outcomesMax = 8

/** One row per decision and one for the rest, so that they add up to the totals of the page. */
function outcomeRows({ decisions, evaluated }: Pick<AuthzCounts, 'decisions' | 'evaluated'>): OutcomeRow[] {
  const rows: OutcomeRow[] = order.flatMap((decision) => {
    const row = decisions.rows.find(({ value }) => value === decision)
    const name = decisionNames[decision] ?? decision
    return row === undefined || row.count === 0
      ? []
      : [{ decision, name, count: row.count, outcomes: row.outcomes }]
  })
  const undecidedRow: OutcomeRow = {
    decision: null,
    name: measures.undecided.name,
    count: evaluated.count,
    outcomes: {},
  }
  for (const [outcome, outcomeCount] of Object.entries(evaluated.outcomes)) {
    const remainder = rows.reduce((sum, row) => sum - outcomeOf(row, outcome), outcomeCount.count)
    if (remainder > 0) undecidedRow.outcomes[outcome] = remainder
  }
  undecidedRow.count = rows.reduce((sum, row) => sum - row.count, evaluated.count)
  return undecidedRow.count > 0 ? [...rows, undecidedRow] : rows
}

/** Own properties only, because an outcome can have the name of an inherited property. */
function outcomeOf({ outcomes }: OutcomeRow, outcome: string): number {
  return Object.hasOwn(outcomes, outcome) ? (outcomes[outcome] ?? 0) : 0
}

/** Decisions by outcome. All totals of the page come from this table. */
export function OutcomeTable({ data }: { data: AuthzCounts }) {
  const { period, evaluated } = data
  const scope = { type: 'authz.evaluated', siteIds: period.siteIds, since: period.since, until: period.until }
  const rows = outcomeRows(data)
  if (rows.length === 0) return null
  const place = (outcome: string): number => (outcomeOrder.indexOf(outcome) + 4) % 4
  const outcomes = Object.entries(evaluated.outcomes)
    .filter(([, outcomeCount]) => outcomeCount.count > 0)
    .sort(([a, x], [b, y]) => place(a) - place(b) || y.count - x.count)
    .map(([outcome]) => outcome)
  const shown = outcomes.slice(0, outcomesMax)
  const column = (outcome: string): Column<OutcomeRow> => ({
    name: outcome,
    number: true,
    value: (row) => outcomeOf(row, outcome),
    show: (row) => {
      const events = outcomeOf(row, outcome)
      if (events === 0 || row.decision === null) return count(events)
      return <a href={logsHref({ ...scope, decision: row.decision, outcome })}>{count(events)}</a>
    },
  })
  const otherColumn: Column<OutcomeRow> = {
    name: 'other outcomes',
    number: true,
    value: (row) => outcomes.slice(outcomesMax).reduce((sum, outcome) => sum + outcomeOf(row, outcome), 0),
  }
  return (
    <DataTable
      title="Decisions by outcome"
      about={sentence(rows, evaluated.count)}
      csv={{ page: 'authz', table: 'decisions-by-outcome', period }}
      rows={rows}
      keyOf={(row) => row.name}
      sortBy={measures.decisions.name}
      columns={[
        { name: 'Decision', value: (row) => row.name, show: (row) => <Text value={row.name} max={24} /> },
        ...shown.map(column),
        ...(outcomes.length > outcomesMax ? [otherColumn] : []),
        { name: measures.decisions.name, number: true, value: (row) => row.count },
      ]}
    />
  )
}

/** "582 denied and 6 for review ended blocked, 588 in all." */
function sentence(rows: OutcomeRow[], totalCount: number): string {
  const blocked = rows.filter((row) => outcomeOf(row, 'blocked') > 0)
  const sum = blocked.reduce((total, row) => total + outcomeOf(row, 'blocked'), 0)
  if (sum === 0) return `none of ${count(totalCount)} ended blocked`
  const parts = blocked.map((row) => `${count(outcomeOf(row, 'blocked'))} ${row.name.toLowerCase()}`)
  return `${count(sum)} ended blocked: ${parts.join(', ')}`
}

interface DenialsProps {
  period: PeriodView
  denied: number // in the whole range
  onOpen: (id: string) => void
}

const shownMax = 50

function filterOf({ since, until, siteIds, filters }: PeriodView): URLSearchParams {
  const params = new URLSearchParams({ type: 'authz.evaluated', decision: 'deny', since, until })
  for (const siteId of siteIds) params.append('siteId', siteId)
  for (const { name, value } of filters) {
    const field = filterable[name]?.logs
    if (field != null && !fixed.includes(field)) params.append(field, value)
  }
  return params
}

/** The filter for denials; null if the page is filtered by another type or decision. */
const fixed: string[] = ['type', 'decision']

function denialsQuery(period: PeriodView) {
  const params = filterOf(period)
  params.set('limit', `${shownMax}`)
  return { key: `events?${params}`, fetch: (signal: AbortSignal) => api.eventsWhere(params, signal) }
}

export const prefetchDenials = (period: PeriodView) => prefetchQuery(denialsQuery(period))

/** The newest denials of the range; each opens its explanation. */
export function Denials({ period, denied, onOpen }: DenialsProps) {
  // A changed count means new denials.
  const { data: denials, error: problem } = useQuery(denialsQuery(period), denied)
  if (problem) return <Problem error={problem} />
  if (!denials) return null
  const unknown = period.filters.find(({ name }) => filterable[name]?.logs == null)
  if (unknown) return <p class="muted">Denials cannot be filtered by {unknown.name}.</p>
  const rows = denied === 0 ? [] : denials.events
  return (
    <DataTable
      title="Newest denials"
      about={`${count(rows.length)} of ${counted(denied, 'denial')}. Open one to see why.`}
      csv={{
        page: 'authz',
        table: 'denials',
        period,
        all: (signal) =>
          everyRow(async (cursor) => {
            const params = cursor === null ? filterOf(period) : new URLSearchParams({ cursor })
            params.set('limit', '200')
            const page = await api.eventsWhere(params, signal)
            return { rows: page.events, next: page.nextCursor }
          }),
      }}
      rows={rows}
      keyOf={(row) => row.event.id}
      sortBy="Time"
      onOpen={(row) => onOpen(row.event.id)}
      empty="No denials in this range."
      columns={columns(now())}
    />
  )
}

const timeTitle = (iso: string): string => `${fullTime(Date.parse(iso))}\n${utcTime(Date.parse(iso))}`

function columns(nowMs: number): Column<ReceivedEvent>[] {
  return [
    {
      name: 'Time',
      time: true,
      value: (row) => row.event.occurredAt,
      show: ({ event }) => (
        <span class="mono" title={timeTitle(event.occurredAt)}>
          {eventTime(Date.parse(event.occurredAt), nowMs)}
        </span>
      ),
    },
    {
      name: 'Agent',
      value: (row) => row.event.agent?.vendor ?? row.event.agent?.class ?? null,
      show: ({ event: { agent } }) => (
        <span class="with-mark">
          {agent?.trust != null && <Vial trust={agent.trust} />}
          {agent?.class != null && <ClassMark class={agent.class} />}
          <Text value={agent?.vendor ?? agent?.class ?? ''} max={24} />
        </span>
      ),
    },
    {
      name: 'Tool',
      value: (row) => row.event.tool ?? null,
      show: ({ event }) => <Text value={event.tool ?? ''} max={28} />,
    },
    {
      name: 'Page',
      value: (row) => (typeof row.event.metadata?.page === 'string' ? row.event.metadata.page : null),
      show: ({ event }) =>
        typeof event.metadata?.page === 'string' && <Text value={event.metadata.page} max={28} mono />,
    },
    {
      name: 'Rule',
      value: (row) => row.event.policy?.ruleId ?? null,
      show: ({ event }) => <Text value={event.policy?.ruleId ?? ''} max={28} mono />,
    },
    {
      name: 'Reason',
      value: (row) => row.event.policy?.reason ?? null,
      show: ({ event }) => <Text value={event.policy?.reason ?? ''} max={40} />,
    },
  ]
}
