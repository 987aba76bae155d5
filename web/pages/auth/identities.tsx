/** Who proved an identity and why others failed, from the newest events: names are not counted by the hour. */
import type { IdentityDetail } from '../../api.ts'
import { Bars } from '../../charts/bars.tsx'
import { type Column, DataTable } from '../../charts/data-table.tsx'
import { now } from '../../clock.ts'
import { Vial } from '../../components/marks.tsx'
import { Later } from '../../components/later.tsx'
import { Problem } from '../../components/problem.tsx'
import { Text } from '../../components/text.tsx'
import { ago, counted, utcTime } from '../../format.ts'
import { logsHref } from '../../range/logs-link.ts'
import { useAnswer } from '../../range/use-answer.ts'
import { countsOf } from '../../range/questions.ts'

type Identity = IdentityDetail['subjects'][number]

const columns: Column<Identity>[] = [
  {
    name: 'Identity',
    value: (row) => row.subject,
    show: (row) => <Text value={row.subject} max={44} mono />,
  },
  {
    name: 'Protocol',
    value: (row) => row.protocol,
    show: (row) => <Text value={row.protocol} max={24} />,
  },
  {
    name: 'Trust',
    value: (row) => row.trust,
    show: (row) => (
      <span class="with-mark">
        <Vial trust={row.trust} />
        <Text value={row.trust} max={16} />
      </span>
    ),
  },
  { name: 'Vendor', value: (row) => row.vendor, show: (row) => <Text value={row.vendor} max={24} /> },
  { name: 'Times', number: true, value: (row) => row.count },
  {
    name: 'Last',
    value: (row) => row.lastAt,
    show: (row) => <span title={utcTime(Date.parse(row.lastAt))}>{ago(Date.parse(row.lastAt), now())}</span>,
  },
]

interface IdentitiesProps {
  siteIds: string[]
  presented: number // changes when there is something new to look at
}

export function Identities({ siteIds, presented }: IdentitiesProps) {
  const { found, problem } = useAnswer(countsOf('auth/identities'), presented)
  if (problem) return <Problem error={problem} />
  if (!found) return null
  const from = found.complete
    ? `from all ${counted(found.looked, 'event')} in this range`
    : `from the newest ${counted(found.looked, 'event')} of this range`
  return (
    <>
      <DataTable
        title="Identities that proved themselves"
        about={from}
        csvName="identities"
        rows={found.subjects}
        keyOf={(row) => JSON.stringify([row.subject, row.protocol, row.trust])}
        sortBy="Times"
        empty="None with a name."
        columns={columns}
      />
      <Later>
        <Bars
          title="Why identities were not accepted"
          wide
          unit={from}
          bars={found.failures.map(({ name, count }) => ({
            key: name,
            name,
            count,
            colour: 'error',
            href: logsHref({ type: 'auth.identity_presented', outcome: 'error', siteIds }),
          }))}
          rest={{ names: 0, count: 0 }}
          empty="Every one was accepted."
        />
      </Later>
    </>
  )
}
