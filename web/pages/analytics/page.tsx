/** Analytics: all events over time, by pillar and outcome, with the top values of every field; and Explore. */
import { pageParams, prefetchCounts, useCounts } from '../../range/counts-query.ts'
import { Bars, breakdownBars, changeColumns, distinct } from '../../charts/breakdown.tsx'
import { ChartPanel } from '../../charts/chart-panel.tsx'
import { DataTable } from '../../charts/data-table.tsx'
import { Headlines, countLine } from '../../charts/headlines.tsx'
import { pillarCounts, pillarSeries } from '../../charts/pillars.ts'
import { outcomeSeries } from '../../charts/chart-model.ts'
import { Later } from '../../components/rendering.tsx'
import { Text } from '../../components/text.tsx'
import { counted } from '../../text/format.ts'
import { measures, pageMeasures } from '../../text/measures.ts'
import { path, query } from '../../app/router.ts'
import { CountsPage } from '../../range/counts-page.tsx'
import { ValueLink, filterable, logsHref, type LogsFilter } from '../../range/filters.tsx'
import { choiceOf, rangeWords } from '../../range/range.ts'
import { ShareButton, sharedRange } from '../../range/share.tsx'
import { Active, Durations } from './active.tsx'
import { AnalyticsTabs, Explore } from './explore.tsx'
import type { AnalyticsCounts, BreakdownView, PeriodView, EventCounts } from '../../api/api.ts'

export const prefetch = () => prefetchCounts('analytics')

export default function AnalyticsPage() {
  return path.value === '/analytics/explore' ? <Explore /> : <Summary />
}

function Summary() {
  const model = useCounts('analytics', [])
  return (
    <CountsPage
      title="Analytics"
      missing="No events yet"
      nouns={measures.events.unit}
      kind="agent"
      allTypes
      model={model}
      isMine={() => true}
      isEmpty={(data) => data.all.count === 0}
      more={
        <ShareButton
          page="analytics"
          search={() => `?${pageParams()}`}
          about={sharedRange(model.data.value?.period ?? null)}
        />
      }
      above={<AnalyticsTabs shown="summary" />}
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
  breakdown: BreakdownView
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
      breakdown: data.vendors,
      filterOf: (vendor) => ({ vendor }),
    },
    {
      title: 'Classes',
      unit: measures.events.unit,
      by: 'class',
      breakdown: data.classes,
      filterOf: (agentClass) => ({ agentClass }),
    },
    {
      title: 'Tools',
      unit: measures.toolCalls.unit,
      by: 'tool',
      breakdown: data.tools,
      filterOf: (tool) => ({ type: 'tool.executed', tool }),
    },
    { title: 'Pages', by: 'page', unit: measures.events.unit, breakdown: data.pages, filterOf: () => ({}) },
    {
      title: 'Protocols',
      unit: measures.identities.unit,
      by: 'protocol',
      breakdown: data.protocols,
      filterOf: (protocol) => ({ type: 'auth.identity_presented', protocol }),
    },
    {
      title: 'Rules',
      unit: measures.decisions.unit,
      by: 'rule',
      breakdown: data.rules,
      filterOf: () => ({ type: 'authz.evaluated' }),
    },
  ]
  return (
    <div class="thirds">
      {tops.map(({ title, by, unit, breakdown, filterOf }) => {
        const isInLogs = filterable[by]?.logs != null
        const bars = breakdownBars(breakdown, {
          by,
          href: (value) => (isInLogs ? logsHref({ ...filterOf(value), ...of }) : undefined),
          ...(title !== 'Classes' && { colour: () => 'accent' }),
        })
        const others = breakdown.rows.find((row) => row.value === null)?.count ?? 0
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
            rest={{ names: breakdown.more?.values ?? 0, count: (breakdown.more?.count ?? 0) + others }}
          />
        )
      })}
    </div>
  )
}

function TypeTable({ types, period }: { types: { [type: string]: EventCounts }; period: PeriodView }) {
  const of = { siteIds: period.siteIds, since: period.since, until: period.until }
  return (
    <DataTable
      title="Types"
      about={rangeWords(period)}
      csv={{ page: 'analytics', table: 'types', period }}
      rows={Object.entries(types).map(([type, counts]) => ({ type, ...counts }))}
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

function OutcomeTable({ all, period }: { all: EventCounts; period: PeriodView }) {
  const of = { siteIds: period.siteIds, since: period.since, until: period.until }
  return (
    <DataTable
      title="Outcomes"
      about={rangeWords(period)}
      csv={{ page: 'analytics', table: 'outcomes', period }}
      rows={Object.entries(all.outcomes).map(([outcome, counts]) => ({ outcome, ...counts }))}
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
