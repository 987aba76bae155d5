/** Knaph: the memory of each site, its quality, its changes and how often agents read it. */
import { prefetchCounts, useCounts, usePushed } from '../../range/counts-query.ts'
import type { Pushed } from '../../query/query.ts'
import { type Query, prefetchQuery } from '../../query/query.ts'
import { choiceOf, nextPageParams } from '../../range/range.ts'
import './page.css'
import type { KnaphCounts } from '../../api/api.ts'
import { ChartPanel } from '../../charts/chart-panel.tsx'
import { type Column, DataTable, csvRowsMax } from '../../charts/data-table.tsx'
import { countLine, type Headline, Headlines } from '../../charts/headlines.tsx'
import { outcomeSeries } from '../../charts/chart-model.ts'
import { FirstEvent } from '../../components/page-frame.tsx'
import { Problem } from '../../components/problem.tsx'
import { Text } from '../../components/text.tsx'
import { bytesText, count } from '../../text/format.ts'
import { measures } from '../../text/measures.ts'
import { PeriodLine, RangeBar } from '../../range/range-bar.tsx'
import { logsHref } from '../../range/filters.tsx'
import { type Memory, registryApi } from '../../api/registry-api.ts'
import { navigate, place, query, withQuery } from '../../app/router.ts'
import { overview } from '../../app/session.ts'
import { Moment } from '../../components/time.tsx'
import { ScoreBar, scoreText } from './history.tsx'
import { memoryQuery, SiteView } from './site-view.tsx'
import { Robots } from './robots.tsx'
import { siteMapOf } from './snapshot.ts'

const sitesShownMax = 200

/** The pushed memory of the selected sites; no selection means all sites. */
const memoriesQuery = (siteIds: string[]): Query<Pushed<Memory>> => ({
  key: `memories?${JSON.stringify(siteIds)}`,
  fetch: (signal) => registryApi.memories(siteIds, sitesShownMax, signal),
})

export const prefetch = async () => {
  await prefetchCounts('knaph')
  const [first] = (await prefetchQuery(memoriesQuery(nextPageParams().getAll('siteId')))).list
  if (first) await prefetchQuery(memoryQuery(first.siteId, first.version))
}

export default function KnaphPage() {
  const counts = useCounts('knaph', ['memory.*'])
  const memories = usePushed(memoriesQuery, counts.data)
  const error = memories.error.value ?? counts.error.value
  const pushedMemories = memories.data.value
  const use = counts.data.value
  return (
    <>
      <RangeBar title="Knaph" period={use?.period ?? null} connection={counts.connection} />
      <div class={counts.stale.value ? 'page knaph stale' : 'page knaph'} aria-busy={counts.stale.value}>
        {error && <Problem error={error} onRetry={memories.refetch} />}
        {pushedMemories && use && <Body memories={pushedMemories} use={use} />}
        {pushedMemories && use && (
          <Robots siteId={query.value.get('site') ?? pushedMemories.list[0]?.siteId ?? null} />
        )}
      </div>
    </>
  )
}

const sample = `{"siteId":"my-site","snapshot":{"siteMap":{"pages":[{"path":"/","name":"Home"},
       {"path":"/products","name":"Products","availableActions":["filter"]}]},
       "policies":{"returns":"Within 30 days."}}}`

function Nothing() {
  return (
    <FirstEvent
      title="No site memory yet"
      lead={
        <>
          Knaph shows the site memory that your backend pushes and <code>memory.accessed</code> events.
        </>
      }
      kind="memory"
      push={{ path: '/v1/sdk/memory', body: sample }}
    />
  )
}

const neverUsed = (): boolean =>
  !Object.keys(overview.value?.byType ?? {}).some((type) => type.startsWith('memory.'))

