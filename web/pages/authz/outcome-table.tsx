/** Decisions by outcome. All totals of the page come from this table. */
import type { AuthzCounts } from '../../api/api.ts'
import { type Column, DataTable } from '../../charts/data-table.tsx'
import { Text } from '../../components/text.tsx'
import { count } from '../../text/format.ts'
import { decisionNames, measures } from '../../text/measures.ts'
import { logsHref } from '../../range/filters.tsx'

export interface OutcomeRow {
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
  const left: OutcomeRow = {
    decision: null,
    name: measures.undecided.name,
    count: evaluated.count,
    outcomes: {},
  }
  for (const [outcome, tally] of Object.entries(evaluated.outcomes)) {
    const rest = rows.reduce((sum, row) => sum - outcomeOf(row, outcome), tally.count)
    if (rest > 0) left.outcomes[outcome] = rest
  }
  left.count = rows.reduce((sum, row) => sum - row.count, evaluated.count)
  return left.count > 0 ? [...rows, left] : rows
}

/** Own properties only, because an outcome can have the name of an inherited property. */
function outcomeOf({ outcomes }: OutcomeRow, outcome: string): number {
  return Object.hasOwn(outcomes, outcome) ? (outcomes[outcome] ?? 0) : 0
}

export function OutcomeTable({ data }: { data: AuthzCounts }) {
  const { period, evaluated } = data
  const of = { type: 'authz.evaluated', siteIds: period.siteIds, since: period.since, until: period.until }
  const rows = outcomeRows(data)
  if (rows.length === 0) return null
  const place = (outcome: string): number => (outcomeOrder.indexOf(outcome) + 4) % 4
  const outcomes = Object.entries(evaluated.outcomes)
    .filter(([, tally]) => tally.count > 0)
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
      return <a href={logsHref({ ...of, decision: row.decision, outcome })}>{count(events)}</a>
    },
  })
  const others: Column<OutcomeRow> = {
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
        ...(outcomes.length > outcomesMax ? [others] : []),
        { name: measures.decisions.name, number: true, value: (row) => row.count },
      ]}
    />
  )
}

/** "582 denied and 6 for review ended blocked, 588 in all." */
function sentence(rows: OutcomeRow[], all: number): string {
  const blocked = rows.filter((row) => outcomeOf(row, 'blocked') > 0)
  const sum = blocked.reduce((total, row) => total + outcomeOf(row, 'blocked'), 0)
  if (sum === 0) return `none of ${count(all)} ended blocked`
  const parts = blocked.map((row) => `${count(outcomeOf(row, 'blocked'))} ${row.name.toLowerCase()}`)
  return `${count(sum)} ended blocked: ${parts.join(', ')}`
}
