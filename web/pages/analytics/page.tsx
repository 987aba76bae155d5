/** Analytics: everything over time by pillar and outcome, the top of every member, and vendors month by month. */
import type { AnalyticsCounts, Cut, PeriodView, Tally } from '../../api.ts'
import { Bars } from '../../charts/bars.tsx'
import { changeOf } from '../../charts/change.ts'
import { ChartPanel } from '../../charts/chart-panel.tsx'
import { cutBars, distinct } from '../../charts/cut-bars.ts'
import { DataTable } from '../../charts/data-table.tsx'
import { ChangeMark, Headlines } from '../../charts/headlines.tsx'
import { outcomeSeries } from '../../charts/series.ts'
import { Later } from '../../components/later.tsx'
import { Text } from '../../components/text.tsx'
import { CountsPage } from '../../range/counts-page.tsx'
import { type LogsFilter, logsHref } from '../../range/logs-link.ts'
import { rangeWords } from '../../range/range.ts'
import { countAhead, useCounts } from '../../range/use-counts.ts'
import { Active } from './active.tsx'
import { Durations } from './durations.tsx'
import { pillarCounts, pillarSeries } from './pillars.ts'

export const ahead = () => countAhead('analytics')

export default function AnalyticsPage() {
  const model = useCounts('analytics', [])
  return (
    <CountsPage
      title="Analytics"
      missing="Nothing to count yet"
      kind="agent"
      model={model}
      isMine={() => true}
      isEmpty={(data) => data.all.count === 0}
    >
      {(data) => <Everything data={data} />}
    </CountsPage>
  )
}

function Everything({ data }: { data: AnalyticsCounts }) {
  const { period, all } = data
  const pillars = pillarCounts(data.types, all.steps.length)
  const vendors = distinct(data.vendors)
  return (
    <>
      <Headlines
        period={period}
        lines={[
          { kind: 'count', name: 'Events', now: all.count, before: all.before },
          ...pillars
            .filter((one) => one.pillar !== null)
            .map(({ pillar, count, before }) => ({
              kind: 'count' as const,
              name: pillar?.name ?? '',
              now: count,
              before,
            })),
          { kind: 'count', name: 'Vendors', now: vendors.now, before: vendors.before },
        ]}
      />
      <ChartPanel
        what="Events"
        period={period}
        filter={{}}
        divisions={[
          {
            name: 'pillar',
            series: pillarSeries(pillars),
            filterOf: (prefix) => ({ type: `${prefix}.*` }),
          },
          { name: 'outcome', series: outcomeSeries(all), filterOf: (outcome) => ({ outcome }) },
        ]}
      />
      <div class="halves">
        <TypeTable types={data.types} period={period} />
        <OutcomeTable all={all} period={period} />
      </div>
      <Tops data={data} />
      <Later>
        <Durations calls={data.types['tool.executed']?.count ?? 0} />
      </Later>
      <Later>
        <Active period={period} events={all.count} />
      </Later>
    </>
  )
}

interface Top {
  title: string
  unit: string
  cut: Cut
  filterOf: (value: string) => LogsFilter
}

function Tops({ data }: { data: AnalyticsCounts }) {
  const { period } = data
  const of = { siteIds: period.siteIds, since: period.since, until: period.until }
  const tops: Top[] = [
    { title: 'Vendors', unit: 'events', cut: data.vendors, filterOf: (vendor) => ({ vendor }) },
    { title: 'Classes', unit: 'events', cut: data.classes, filterOf: (agentClass) => ({ agentClass }) },
    {
      title: 'Tools',
      unit: 'calls',
      cut: data.tools,
      filterOf: (tool) => ({ type: 'tool.executed', tool }),
    },
    { title: 'Pages', unit: 'events', cut: data.pages, filterOf: () => ({}) },
    {
      title: 'Protocols',
      unit: 'identities',
      cut: data.protocols,
      filterOf: (protocol) => ({ type: 'auth.identity_presented', protocol }),
    },
    { title: 'Rules', unit: 'decisions', cut: data.rules, filterOf: () => ({ type: 'authz.evaluated' }) },
  ]
  return (
    <div class="thirds">
      {tops.map(({ title, unit, cut, filterOf }) => {
        const bars = cutBars(cut, {
          href: (value) => logsHref({ ...filterOf(value), ...of }),
          ...(title !== 'Classes' && { colour: () => 'accent' }),
        })
        const linked = title !== 'Pages' && title !== 'Rules' // Logs has no filter for these
        const others = cut.rows.find((row) => row.value === null)?.count ?? 0
        return (
          <Bars
            key={title}
            title={title}
            unit={unit}
            bars={bars.map(({ href, ...bar }) => ({
              ...bar,
              ...(linked && href !== undefined && { href }),
              ...(title === 'Classes' && {
                mark: <i class="series-mark" style={{ background: `var(--${bar.colour})` }} />,
              }),
            }))}
            rest={{ names: cut.more?.values ?? 0, count: (cut.more?.count ?? 0) + others }}
          />
        )
      })}
    </div>
  )
}

function TypeTable({ types, period }: { types: { [type: string]: Tally }; period: PeriodView }) {
  const of = { siteIds: period.siteIds, since: period.since, until: period.until }
  return (
    <DataTable
      title="Types"
      about={rangeWords(period)}
      csvName="types"
      rows={Object.entries(types).map(([type, tally]) => ({ type, ...tally }))}
      keyOf={(row) => row.type}
      sortBy="Events"
      columns={[
        {
          name: 'Type',
          value: (row) => row.type,
          show: (row) => (
            <a href={logsHref({ ...of, type: row.type })}>
              <Text value={row.type} max={40} />
            </a>
          ),
        },
        { name: 'Events', number: true, value: (row) => row.count },
        { name: 'Before', number: true, value: (row) => row.before },
        {
          name: 'Change',
          number: true,
          value: (row) => row.count - row.before,
          show: (row) => {
            const change = changeOf(row.count, row.before)
            return change.text === 'new' ? 'new' : <ChangeMark change={change} />
          },
        },
      ]}
    />
  )
}

function OutcomeTable({ all, period }: { all: Tally; period: PeriodView }) {
  const of = { siteIds: period.siteIds, since: period.since, until: period.until }
  return (
    <DataTable
      title="Outcomes"
      about={rangeWords(period)}
      csvName="outcomes"
      rows={Object.entries(all.outcomes).map(([outcome, tally]) => ({ outcome, ...tally }))}
      keyOf={(row) => row.outcome}
      sortBy="Events"
      columns={[
        {
          name: 'Outcome',
          value: (row) => row.outcome,
          show: (row) => (
            <a href={logsHref({ ...of, outcome: row.outcome })}>
              <Text value={row.outcome} max={32} />
            </a>
          ),
        },
        { name: 'Events', number: true, value: (row) => row.count },
        { name: 'Before', number: true, value: (row) => row.before },
        {
          name: 'Change',
          number: true,
          value: (row) => row.count - row.before,
          show: (row) => {
            const change = changeOf(row.count, row.before)
            return change.text === 'new' ? 'new' : <ChangeMark change={change} />
          },
        },
      ]}
    />
  )
}
