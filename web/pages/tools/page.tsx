/** WebMCP Tools: the tools of each page, their token cost and their use. */
import { type Query, prefetchQuery } from '../../query/query.ts'
import { choiceOf, compares, nextPageParams } from '../../range/range.ts'
import { prefetchCounts, useCounts, usePushed } from '../../range/counts-query.ts'
import type { Pushed } from '../../query/query.ts'
import './page.css'
import { useMemo } from 'preact/hooks'
import { api, type PeriodView, type ToolCalls } from '../../api/api.ts'
import { ChartPanel } from '../../charts/chart-panel.tsx'
import { csvRowsMax } from '../../charts/data-table.tsx'
import { type Headline, Headlines, countLine, shareOf } from '../../charts/headlines.tsx'
import { outcomeSeries } from '../../charts/chart-model.ts'
import { FirstEvent } from '../../components/page-frame.tsx'
import { Problem } from '../../components/problem.tsx'
import { Text } from '../../components/text.tsx'
import { count, counted } from '../../text/format.ts'
import { measures } from '../../text/measures.ts'
import { logsHref } from '../../range/filters.tsx'
import { PeriodLine, RangeBar } from '../../range/range-bar.tsx'
import { registryApi, type Tool } from '../../api/registry-api.ts'
import { prerender } from '../../components/rendering.tsx'
import { navigate, place, query, withQuery } from '../../app/router.ts'
import { overview } from '../../app/session.ts'
import { Budget } from './budget.tsx'
import { ToolDetail } from './detail.tsx'
import { pageCosts, type Show, summaryOf, type ToolRow, toolRows, toolFilterOf, filterTools } from './rows.ts'
import { ToolTable } from './table.tsx'

const toolsShownMax = 2_000

/** The tool registry of the selected sites; no selection means all sites. */
const toolsQuery = (siteIds: string[]): Query<Pushed<Tool>> => ({
  key: `tools?${JSON.stringify(siteIds)}`,
  fetch: (signal) => registryApi.tools(siteIds, toolsShownMax, signal),
})

export const prefetch = async () => {
  const calls = await prefetchCounts('tools/calls')
  const registry = await prefetchQuery(toolsQuery(nextPageParams().getAll('siteId')))
  await prerender(<Body registry={registry} calls={calls} period={calls.period} />)
}

export default function ToolsPage() {
  const calls = useCounts('tools/calls', ['tool.*'])
  // Calls arrive continuously, pushes rarely.
  const registry = usePushed(toolsQuery, calls.data, 3_000)
  const period = calls.data.value?.period ?? null
  const error = registry.error.value ?? calls.error.value
  const pushedTools = registry.data.value
  return (
    <>
      <RangeBar title="WebMCP Tools" period={period} connection={calls.connection} />
      <div class={calls.stale.value ? 'page tools stale' : 'page tools'} aria-busy={calls.stale.value}>
        {error && <Problem error={error} onRetry={registry.refetch} />}
        {pushedTools && calls.data.value && (
          <Body registry={pushedTools} calls={calls.data.value} period={calls.data.value.period} />
        )}
      </div>
    </>
  )
}

const sample = `{"siteId":"my-site","tools":[{"name":"cart.add",
       "description":"Adds a product to the cart.","page":"/cart",
       "inputSchema":{"type":"object","required":["product"],
       "properties":{"product":{"type":"string","description":"Product number"}}}}]}`

function Nothing() {
  return (
    <FirstEvent
      title="No tools yet"
      lead={
        <>
          WebMCP Tools shows the registry that your backend pushes and <code>tool.executed</code> events.
        </>
      }
      kind="tool"
      push={{ path: '/v1/sdk/tools', body: sample }}
    />
  )
}

const neverSeen = (): boolean =>
  !Object.keys(overview.value?.byType ?? {}).some((type) => type === 'tool.executed')

function Body({ registry, calls, period }: { registry: Pushed<Tool>; calls: ToolCalls; period: PeriodView }) {
  const { list: tools, hasMore } = registry
  const rows = useMemo(() => toolRows(tools, calls), [tools, calls])
  const choice = choiceOf(query.value)
  if (rows.length === 0 && choice.siteIds.length === 0 && neverSeen()) return <Nothing />
  const site = query.value.get('site')
  const name = query.value.get('tool')
  if (site !== null && name !== null) {
    const row = rows.find((toolRow) => toolRow.siteId === site && toolRow.name === name) ?? null
    return <ToolDetail key={`${site}\n${name}`} siteId={site} name={name} row={row} period={period} />
  }
  return <Overview rows={rows} hasMore={hasMore} calls={calls} compare={compares(period, choice)} />
}

interface OverviewProps {
  rows: ToolRow[]
  hasMore: boolean
  calls: ToolCalls
  compare: boolean
}

