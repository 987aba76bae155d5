/** What a share link shows: a page with fixed filters and range. Reads it from the store for each opening. */
import { filterParameters, readFilter } from '../api/traces/filter.ts'
import { histogram, type Histogram } from '../api/traces/histogram.ts'
import { explorePageParameters, readPage, type PageQuery } from '../api/explore/query.ts'
import { changesSince, readSince } from '../counts/changes.ts'
import { analyticsCounts, weekCounts } from '../counts/counts.ts'
import { periodOf, periodParameters, periodView, readCountFilter, readZone } from '../counts/period.ts'
import { readQuery, type Query } from '../http/request.ts'
import { wrongField } from '../http/validate.ts'
import { limits } from '../limits.ts'
import type { AnalyticsCounts } from '../counts/shapes.ts'
import type { ShownExploration } from './explore.ts'
import type { OverviewPanel, ShownOverview } from './overview.ts'
import type { EventFilter, Store, StoredEvent } from '../../db/contract/store.ts'

export const panelNames = [
  'headlines',
  'timeline',
  'types',
  'outcomes',
  'vendors',
  'classes',
  'tools',
  'pages',
  'protocols',
  'rules',
] as const

export type Panel = (typeof panelNames)[number]

export interface ShareContent {
  page: 'analytics' | 'explore' | 'overview' | 'view'
  search: string // query string of the page: range, sites and filters
  panels: (Panel | OverviewPanel)[] // of Analytics and Overview
  events: boolean // of a view: its newest events
  identities: boolean // subjects and session ids of these events or of Explore, and filters by them
  frameOrigins: string[] // sites that may show the page in a frame
}

export type Shown =
  | { page: 'analytics'; counts: AnalyticsCounts }
  | ({ page: 'explore' } & ShownExploration)
  | ({ page: 'overview' } & ShownOverview)
  | { page: 'view'; filter: EventFilter; zone: string; histogram: Histogram; events: SharedEvent[] | null }

const countParameters = { ...periodParameters, filter: 'many' } as const
const viewParameters = { ...filterParameters, zone: 'one' } as const
const overviewParameters = { zone: 'one' } as const

/** What the page shows of an event. The rest is not remembered: 50 events may have 1 MiB. */
export interface SharedEvent {
  atMs: number
  texts: string[] // type, outcome, site, agent, tool; then session and subject, where identities are shown
}

/** Throws the error that opening the link would give. */
export async function checkContent(
  store: Pick<Store, 'retention'>,
  orgId: string,
  content: ShareContent,
  now: number,
): Promise<void> {
  const { page, search, identities } = content
  if (search.length > limits.viewSearchCharsMax)
    throw wrongField('search', `search must have at most ${limits.viewSearchCharsMax} characters`, 'too_long')
  if (page === 'analytics') {
    const query = queryOf(search, countParameters)
    readCountFilter(query)
    await periodOf(store, orgId, query, now)
    return
  }
  if (page === 'overview') {
    await periodOf(store, orgId, queryOf(search, overviewParameters), now)
    return
  }
  if (page === 'explore') {
    const { asked: exploreQuery } = await readPage(store, orgId, queryOf(search, explorePageParameters), now)
    if (!identities && showsIdentities(exploreQuery))
      throw wrongField(
        'search',
        'The query would show subjects or sessions. Choose another field, remove the filter, or also show them.',
      )
    return
  }
  const query = queryOf(search, viewParameters)
  readZone(query)
  const { sessionIds, subjects, text } = readFilter(query)
  if (!identities && (sessionIds !== undefined || subjects !== undefined || text !== undefined))
    throw wrongField(
      'search',
      'A filter by session, subject or text would show it. Remove the filter, or also show subjects and sessions.',
    )
}

