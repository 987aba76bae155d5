/** Requests by agents: verified, claimed and contradicted, over time, by agent, page and referral. */
import { useQuery } from '../../query/use-query.ts'
import { countsQuery, fetchAllRows } from '../../range/counts-query.ts'
import {
  Bars,
  breakdownBars,
  breakdownRest,
  countOf,
  shareColumn,
  valueName,
} from '../../charts/breakdown.tsx'
import { ChartPanel } from '../../charts/chart-panel.tsx'
import { breakdownSeries, outcomeSeries } from '../../charts/chart-model.ts'
import { DataTable, type Column } from '../../charts/data-table.tsx'
import { countLine, Headlines, percent, shareOf, type Headline } from '../../charts/headlines.tsx'
import { comparedBefore, unitLine } from '../../charts/unit.ts'
import { Later } from '../../components/rendering.tsx'
import { Problem } from '../../components/problem.tsx'
import { Text } from '../../components/text.tsx'
import { ValueLink, logsHref, type LogsFilter } from '../../range/filters.tsx'
import { rangeWords } from '../../range/range.ts'
import { bytesText, count, counted } from '../../text/format.ts'
import { measures } from '../../text/measures.ts'
import { Impostors } from './impostors.tsx'
import { Judges } from './judges.tsx'
import type {
  AgentRequests,
  AgentResponses,
  CountedName,
  DetectClaims,
  DetectCounts,
  DetectRequests,
  PageRequests,
  EventCounts,
  RequestCounts,
  Unit,
} from '../../api/api.ts'

const type = 'agent.requested'
const verdictOrder = ['verified', 'consistent', 'unverifiable', 'unknown', 'contradicted']

/** Claims are counted event by event, so they are fetched less often while events arrive. */
const claimsRestMs = 5_000

/** The first screen says who, verified or not, and how much. */
export function Requests({ data }: { data: DetectCounts }) {
  const { period, requested, referred } = data
  const requestsAnswer = useQuery(countsQuery('detect/requests'), requested.count + referred.count)
  const claims = useQuery(countsQuery('detect/claims'), requested.count, { restMs: claimsRestMs })
  const error = requestsAnswer.error ?? claims.error
  const scope = { siteIds: period.siteIds, since: period.since, until: period.until, type }
  return (
    <>
      {error && <Problem error={error} />}
      {requested.count > 0 && <RequestHeadlines data={data} found={requestsAnswer.data} of={scope} />}
      {requestsAnswer.data && <Judges found={requestsAnswer.data} of={scope} />}
      {claims.data?.complete === false && (
        <p class="muted">
          There are too many requests to list agents, pages and impostors. Choose a shorter range.
        </p>
      )}
      {claims.data && <AgentRequestsTable data={data} claims={claims.data} of={scope} />}
      {claims.data && <Impostors rows={claims.data.impostors} period={period} />}
      {requested.count > 0 && requestsAnswer.data && (
        <RequestChart data={data} found={requestsAnswer.data} of={scope} />
      )}
      {requested.count > 0 && (
        <Later>
          <Responses data={data} />
        </Later>
      )}
      {claims.data && <Pages data={data} claims={claims.data} />}
      {requestsAnswer.data && referred.count > 0 && <Referrals data={data} found={requestsAnswer.data} />}
    </>
  )
}

interface PartProps {
  data: DetectCounts
  found: DetectRequests
}

/** Filters may name another type; this view counts requests whatever they name. */
const requestLine = (unit: Unit, requested: EventCounts) =>
  unit.type === type ? unitLine(unit, requested) : countLine(measures.requests, requested)

function RequestHeadlines(props: { data: DetectCounts; found: DetectRequests | null; of: LogsFilter }) {
  const { data, found: requests, of: scope } = props
  const { period, requested, unit } = data
  const part = ({ name }: { name: string }, verdict: string, ...otherVerdicts: string[]): Headline => {
    const sum = requests && countOf(requests.verdicts, verdict, ...otherVerdicts)
    return {
      kind: 'count',
      name,
      now: sum?.count ?? null,
      before: comparedBefore(unit, sum?.before ?? null),
      ...(sum && { note: `${percent(shareOf(sum.count, requested.count))} of requests` }),
      // Logs filters by one verdict.
      ...(otherVerdicts.length === 0 && { href: logsHref({ ...scope, verdict }) }),
    }
  }
  const share: Headline[] = requests?.all
    ? [
        {
          kind: 'share',
          name: measures.shareOfRequests.name,
          now: shareOf(requests.all.agents.count, requests.all.requests.count),
          before: shareOf(requests.all.agents.before, requests.all.requests.before),
          note: `${count(requests.all.agents.count)} of ${counted(requests.all.requests.count, 'request')} in access logs`,
        },
      ]
    : []
  return (
    <Headlines
      period={period}
      lines={[
        { ...requestLine(unit, requested), href: logsHref(scope) },
        ...share,
        part(measures.verified, 'verified'),
        part(measures.claimed, 'consistent', 'unverifiable'),
        part(measures.contradicted, 'contradicted'),
      ]}
    />
  )
}

