/** Accepted subjects and failure reasons, read from the newest events because names are not counted by hour. */
import { useQuery } from '../../query/use-query.ts'
import { countsQuery, fetchAllRows } from '../../query/use-query.ts'
import type { IdentityDetail, PeriodView } from '../../api/api.ts'
import { Bars } from '../../charts/breakdown.tsx'
import { type Column, DataTable } from '../../charts/data-table.tsx'
import { now } from '../../app/clock.ts'
import { Vial } from '../../components/marks.tsx'
import { Later } from '../../components/rendering.tsx'
import { Problem } from '../../components/problem.tsx'
import { Text } from '../../components/text.tsx'
import { ago, counted, fullTime, utcTime } from '../../text/format.ts'
import { measures } from '../../text/measures.ts'
import { logsHref } from '../../range/filters.tsx'

type Identity = IdentityDetail['subjects'][number]

const columns: Column<Identity>[] = [
  {
    name: 'Subject',
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
  { name: measures.accepted.name, number: true, value: (row) => row.count },
  {
    name: 'Last',
    time: true,
    value: (row) => row.lastAt,
    show: (row) => <Seen at={row.lastAt} />,
  },
]

function Seen({ at }: { at: string }) {
  const ms = Date.parse(at)
  return <span title={`${fullTime(ms)}\n${utcTime(ms)}`}>{ago(ms, now())}</span>
}

interface IdentitiesProps {
  period: PeriodView
  presented: number // a change fetches the newest events again
}

export function Identities({ period, presented }: IdentitiesProps) {
  const { data: found, error: problem } = useQuery(countsQuery('auth/identities'), presented)
  if (problem) return <Problem error={problem} />
  if (!found) return null
  const from = found.complete
    ? `from all ${counted(found.looked, 'event')} in this range`
    : `from the newest ${counted(found.looked, 'event')} in this range`
  return (
    <>
      <DataTable
        title="Accepted subjects"
        about={from}
        csv={{
          page: 'auth',
          table: 'subjects',
          period,
          all: async (signal) => (await fetchAllRows('auth/identities', signal)).subjects,
        }}
        rows={found.subjects}
        keyOf={(row) => JSON.stringify([row.subject, row.protocol, row.trust])}
        sortBy={measures.accepted.name}
        empty="No named subjects in this range."
        columns={columns}
      />
      <Later>
        <Bars
          title="Reasons for not accepted identities"
          wide
          unit={from}
          bars={found.failures.map(({ name, count }) => ({
            key: name,
            name,
            count,
            colour: 'error',
            href: logsHref({ type: 'auth.identity_presented', outcome: 'error', siteIds: period.siteIds }),
          }))}
          rest={{ names: 0, count: 0 }}
          empty="All identities were accepted."
        />
      </Later>
    </>
  )
}