function Overview({ rows, hasMore, calls, compare }: OverviewProps) {
  const pages = useMemo(() => pageCosts(rows), [rows])
  const filter = toolFilterOf(query.value)
  const shown = filterTools(rows, filter)
  const showSite = new Set(rows.map((row) => row.siteId)).size > 1
  const { period, executed } = calls
  const divisions = [
    {
      name: 'outcome',
      series: outcomeSeries(executed),
      filterOf: (outcome: string) => ({ type: 'tool.executed', outcome }),
    },
  ]
  return (
    <>
      <PeriodLine period={period} />
      <Headlines period={period} lines={headlines(rows, calls)} />
      <div class="tools-top beside-list">
        <ChartPanel
          what={measures.toolCalls.name}
          period={period}
          divisions={divisions}
          filter={{ type: 'tool.executed' }}
        />
        <Budget pages={pages} showSite={showSite} />
      </div>
      <Filters rows={rows} />
      <ToolTable
        rows={shown}
        all={rows.length}
        showSite={showSite}
        compare={compare}
        csv={{
          page: 'tools',
          table: 'tools',
          period,
          ...(hasMore && {
            all: async (signal) => {
              const whole = await registryApi.tools(choiceOf(query.peek()).siteIds, csvRowsMax, signal)
              return filterTools(toolRows(whole.list, calls), filter)
            },
          }),
        }}
      />
      {hasMore && (
        <p class="muted">
          The first {count(toolsShownMax)} tools by site and name are listed. Select a site to see others.
        </p>
      )}
      {calls.sitesLeftOut > 0 && (
        <p class="muted">
          Calls from {counted(calls.sitesLeftOut, 'more site')} are not listed by tool. Select a site to see
          them.
        </p>
      )}
    </>
  )
}

function headlines(rows: ToolRow[], { period, executed }: ToolCalls): Headline[] {
  const sum = summaryOf(rows)
  const errors = executed.outcomes['error']
  const never = `${place.value.path}${withQuery(place.value.search, { show: ['never'], page: [] })}`
  return [
    {
      ...countLine(measures.toolCalls, executed),
      href: logsHref({
        siteIds: period.siteIds,
        since: period.since,
        until: period.until,
        type: 'tool.executed',
      }),
    },
    {
      kind: 'share',
      name: 'Failed',
      note: 'of tool calls',
      now: shareOf(errors?.count ?? 0, executed.count),
      before: shareOf(errors?.before ?? 0, executed.before),
    },
    {
      kind: 'count',
      name: 'Tools registered',
      now: sum.tools,
      before: null,
      note: sum.disabled === 0 ? 'all enabled' : `${count(sum.disabled)} disabled`,
    },
    {
      kind: 'count',
      name: 'Total tokens',
      now: sum.tokens,
      before: null,
      note: sum.estimated ? 'estimated' : 'as pushed',
    },
    {
      kind: 'count',
      name: 'Never called',
      now: sum.never,
      before: null,
      href: never,
      note: `${count(sum.neverTokens)} tokens`,
    },
  ]
}

const showNames: { [show in Show]: string } = {
  all: 'All',
  never: 'Never called',
  findings: 'With findings',
  unregistered: 'Not registered',
}

function set(changes: { [name: string]: string[] }, replace = false): void {
  const currentPlace = place.peek()
  navigate(currentPlace.path + withQuery(currentPlace.search, changes), { replace })
}

function Filters({ rows }: { rows: ToolRow[] }) {
  const filter = toolFilterOf(query.value)
  return (
    <div class="tool-filters" role="group" aria-label="Filters">
      <label class="visually-hidden" for="find-tool">
        Find a tool
      </label>
      <input
        id="find-tool"
        class="search-field"
        placeholder="Find a tool by name"
        autocomplete="off"
        spellcheck={false}
        value={filter.text}
        onInput={(event) =>
          set({ find: event.currentTarget.value === '' ? [] : [event.currentTarget.value] }, true)
        }
      />
      {(Object.keys(showNames) as Show[]).map((show) => (
        <button
          type="button"
          key={show}
          class="button choice"
          aria-pressed={filter.show === show}
          onClick={() => set({ show: show === 'all' ? [] : [show] })}
        >
          {showNames[show]}
          <small>{count(filterTools(rows, { show, page: null, text: '' }).length)}</small>
        </button>
      ))}
      {filter.page !== null && (
        <button type="button" class="button" onClick={() => set({ page: [] })}>
          <span class="visually-hidden">Remove filter </span>
          page{' '}
          <b>
            <Text value={filter.page === '' ? 'none' : filter.page} max={32} />
          </b>
          <span aria-hidden="true">×</span>
        </button>
      )}
    </div>
  )
}
