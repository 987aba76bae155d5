/** Distinct vendors a month: asked on its own, because it looks a year back. */
import { api } from '../../api.ts'
import { DataTable } from '../../charts/data-table.tsx'
import { Problem } from '../../components/problem.tsx'
import { useAnswer } from '../../range/use-answer.ts'

interface MonthsProps {
  siteIds: string[]
  total: number // changes when something was detected: then the running month is asked anew
}

const names = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ')

/** "2026-11" → "Nov 2026" */
function monthName(month: string): string {
  const [year = '', number = ''] = month.split('-')
  return `${names[Number(number) - 1] ?? ''} ${year}`
}

export function Months({ siteIds, total }: MonthsProps) {
  const params = new URLSearchParams(siteIds.map((siteId) => ['siteId', siteId]))
  const { found, problem } = useAnswer(`${params} ${total}`, (signal) =>
    api.counts('analytics/months', params, signal),
  )
  if (problem) return <Problem error={problem} />
  if (!found) return null
  const months = found.months
  const first = months.findIndex((month) => month.detections > 0)
  return (
    <DataTable
      title="Monthly active agents"
      about="vendors detected at least once in a UTC month, whatever the range above"
      csvName="monthly-agents"
      rows={first === -1 ? [] : months.slice(first)}
      keyOf={(row) => row.month}
      sortBy="Month"
      empty="No agent was detected in the last twelve months."
      columns={[
        { name: 'Month', value: (row) => row.month, show: (row) => monthName(row.month) },
        { name: 'Vendors', number: true, value: (row) => row.vendors },
        { name: 'Detections', number: true, value: (row) => row.detections },
      ]}
    />
  )
}
