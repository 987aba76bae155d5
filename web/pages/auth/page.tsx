/** Auth: identities that agents presented, their protocols, trust and failures. */
import { useQuery } from '../../query/use-query.ts'
import { countsQuery, fetchAllRows, prefetchCounts, useCounts } from '../../range/counts-query.ts'
import {
  Bars,
  acceptedColumns,
  breakdownBars,
  breakdownRest,
  changeColumns,
  countOf,
  valueName,
  valueRows,
} from '../../charts/breakdown.tsx'
import { Headlines, countLine, percent, shareOf } from '../../charts/headlines.tsx'
import { ChartPanel } from '../../charts/chart-panel.tsx'
import { DataTable, type Column } from '../../charts/data-table.tsx'
import { breakdownSeries, outcomeSeries, trustOrder, trustRank } from '../../charts/chart-model.ts'
import { Later } from '../../components/rendering.tsx'
import { Vial } from '../../components/marks.tsx'
import { Text } from '../../components/text.tsx'
import { ago, counted, fullTime, utcTime } from '../../text/format.ts'
import { measures } from '../../text/measures.ts'
import { query } from '../../app/router.ts'
import { CountsPage } from '../../range/counts-page.tsx'
import { ValueLink, logsHref } from '../../range/filters.tsx'
import { choiceOf, compares, rangeWords } from '../../range/range.ts'
import { now } from '../../app/clock.ts'
import { Problem } from '../../components/problem.tsx'
import type { AuthCounts, IdentityDetail, PeriodView } from '../../api/api.ts'

const type = 'auth.identity_presented'

export const prefetch = () => Promise.all([prefetchCounts('auth'), prefetchCounts('auth/identities')])

export default function AuthPage() {
  const model = useCounts('auth', ['auth.*'])
  return (
    <CountsPage
      title="Auth"
      missing="No identities yet"
      nouns={measures.identities.unit}
      kind="auth"
      model={model}
      isMine={(eventType) => eventType.startsWith('auth.')}
      isEmpty={(data) => data.presented.count === 0}
    >
      {(data) => <Presented data={data} />}
    </CountsPage>
  )
}

function Presented({ data }: { data: AuthCounts }) {
  const { period, presented, cleared, protocols, trusts } = data
  const scope = { siteIds: period.siteIds, since: period.since, until: period.until, type }
  return (
    <>
      <AuthHeadlines data={data} />
      <div class="split beside-list">
        <ChartPanel
          what={measures.identities.name}
          period={period}
          filter={{ type }}
          divisions={[
            {
              name: 'trust',
              series: breakdownSeries(trusts.rows, presented, { order: trustOrder, without: 'no trust' }),
              filterOf: (trust) => ({ type, trust }),
            },
            {
              name: 'protocol',
              series: breakdownSeries(protocols.rows, presented, { without: 'other or no protocol' }),
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
          bars={breakdownBars(trusts, { by: 'trust', href: (trust) => logsHref({ ...scope, trust }) })
            .map((bar) => ({ ...bar, mark: <Vial trust={bar.key} /> }))
            .sort((a, b) => trustRank(b.key) - trustRank(a.key))}
          rest={breakdownRest(trusts, presented)}
          restName="no trust"
        />
      </div>
      <BreakdownTable title="Protocols" head="Protocol" of={scope} data={data} />
      <Identities period={period} presented={presented.count} />
      <Later>
        <BreakdownTable title="Vendors" head="Vendor" of={scope} data={data} />
      </Later>
      {cleared.count > 0 && (
        <p class="muted">
          <a href={logsHref({ ...scope, type: 'auth.identity_cleared' })}>
            {counted(cleared.count, 'identity', 'identities')}
          </a>{' '}
          {cleared.count === 1 ? 'was' : 'were'} cleared {rangeWords(period)}.
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
        countLine(measures.identities, presented),
        countLine(measures.accepted, accepted),
        {
          ...countLine(measures.notAccepted, failed),
          note: `${percent(shareOf(failed.count, presented.count))} of identities`,
        },
        {
          kind: 'share',
          name: measures.verifiedIdentities.name,
          now: shareOf(proved.count, presented.count),
          before: shareOf(proved.before, presented.before),
          note: 'of identities',
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

interface BreakdownTableProps {
  title: string
  head: 'Protocol' | 'Vendor'
  of: { siteIds: string[]; since: string; until: string; type: string }
  data: AuthCounts
}

function BreakdownTable({ title, head, of: scope, data }: BreakdownTableProps) {
  const field = head === 'Protocol' ? 'protocol' : 'vendor'
  const rowsOf = (counts: AuthCounts) => {
    const breakdown = counts[`${field}s`]
    return breakdown.rows.length === 0 ? [] : valueRows(breakdown, counts.presented)
  }
  return (
    <DataTable
      title={title}
      about={`identities ${rangeWords(data.period)}`}
      csv={{
        page: 'auth',
        table: `${field}s`,
        period: data.period,
        all: async (signal) => rowsOf(await fetchAllRows('auth', signal)),
      }}
      rows={rowsOf(data)}
      keyOf={(row) => `${row.kind} ${row.value}`}
      sortBy={measures.identities.name}
      columns={[
        {
          name: head,
          value: (row) => valueName(row, field),
          show: (row) => {
            if (row.kind !== 'value') return <span class="muted">{valueName(row, field)}</span>
            const value = row.value ?? ''
            return (
              <ValueLink filter={{ name: field, value }} logs={logsHref({ ...scope, [field]: value })}>
                <Text value={value} max={40} />
              </ValueLink>
            )
          },
        },
        { name: measures.identities.name, number: true, value: (row) => row.count },
        ...acceptedColumns(),
        ...(compares(data.period, choiceOf(query.value)) ? changeColumns() : []),
      ]}
    />
  )
}

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

function Seen({ at: seenAt }: { at: string }) {
  const ms = Date.parse(seenAt)
  return <span title={`${fullTime(ms)}\n${utcTime(ms)}`}>{ago(ms, now())}</span>
}

interface IdentitiesProps {
  period: PeriodView
  presented: number // a change fetches the newest events again
}

/** Accepted subjects and failure reasons, read from the newest events because names are not counted by hour. */
function Identities({ period, presented }: IdentitiesProps) {
  const { data: identities, error: problem } = useQuery(countsQuery('auth/identities'), presented)
  if (problem) return <Problem error={problem} />
  if (!identities) return null
  const from = identities.complete
    ? `from all ${counted(identities.looked, 'event')} in this range`
    : `from the newest ${counted(identities.looked, 'event')} in this range`
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
        rows={identities.subjects}
        keyOf={(row) => JSON.stringify([row.subject, row.protocol, row.trust])}
        sortBy={measures.accepted.name}
        empty="No named subjects in this range."
        columns={columns}
      />
      <Later>
        <Bars
          title="Not accepted, by reason"
          wide
          unit={from}
          bars={identities.failures.map(({ name, count }) => ({
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
