/** Analytics: requests or visits over time, what else happened, the top values of every field; and Explore. */
import { pageParams, prefetchCounts, useCounts } from '../../range/counts-query.ts'
import { Bars, breakdownBars, changeColumns, distinct } from '../../charts/breakdown.tsx'
import { ChartPanel } from '../../charts/chart-panel.tsx'
import { DataTable } from '../../charts/data-table.tsx'
import { Headlines, countLine } from '../../charts/headlines.tsx'
import { kindSeries } from '../../charts/kinds.ts'
import { unitLine } from '../../charts/unit.ts'
import { outcomeSeries } from '../../charts/chart-model.ts'
import { Later } from '../../components/rendering.tsx'
import { Text } from '../../components/text.tsx'
import { count } from '../../text/format.ts'
import { measureOf, measures, pageMeasures } from '../../text/measures.ts'
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

const zeroCounts = { count: 0, before: 0 }

/** Beside the unit of the range: visits and referrals are never added to requests. */
function besideMeasures({ unit, types }: AnalyticsCounts) {
  const others = [measures.requests, measures.visits, measures.referrals]
  return others.filter(({ type }) => type !== null && type !== unit.type && Object.hasOwn(types, type))
}

function Everything({ data }: { data: AnalyticsCounts }) {
  const { period, unit, all } = data
  const vendors = distinct(data.vendors)
  const scope = { siteIds: period.siteIds, since: period.since, until: period.until }
  const others = pageMeasures.filter(({ type }) => type !== unit.type)
  const lines = [...besideMeasures(data), ...others].map(({ name, type }) => ({
    ...countLine({ name }, data.types[type ?? ''] ?? zeroCounts),
    ...(type !== null && { href: logsHref({ ...scope, type }) }),
  }))
  const vendorsBefore = unit.comparable ? vendors.before : null
  return (
    <>
      <Headlines
        period={period}
        lines={[
          { ...unitLine(unit, data.counted), href: logsHref({ ...scope, type: unit.type }) },
          ...lines,
          countLine(measures.vendors, { count: vendors.now, before: vendorsBefore }),
        ]}
      />
      <ChartPanel
        what={unit.label}
        period={period}
        filter={{ type: unit.type }}
        divisions={[
          {
            name: 'outcome',
            series: outcomeSeries(data.counted),
            filterOf: (outcome) => ({ type: unit.type, outcome }),
          },
        ]}
      />
      <ChartPanel
        what="Activity"
        period={period}
        filter={{}}
        lines
        showValue={count}
        divisions={[{ name: 'kind', series: kindSeries(data), filterOf: (type) => ({ type }) }]}
      />
      <div class="halves">
        <TypeTable types={data.types} period={period} />
        <OutcomeTable data={data} />
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
  const { period, unit } = data
  const scope = { siteIds: period.siteIds, since: period.since, until: period.until }
  const { type } = unit
  const tops: Top[] = [
    {
      title: measures.vendors.name,
      unit: unit.label.toLowerCase(),
      by: 'vendor',
      breakdown: data.vendors,
      filterOf: (vendor) => ({ type, vendor }),
    },
    {
      title: 'Classes',
      unit: unit.label.toLowerCase(),
      by: 'class',
      breakdown: data.classes,
      filterOf: (agentClass) => ({ type, agentClass }),
    },
    {
      title: 'Tools',
      unit: measures.toolCalls.unit,
      by: 'tool',
      breakdown: data.tools,
      filterOf: (tool) => ({ type: 'tool.executed', tool }),
    },
    {
      title: 'Pages',
      by: 'page',
      unit: unit.label.toLowerCase(),
      breakdown: data.pages,
      filterOf: () => ({ type }),
    },
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
      {tops.map(({ title, by: dimension, unit, breakdown, filterOf }) => {
        const isInLogs = filterable[dimension]?.logs != null
        const bars = breakdownBars(breakdown, {
          by: dimension,
          href: (value) => (isInLogs ? logsHref({ ...filterOf(value), ...scope }) : undefined),
          ...(title !== 'Classes' && { colour: () => 'accent' }),
        })
        const otherCount = breakdown.rows.find((row) => row.value === null)?.count ?? 0
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
            rest={{ names: breakdown.more?.values ?? 0, count: (breakdown.more?.count ?? 0) + otherCount }}
          />
        )
      })}
    </div>
  )
}

/** Each type in its own unit. The column is not summed, because a request and its own detection are both in it. */
function TypeTable({ types, period }: { types: { [type: string]: EventCounts }; period: PeriodView }) {
  const scope = { siteIds: period.siteIds, since: period.since, until: period.until }
  return (
    <DataTable
      title="Types"
      about={rangeWords(period)}
      csv={{ page: 'analytics', table: 'types', period }}
      rows={Object.entries(types).map(([type, counts]) => ({ type, ...counts }))}
      keyOf={(row) => row.type}
      sortBy="Count"
      columns={[
        {
          name: 'Type',
          value: (row) => row.type,
          show: (row) => (
            <ValueLink
              filter={{ name: 'type', value: row.type }}
              logs={logsHref({ ...scope, type: row.type })}
            >
              <Text value={row.type} max={40} />
            </ValueLink>
          ),
        },
        { name: 'Unit', value: (row) => measureOf(row.type)?.unit ?? 'events' },
        { name: 'Count', number: true, value: (row) => row.count },
        ...(choiceOf(query.value).compare ? changeColumns() : []),
      ]}
    />
  )
}

function OutcomeTable({ data }: { data: AnalyticsCounts }) {
  const { period, unit } = data
  const name = unit.label
  const isCompared = choiceOf(query.value).compare && unit.comparable
  const scope = { siteIds: period.siteIds, since: period.since, until: period.until }
  return (
    <DataTable
      title="Outcomes"
      about={rangeWords(period)}
      csv={{ page: 'analytics', table: 'outcomes', period }}
      rows={Object.entries(data.counted.outcomes).map(([outcome, counts]) => ({ outcome, ...counts }))}
      keyOf={(row) => row.outcome}
      sortBy={name}
      columns={[
        {
          name: 'Outcome',
          value: (row) => row.outcome,
          show: (row) => (
            <ValueLink
              filter={{ name: 'outcome', value: row.outcome }}
              logs={logsHref({ ...scope, type: unit.type, outcome: row.outcome })}
            >
              <Text value={row.outcome} max={32} />
            </ValueLink>
          ),
        },
        { name, number: true, value: (row) => row.count },
        ...(isCompared ? changeColumns() : []),
      ]}
    />
  )
}
