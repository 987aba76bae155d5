/** Analytics: all events over time, by pillar and outcome, with the top values of every field. */
import { prefetchCounts, useCounts } from '../../query/use-query.ts'
import type { AnalyticsCounts, Cut, PeriodView, Tally } from '../../api/api.ts'
import { Bars } from '../../charts/breakdown.tsx'
import { ChartPanel } from '../../charts/chart-panel.tsx'
import { breakdownBars, distinct } from '../../charts/breakdown.tsx'
import { changeColumns } from '../../charts/breakdown.tsx'
import { DataTable } from '../../charts/data-table.tsx'
import { countLine, Headlines } from '../../charts/headlines.tsx'
import { outcomeSeries } from '../../charts/chart-model.ts'
import { Later } from '../../components/rendering.tsx'
import { Text } from '../../components/text.tsx'
import { measures, pageMeasures } from '../../text/measures.ts'
import { query } from '../../app/router.ts'
import { CountsPage } from '../../range/counts-page.tsx'
import { filterable } from '../../range/filters.tsx'
import { type LogsFilter, logsHref } from '../../range/filters.tsx'
import { ValueLink } from '../../range/filters.tsx'
import { choiceOf, rangeWords } from '../../range/range.ts'
import { Active } from './active.tsx'
import { Durations } from './active.tsx'
import { pillarCounts, pillarSeries } from './pillars.ts'

export const prefetch = () => prefetchCounts('analytics')

export default function AnalyticsPage() {
  const model = useCounts('analytics', [])
  return (
    <CountsPage
      title="Analytics"
      missing="No events yet"
      nouns={measures.events.unit}
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
  const of = { siteIds: period.siteIds, since: period.since, until: period.until }
  return (
    <>
      <Headlines
        period={period}
        lines={[
          countLine(measures.events, all),
          ...pageMeasures.map((measure) => ({
            ...countLine(measure, data.types[measure.type] ?? { count: 0, before: 0 }),
            href: logsHref({ ...of, type: measure.type }),
          })),
          countLine(measures.vendors, { count: vendors.now, before: vendors.before }),
        ]}
      />
      <ChartPanel
        what={measures.events.name}
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
      {period.filters.length > 0 ? (
        <p class="muted">
          Tool call durations and active agents cannot be filtered. Clear the filters to see them.
        </p>
      ) : (
        <>
          <Later>
            <Durations calls={data.types['tool.executed']?.count ?? 0} />
          </Later>
          <Later>
            <Active period={period} events={all.count} />
          </Later>
        </>
      )}
    </>
  )
}

interface Top {
  title: string
  by: string
  unit: string
  cut: Cut
  filterOf: (value: string) => LogsFilter
}

function Tops({ data }: { data: AnalyticsCounts }) {
  const { period } = data
  const of = { siteIds: period.siteIds, since: period.since, until: period.until }
  const tops: Top[] = [
    {
      title: measures.vendors.name,
      unit: measures.events.unit,
      by: 'vendor',
      cut: data.vendors,
      filterOf: (vendor) => ({ vendor }),
    },
    {
      title: 'Classes',
      unit: measures.events.unit,
      by: 'class',
      cut: data.classes,
      filterOf: (agentClass) => ({ agentClass }),
    },
    {
      title: 'Tools',
      unit: measures.toolCalls.unit,
      by: 'tool',
      cut: data.tools,
      filterOf: (tool) => ({ type: 'tool.executed', tool }),
    },
    { title: 'Pages', by: 'page', unit: measures.events.unit, cut: data.pages, filterOf: () => ({}) },
    {
      title: 'Protocols',
      unit: measures.identities.unit,
      by: 'protocol',
      cut: data.protocols,
      filterOf: (protocol) => ({ type: 'auth.identity_presented', protocol }),
    },
    {
      title: 'Rules',
      unit: measures.decisions.unit,
      by: 'rule',
      cut: data.rules,
      filterOf: () => ({ type: 'authz.evaluated' }),
    },
  ]
  return (
    <div class="thirds">
      {tops.map(({ title, by, unit, cut, filterOf }) => {
        const isInLogs = filterable[by]?.logs != null
        const bars = breakdownBars(cut, {
          by,
          href: (value) => (isInLogs ? logsHref({ ...filterOf(value), ...of }) : undefined),
          ...(title !== 'Classes' && { colour: () => 'accent' }),
        })
        const others = cut.rows.find((row) => row.value === null)?.count ?? 0
        return (
          <Bars
            key={title}
            title={title}
            unit={unit}
            bars={bars.map((bar) => ({
              ...bar,
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
      csv={{ page: 'analytics', table: 'types', period }}
      rows={Object.entries(types).map(([type, tally]) => ({ type, ...tally }))}
      keyOf={(row) => row.type}
      sortBy={measures.events.name}
      columns={[
        {
          name: 'Type',
          value: (row) => row.type,
          show: (row) => (
            <ValueLink filter={{ name: 'type', value: row.type }} logs={logsHref({ ...of, type: row.type })}>
              <Text value={row.type} max={40} />
            </ValueLink>
          ),
        },
        { name: measures.events.name, number: true, value: (row) => row.count },
        ...(choiceOf(query.value).compare ? changeColumns() : []),
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
      csv={{ page: 'analytics', table: 'outcomes', period }}
      rows={Object.entries(all.outcomes).map(([outcome, tally]) => ({ outcome, ...tally }))}
      keyOf={(row) => row.outcome}
      sortBy={measures.events.name}
      columns={[
        {
          name: 'Outcome',
          value: (row) => row.outcome,
          show: (row) => (
            <ValueLink
              filter={{ name: 'outcome', value: row.outcome }}
              logs={logsHref({ ...of, outcome: row.outcome })}
            >
              <Text value={row.outcome} max={32} />
            </ValueLink>
          ),
        },
        { name: measures.events.name, number: true, value: (row) => row.count },
        ...(choiceOf(query.value).compare ? changeColumns() : []),
      ]}
    />
  )
}
