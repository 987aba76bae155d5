/** Decisions by the values of one field: count, blocked, change. */
import { fetchAllRows } from '../../query/use-query.ts'
import type { AuthzCounts, Cut } from '../../api/api.ts'
import { blockedColumns, changeColumns, valueName, valueRows } from '../../charts/breakdown.tsx'
import { DataTable } from '../../charts/data-table.tsx'
import { Text } from '../../components/text.tsx'
import { measures } from '../../text/measures.ts'
import { query } from '../../app/router.ts'
import { logsHref } from '../../range/filters.tsx'
import { ValueLink } from '../../range/filters.tsx'
import { choiceOf, compares } from '../../range/range.ts'

interface DecisionTableProps {
  title: string
  head: string
  member?: 'tool' | 'vendor' // the filter in Logs, if there is one
  of: 'tools' | 'rules' | 'reasons' | 'vendors'
  data: AuthzCounts
}

export function DecisionTable({ title, head, member, of: name, data }: DecisionTableProps) {
  const { period, evaluated } = data
  const of = { type: 'authz.evaluated', siteIds: period.siteIds, since: period.since, until: period.until }
  const noun = head.toLowerCase()
  const rowsOf = (cut: Cut, counts: AuthzCounts) =>
    cut.rows.length === 0 ? [] : valueRows(cut, counts.evaluated)
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
            const text = <Text value={value} max={25} />
            const logs = member === undefined ? undefined : logsHref({ ...of, [member]: value })
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
