/** What a share link shows: a page with fixed filters and range. Reads it from the store for each opening. */
import { filterParameters, readFilter } from '../api/traces/filter.ts'
import { histogram, type Histogram } from '../api/traces/histogram.ts'
import { analyticsCounts } from '../dashboard/counts.ts'
import { periodOf, periodParameters, readCountFilter, readZone } from '../dashboard/period.ts'
import { readQuery, type Query } from '../http/request.ts'
import { wrongField } from '../http/validate.ts'
import { limits } from '../limits.ts'
import type { AnalyticsCounts } from '../dashboard/shapes.ts'
import type { EventFilter, Store, StoredEvent } from '../../db/contract/store.ts'

export const panelNames = [
  ...(['headlines', 'timeline', 'types', 'outcomes', 'vendors', 'classes', 'tools', 'pages'] as const),
  ...(['protocols', 'rules'] as const),
] as const

export type Panel = (typeof panelNames)[number]

export interface ShareContent {
  page: 'analytics' | 'view'
  search: string // query string of the page: range, sites and filters
  panels: Panel[] // of Analytics
  events: boolean // of a view: its newest events
  identities: boolean // subjects and session ids of these events, and filters by them
  frameOrigins: string[] // sites that may show the page in a frame
}

export type Shown =
  | { page: 'analytics'; counts: AnalyticsCounts }
  | { page: 'view'; filter: EventFilter; zone: string; histogram: Histogram; events: SharedEvent[] | null }

const countParameters = { ...periodParameters, filter: 'many' } as const
const viewParameters = { ...filterParameters, zone: 'one' } as const

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
  const query = queryOf(search, viewParameters)
  readZone(query)
  const { sessionIds, subjects, text } = readFilter(query)
  if (!identities && (sessionIds !== undefined || subjects !== undefined || text !== undefined))
    throw wrongField(
      'search',
      'A filter by session, subject or text would show it. Remove the filter, or also show subjects and sessions.',
    )
}

/** The query string follows the rules of the page's own requests. */
function queryOf(search: string, parameters: Parameters<typeof readQuery>[1]): Query {
  return readQuery(new Request(`http://localhost/?${search.replace(/^\?/, '')}`), parameters)
}

export async function readContent(
  store: Pick<Store, 'events' | 'sites' | 'accessLogs' | 'retention'>,
  orgId: string,
  { page, search, events, identities }: ShareContent,
  now: number,
): Promise<Shown> {
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
  const newest = events
    ? (await newestOf(store.events, orgId, filter)).map((one) => sharedEvent(one, identities))
    : null
  return {
    page,
    filter,
    zone,
    histogram: await histogram(store.events, orgId, filter, now, zone),
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
    ...[event['type'], event['outcome'], event['siteId'], agentText, event['tool']],
    ...(identities ? [event['sessionId'], metadata!['subject']] : []),
  ]
  return { atMs: occurredAtMs, texts: values.map((value) => (typeof value === 'string' ? value : '')) }
}