function RequestChart({
  data: { period, requested },
  found: requests,
  of: scope,
}: PartProps & { of: LogsFilter }) {
  const { verdicts, purposes } = requests
  return (
    <div class="split beside-list">
      <ChartPanel
        what={measures.requests.name}
        period={period}
        filter={{ type }}
        divisions={[
          {
            name: 'verdict',
            series: breakdownSeries(verdicts.rows, requested, { order: verdictOrder, without: 'no verdict' }),
            filterOf: (verdict) => ({ type, verdict }),
          },
          {
            name: 'purpose',
            series: breakdownSeries(purposes.rows, requested, {
              without: 'no purpose',
              colour: (_, index) => `series-${index + 1}`,
            }),
            filterOf: (purpose) => ({ type, purpose }),
          },
          {
            name: 'outcome',
            series: outcomeSeries(requested),
            filterOf: (outcome) => ({ type, outcome }),
          },
        ]}
      />
      <Bars
        title="Requests by purpose"
        unit="requests"
        bars={breakdownBars(purposes, {
          by: 'purpose',
          href: (purpose) => logsHref({ ...scope, purpose }),
          colour: () => 'accent',
        })}
        rest={breakdownRest(purposes, requested)}
        restName="no purpose"
      />
    </div>
  )
}

const nameText = (name: CountedName, noun: string): string =>
  typeof name === 'object'
    ? name.name
    : valueName({ kind: name === 'other' ? 'others' : 'missing', value: null }, noun)

function numberColumn<Row>(
  { name, definition }: { name: string; definition: string },
  value: (row: Row) => number,
): Column<Row> {
  const show = (row: Row) => (value(row) === 0 ? <span class="muted">0</span> : count(value(row)))
  return { name, about: definition.replaceAll('`', ''), number: true, value, show }
}

const outcomeColumns = <Row extends RequestCounts>(): Column<Row>[] => [
  numberColumn<Row>(measures.refused, (row) => row.refused),
  numberColumn<Row>(measures.failed, (row) => row.failed),
]

/** Drops columns that are zero in every row. */
function dropEmptyColumns<Row>(columns: Column<Row>[], rows: readonly Row[]): Column<Row>[] {
  return columns.filter(({ value, number }) => !number || rows.some((row) => value(row) !== 0))
}

function AgentRequestsTable({
  data: { period, requested },
  claims,
  of: scope,
}: {
  data: DetectCounts
  claims: DetectClaims
  of: LogsFilter
}) {
  const { agents } = claims
  if (agents.length === 0) return null
  const columns: Column<AgentRequests>[] = [
    {
      name: 'Agent',
      value: ({ name }) => nameText(name, 'name'),
      show: ({ name, vendor }) => <AgentLink name={name} vendor={vendor} of={scope} />,
    },
    {
      name: 'Operator',
      value: ({ vendor }) => nameText(vendor, 'vendor'),
      show: ({ vendor }) => <Text value={nameText(vendor, 'vendor')} max={32} />,
    },
    { name: 'Requests', number: true, value: (row) => row.requests },
    shareColumn('Share', (row) => shareOf(row.requests, requested.count)),
    numberColumn(measures.verified, (row) => row.verified),
    numberColumn(measures.claimed, (row) => row.claimed),
    numberColumn(measures.contradicted, (row) => row.contradicted),
    numberColumn(measures.disallowed, (row) => row.disallowed),
    ...outcomeColumns<AgentRequests>(),
  ]
  return (
    <DataTable
      title="Requests by agent"
      about={rangeWords(period)}
      csv={{
        page: 'detect',
        table: 'requests-by-agent',
        period,
        all: async (signal) => (await fetchAllRows('detect/claims', signal)).agents,
      }}
      columns={dropEmptyColumns(columns, agents)}
      rows={agents}
      keyOf={({ vendor, name }) => JSON.stringify([vendor, name])}
      sortBy="Requests"
      firstRows={6}
    />
  )
}