/** By a field or a filter; the number of sessions or subjects shows none. */
function showsIdentities({ by: dimension, filter, metadata = [] }: PageQuery['asked']): boolean {
  const paths = [
    ...metadata.map(({ path }) => path),
    ...(typeof dimension === 'object' && dimension !== null ? [dimension.metadata] : []),
  ]
  return (
    dimension === 'sessionId' ||
    dimension === 'subject' ||
    filter.sessionIds !== undefined ||
    filter.subjects !== undefined ||
    filter.text !== undefined ||
    paths.some((path) => path.split('.')[0] === 'subject')
  )
}

/** The query string follows the rules of the page's own requests. */
function queryOf(search: string, parameters: Parameters<typeof readQuery>[1]): Query {
  return readQuery(new Request(`http://localhost/?${search.replace(/^\?/, '')}`), parameters)
}

export async function readContent(
  store: Pick<Store, 'events' | 'sites' | 'accessLogs' | 'retention' | 'keys' | 'health'>,
  orgId: string,
  { page, search, events, identities, panels }: ShareContent,
  now: number,
): Promise<Shown> {
  if (page === 'explore') return { page, ...(await readExploration(store, orgId, search, now)) }
  if (page === 'overview') {
    const query = queryOf(search, overviewParameters)
    const period = await periodOf(store, orgId, query, now)
    const changed = { orgId, sinceMs: readSince(query, now), nowMs: now }
    const [counts, changes] = await Promise.all([
      weekCounts({ store, orgId, period }),
      panels.includes('changes') ? changesSince(store, changed) : null,
    ])
    return { page, counts, changes }
  }
  if (page === 'analytics') {
    const query = queryOf(search, countParameters)
    const filter = readCountFilter(query)
    const period = { ...(await periodOf(store, orgId, query, now)), ...(filter && { filter }) }
    const rowsMax = limits.shareRowsMax
    return { page, counts: await analyticsCounts({ store, orgId, period, rowsMax }) }
  }
  const query = queryOf(search, viewParameters)
  const filter = readFilter(query)
  const zone = readZone(query)
  const shown = await histogram(store.events, orgId, filter, now, zone)
  const boundedFilter = { ...filter, sinceMs: filter.sinceMs ?? Date.parse(shown.since) }
  const newest = events
    ? (await newestOf(store.events, orgId, boundedFilter)).map((event) => sharedEvent(event, identities))
    : null
  return {
    page,
    filter,
    zone,
    histogram: shown,
    events: newest,
  }
}

async function newestOf(events: Store['events'], orgId: string, filter: EventFilter): Promise<StoredEvent[]> {
  const page = { limit: limits.shareEventsShown, bytesMax: 1024 * 1024, before: null, ceilingSeq: null }
  return (await events.page({ orgId, filter, ...page })).events
}

interface Fields {
  [name: string]: unknown
}

function sharedEvent({ json, occurredAtMs }: StoredEvent, identities: boolean): SharedEvent {
  const event = JSON.parse(json) as Fields
  const [agent, metadata] = [event['agent'], event['metadata']].map((inner) => (inner ?? {}) as Fields)
  const agentText = [agent!['vendor'], agent!['name']].filter((part) => typeof part === 'string').join(' ')
  const values = [
    event['type'],
    event['outcome'],
    event['siteId'],
    agentText,
    event['tool'],
    ...(identities ? [event['sessionId'], metadata!['subject']] : []),
  ]
  return { atMs: occurredAtMs, texts: values.map((value) => (typeof value === 'string' ? value : '')) }
}

async function readExploration(
  store: Pick<Store, 'events' | 'sites' | 'retention'>,
  orgId: string,
  search: string,
  now: number,
): Promise<ShownExploration> {
  const query = queryOf(search, explorePageParameters)
  const { asked: exploreQuery, period, filters } = await readPage(store, orgId, query, now)
  const rowsMax = Math.min(exploreQuery.rowsMax, limits.shareExploreRowsMax)
  const budgetMs = limits.filteredCountMsMax
  const explored = await store.events.explore({ ...exploreQuery, orgId, rowsMax, budgetMs })
  return {
    asked: exploreQuery,
    period: { ...periodView(period, await store.sites.list(orgId)), filters },
    explored,
  }
}