function Body({ memories, use }: { memories: Pushed<Memory>; use: KnaphCounts }) {
  const { list, hasMore } = memories
  const chosen = query.value.get('site')
  if (list.length === 0 && choiceOf(query.value).siteIds.length === 0 && neverUsed()) return <Nothing />
  const open = list.find((memory) => memory.siteId === chosen) ?? list[0]
  const divisions = [
    {
      name: 'outcome',
      series: outcomeSeries(use.accessed),
      filterOf: (outcome: string) => ({ type: 'memory.accessed', outcome }),
    },
  ]
  return (
    <>
      <PeriodLine period={use.period} />
      <Headlines period={use.period} lines={headlines(list, use)} />
      {use.accessed.count > 0 && (
        <ChartPanel
          what={measures.reads.name}
          period={use.period}
          divisions={divisions}
          filter={{ type: 'memory.accessed' }}
        />
      )}
      {list.length > 1 && <Sites list={list} />}
      {hasMore && (
        <p class="muted">The first {count(list.length)} sites are listed. Select a site to see others.</p>
      )}
      {open === undefined ? (
        <p class="panel lead">
          No snapshot pushed for this site. Push one to <code>/v1/sdk/memory</code>.
        </p>
      ) : (
        <SiteView key={open.siteId} siteId={open.siteId} version={open.version} />
      )}
    </>
  )
}

function headlines(list: Memory[], { period, accessed, updated }: KnaphCounts): Headline[] {
  const scope = { siteIds: period.siteIds, since: period.since, until: period.until }
  const scores = list.map((memory) => memory.score)
  const lowest = scores.length === 0 ? null : Math.min(...scores)
  const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length
  return [
    {
      ...countLine(measures.reads, accessed),
      href: logsHref({ ...scope, type: 'memory.accessed' }),
    },
    {
      ...countLine(measures.updates, updated),
      href: logsHref({ ...scope, type: 'memory.updated' }),
    },
    { kind: 'count', name: 'Sites with memory', now: list.length, before: null },
    {
      kind: 'count',
      name: 'Mean score',
      now: lowest === null ? null : Math.round(mean),
      before: null,
      note: lowest === null ? 'none pushed' : `lowest ${scoreText(lowest)}`,
    },
  ]
}

const columns: Column<Memory>[] = [
  {
    name: 'Site',
    value: (memory) => memory.siteId,
    show: (memory) => (
      <a href={siteHref(memory.siteId)}>
        <Text value={memory.siteId} max={48} />
      </a>
    ),
  },
  {
    name: 'Score',
    value: (memory) => memory.score,
    csv: (memory) => Math.round(memory.score * 10) / 10,
    show: (memory) => (
      <span class="score-cell">
        <ScoreBar score={memory.score} /> {scoreText(memory.score)}
      </span>
    ),
    number: true,
  },
  { name: 'Score source', value: (memory) => (memory.scoreComputed ? 'computed' : 'sent') },
  { name: 'Pages', value: (memory) => siteMapOf(memory.snapshot).pages, number: true },
  { name: 'Version', value: (memory) => memory.version, number: true },
  {
    name: 'Changed',
    time: true,
    value: (memory) => memory.at,
    show: (memory) => <Moment iso={memory.at} />,
  },
  {
    name: 'Size',
    unit: 'bytes',
    value: (memory) => memory.bytes,
    show: (memory) => bytesText(memory.bytes),
    number: true,
  },
]

const siteHref = (siteId: string): string =>
  place.value.path + withQuery(place.value.search, { site: [siteId] })

function Sites({ list }: { list: Memory[] }) {
  return (
    <DataTable
      title="Sites"
      csv={{
        page: 'knaph',
        table: 'sites',
        all: async (signal) =>
          (await registryApi.memories(choiceOf(query.peek()).siteIds, csvRowsMax, signal)).list,
      }}
      columns={columns}
      rows={list}
      keyOf={(memory) => memory.siteId}
      sortBy="Score"
      ascending
      onOpen={(memory) => navigate(siteHref(memory.siteId))}
    />
  )
}