const responseColumns: Column<AgentResponses>[] = [
  {
    name: 'Agent',
    value: ({ name, vendor }) => name ?? vendor ?? '(no name)',
    show: ({ name, vendor }) => <Text value={name ?? vendor ?? '(no name)'} max={32} />,
  },
  { name: 'Requests', number: true, value: (row) => row.requests },
  numberColumn({ name: '2xx', definition: 'Served.' }, (row) => row.success),
  numberColumn({ name: '3xx', definition: 'Redirected, or not modified.' }, (row) => row.redirect),
  numberColumn({ name: '4xx', definition: 'Refused, or not found.' }, (row) => row.refusal),
  numberColumn({ name: '5xx', definition: 'The site failed.' }, (row) => row.failure),
  {
    name: 'Data',
    about: 'size of the responses',
    number: true,
    unit: 'bytes',
    value: (row) => row.bytes,
    show: (row) => bytesText(row.bytes),
  },
]

/** Read from the newest requests one by one, so it has a query of its own. */
function Responses({ data: { period, requested } }: { data: DetectCounts }) {
  const responses = useQuery(countsQuery('detect/responses'), requested.count, { restMs: claimsRestMs }).data
  if (responses === null || responses.agents.length === 0) return null
  const { agents, looked, complete } = responses
  return (
    <DataTable
      title="Responses by agent"
      about={complete ? rangeWords(period) : `based on the newest ${counted(looked, 'request')}`}
      csv={{
        page: 'detect',
        table: 'responses',
        period,
        all: async (signal) => (await fetchAllRows('detect/responses', signal)).agents,
      }}
      columns={dropEmptyColumns(responseColumns, agents)}
      rows={agents}
      keyOf={({ vendor, name }) => JSON.stringify([vendor, name])}
      sortBy="Requests"
      firstRows={6}
    />
  )
}

function AgentLink({ name, vendor, of: scope }: { name: CountedName; vendor: CountedName; of: LogsFilter }) {
  const text = nameText(name, 'name')
  if (typeof name === 'string') return <span class="muted">{text}</span>
  const logs = { ...scope, name: name.name, ...(typeof vendor === 'object' && { vendor: vendor.name }) }
  return (
    <ValueLink filter={{ name: 'name', value: name.name }} logs={logsHref(logs)}>
      <Text value={text} max={32} />
    </ValueLink>
  )
}

function Pages({ data: { period, requested }, claims }: { data: DetectCounts; claims: DetectClaims }) {
  const { pages } = claims
  if (pages.length === 0) return null
  const columns: Column<PageRequests>[] = [
    {
      name: 'Page',
      value: ({ page }) => page ?? '(others)',
      show: ({ page, pages: pageCount }) => <PageName page={page} many={pageCount} />,
    },
    { name: 'Requests', number: true, value: (row) => row.requests },
    shareColumn('Share', (row) => shareOf(row.requests, requested.count)),
    ...outcomeColumns<PageRequests>(),
  ]
  return (
    <DataTable
      title="Pages requested by agents"
      about={rangeWords(period)}
      csv={{
        page: 'detect',
        table: 'pages',
        period,
        all: async (signal) => (await fetchAllRows('detect/claims', signal)).pages,
      }}
      columns={dropEmptyColumns(columns, pages)}
      rows={pages}
      keyOf={({ page, pages: pageCount }) => JSON.stringify([page, pageCount])}
      sortBy="Requests"
      firstRows={6}
    />
  )
}

function PageName({ page, many: pageCount }: { page: string | null; many: number }) {
  if (page === null) return <span class="muted">(others)</span>
  if (pageCount === 1)
    return (
      <ValueLink filter={{ name: 'page', value: page }}>
        <Text value={page} max={60} />
      </ValueLink>
    )
  return (
    <>
      <Text value={page} max={60} /> <small class="muted">{counted(pageCount, 'page')}</small>
    </>
  )
}

function Referrals({ data: { period, referred }, found: { referrers } }: PartProps) {
  const filter = { type: 'agent.referred' }
  return (
    <ChartPanel
      what={measures.referrals.name}
      period={period}
      filter={filter}
      note={counted(referred.count, 'person', 'people')}
      divisions={[
        {
          name: 'assistant',
          series: breakdownSeries(referrers.rows, referred, {
            without: 'others',
            colour: (_, index) => `series-${index + 1}`,
          }),
          filterOf: (name) => ({ ...filter, name }),
        },
      ]}
    />
  )
}
