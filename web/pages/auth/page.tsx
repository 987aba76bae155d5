/** Auth: identities that agents presented, how they proved them, what trust that earned, and what failed. */
import type { AuthCounts, Cut } from '../../api.ts'
import { Bars } from '../../charts/bars.tsx'
import { percent, shareOf } from '../../charts/change.ts'
import { ChartPanel } from '../../charts/chart-panel.tsx'
import { changeColumns, refusalColumns } from '../../charts/cut-columns.tsx'
import { countOf, cutBars, cutRest } from '../../charts/cut-bars.ts'
import { DataTable } from '../../charts/data-table.tsx'
import { Headlines } from '../../charts/headlines.tsx'
import { cutSeries, outcomeSeries, trustOrder, trustRank } from '../../charts/series.ts'
import { Later } from '../../components/later.tsx'
import { Vial } from '../../components/marks.tsx'
import { Text } from '../../components/text.tsx'
import { query } from '../../router.ts'
import { CountsPage } from '../../range/counts-page.tsx'
import { logsHref } from '../../range/logs-link.ts'
import { choiceOf, rangeWords } from '../../range/range.ts'
import { countAhead, useCounts } from '../../range/use-counts.ts'
import { Identities } from './identities.tsx'

const type = 'auth.identity_presented'

export const ahead = () => Promise.all([countAhead('auth'), countAhead('auth/identities')])

export default function AuthPage() {
  const model = useCounts('auth', ['auth.*'])
  return (
    <CountsPage
      title="Auth"
      missing="No identities yet"
      kind="auth"
      model={model}
      isMine={(one) => one.startsWith('auth.')}
      isEmpty={(data) => data.presented.count === 0}
    >
      {(data) => <Presented data={data} />}
    </CountsPage>
  )
}

function Presented({ data }: { data: AuthCounts }) {
  const { period, presented, cleared, protocols, trusts } = data
  const of = { siteIds: period.siteIds, since: period.since, until: period.until, type }
  return (
    <>
      <AuthHeadlines data={data} />
      <div class="split">
        <ChartPanel
          what="Identities"
          period={period}
          filter={{ type }}
          divisions={[
            {
              name: 'trust',
              series: cutSeries(trusts.rows, presented, { order: trustOrder, without: 'no trust' }),
              filterOf: (trust) => ({ type, trust }),
            },
            {
              name: 'protocol',
              series: cutSeries(protocols.rows, presented, { without: 'no protocol or others' }),
              filterOf: (protocol) => ({ type, protocol }),
            },
            {
              name: 'outcome',
              series: outcomeSeries(presented),
              filterOf: (outcome) => ({ type, outcome }),
            },
          ]}
        />
        <Bars
          title="Trust ladder"
          unit="identities"
          bars={cutBars(trusts, { href: (trust) => logsHref({ ...of, trust }) })
            .map((bar) => ({ ...bar, mark: <Vial trust={bar.key} /> }))
            .sort((a, b) => trustRank(b.key) - trustRank(a.key))}
          rest={cutRest(trusts, presented)}
          restName="no trust"
        />
      </div>
      <CutTable title="Protocols" head="Protocol" cut={data.protocols} of={of} data={data} />
      <Identities siteIds={period.siteIds} presented={presented.count} />
      <Later>
        <CutTable title="Vendors" head="Vendor" cut={data.vendors} of={of} data={data} />
      </Later>
      {cleared.count > 0 && (
        <p class="muted">
          <a href={logsHref({ ...of, type: 'auth.identity_cleared' })}>{cleared.count} identities</a> were
          cleared {rangeWords(period)}.
        </p>
      )}
    </>
  )
}

function AuthHeadlines({ data: { period, presented, trusts, protocols } }: { data: AuthCounts }) {
  const accepted = presented.outcomes['success'] ?? { count: 0, before: 0 }
  const failed = { count: presented.count - accepted.count, before: presented.before - accepted.before }
  const proved = countOf(trusts, 'verified', 'linked')
  return (
    <Headlines
      period={period}
      lines={[
        { kind: 'count', name: 'Identities presented', now: presented.count, before: presented.before },
        { kind: 'count', name: 'Accepted', now: accepted.count, before: accepted.before },
        {
          kind: 'count',
          name: 'Not accepted',
          now: failed.count,
          before: failed.before,
          note: `${percent(shareOf(failed.count, presented.count))} of all`,
        },
        {
          kind: 'share',
          name: 'Verified or linked',
          now: shareOf(proved.count, presented.count),
          before: shareOf(proved.before, presented.before),
        },
        {
          kind: 'count',
          name: 'Protocols',
          now: protocols.rows.filter((row) => row.value !== null && row.count > 0).length,
          before: protocols.rows.filter((row) => row.value !== null && row.before > 0).length,
        },
      ]}
    />
  )
}

interface CutTableProps {
  title: string
  head: 'Protocol' | 'Vendor'
  cut: Cut
  of: { siteIds: string[]; since: string; until: string; type: string }
  data: AuthCounts
}

function CutTable({ title, head, cut, of, data }: CutTableProps) {
  const member = head === 'Protocol' ? 'protocol' : 'vendor'
  return (
    <DataTable
      title={title}
      about={`identities ${rangeWords(data.period)}`}
      csvName={`auth-${member}s`}
      rows={cut.rows.filter((row) => row.count > 0 || row.before > 0)}
      keyOf={(row) => row.value ?? ''}
      sortBy="Presented"
      columns={[
        {
          name: head,
          value: (row) => row.value ?? '(others)',
          show: (row) => {
            const { value } = row
            if (value === null) return <span class="muted">(others)</span>
            return (
              <a href={logsHref({ ...of, [member]: value })}>
                <Text value={value} max={40} />
              </a>
            )
          },
        },
        { name: 'Presented', number: true, value: (row) => row.count },
        ...refusalColumns('Accepted', 'Not accepted'),
        ...(choiceOf(query.value).compare ? changeColumns : []),
      ]}
    />
  )
}
