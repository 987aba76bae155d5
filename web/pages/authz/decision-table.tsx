/** Decisions by the values of one member: how many, how many ended blocked, and how that changed. */
import type { Cut, CutRow, PeriodView } from '../../api.ts'
import { percent, shareOf } from '../../charts/change.ts'
import { changeColumns } from '../../charts/cut-columns.tsx'
import { DataTable } from '../../charts/data-table.tsx'
import { Text } from '../../components/text.tsx'
import { query } from '../../router.ts'
import { logsHref } from '../../range/logs-link.ts'
import { choiceOf } from '../../range/range.ts'

interface DecisionTableProps {
  title: string
  head: string
  member?: 'tool' | 'vendor' // where Logs can be filtered by it
  cut: Cut
  period: PeriodView
}

const blocked = (row: CutRow): number => row.outcomes['blocked'] ?? 0

export function DecisionTable({ title, head, member, cut, period }: DecisionTableProps) {
  const of = { type: 'authz.evaluated', siteIds: period.siteIds, since: period.since, until: period.until }
  return (
    <DataTable
      title={title}
      csvName={`authz-${head.toLowerCase()}s`}
      rows={cut.rows.filter((row) => row.count > 0 || row.before > 0)}
      keyOf={(row) => row.value ?? ''}
      sortBy="Decisions"
      empty={`No decision of this range names a ${head.toLowerCase()}.`}
      columns={[
        {
          name: head,
          value: (row) => row.value ?? '(others)',
          show: ({ value }) => {
            if (value === null) return <span class="muted">(others)</span>
            const text = <Text value={value} max={25} />
            return member === undefined ? text : <a href={logsHref({ ...of, [member]: value })}>{text}</a>
          },
        },
        { name: 'Decisions', number: true, value: (row) => row.count },
        { name: 'Blocked', number: true, value: blocked },
        {
          name: 'Share',
          number: true,
          value: (row) => shareOf(blocked(row), row.count),
          show: (row) => percent(shareOf(blocked(row), row.count)),
        },
        ...(choiceOf(query.value).compare ? changeColumns.slice(1) : []),
      ]}
    />
  )
}
