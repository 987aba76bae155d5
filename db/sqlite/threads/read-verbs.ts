/** Every verb that only looks, by the name under which it reaches a reader. */
import type { SessionPageQuery, SessionStoryQuery } from '../../contract/sessions.ts'
import type {
  AgentsQuery,
  BreakdownQuery,
  ClassVendorQuery,
  DistinctQuery,
  DurationsQuery,
  EventCountQuery,
  EventPageQuery,
  EventStore,
  HistogramQuery,
  MetricsQuery,
  NewValuesQuery,
  TopQuery,
  TrustReachedQuery,
  TallyQuery,
} from '../../contract/store.ts'
import type { ReadContext } from './contexts.ts'
import { searchPage } from '../events/read/search.ts'
import { health, sealedSecrets } from '../file/health.ts'
import { identityReadVerbs } from '../identity/verbs.ts'
import { listRejected } from '../registry/rejected.ts'
import { retentionReadVerbs } from '../retention/verbs.ts'
import { registryReadVerbs } from '../registry/verbs.ts'
import { webhookReadVerbs } from '../webhooks/verbs.ts'

export const readVerbs = {
  'events.page': ({ events }: ReadContext, query: EventPageQuery) =>
    query.filter.text === undefined ? events.page(query) : searchPage(events, query, query.filter.text),
  'events.count': ({ events }: ReadContext, query: EventCountQuery) => events.count(query),
  'events.byId': ({ events }: ReadContext, query: { orgId: string; id: string }) => events.byId(query),
  'events.tail': ({ events }: ReadContext, query: Parameters<EventStore['tail']>[0]) => events.tail(query),
  'events.lastSeq': ({ events }: ReadContext, orgId: string) => events.lastSeq(orgId),
  'events.metrics': ({ events }: ReadContext, query: MetricsQuery) => events.metrics(query),
  'events.metricsText': ({ events }: ReadContext, query: MetricsQuery) => events.metricsText(query),
  'events.breakdown': ({ events }: ReadContext, query: BreakdownQuery) => events.breakdown(query),
  'events.classVendor': ({ events }: ReadContext, query: ClassVendorQuery) => events.classVendor(query),
  'events.agents': ({ events }: ReadContext, query: AgentsQuery) => events.agents(query),
  'events.tally': ({ events }: ReadContext, query: TallyQuery) => events.tally(query),
  'events.histogram': ({ events }: ReadContext, query: HistogramQuery) => events.histogram(query),
  'events.top': ({ events }: ReadContext, query: TopQuery) => events.top(query),
  'events.newValues': ({ events }: ReadContext, query: NewValuesQuery) => events.newValues(query),
  'events.distinct': ({ events }: ReadContext, query: DistinctQuery) => events.distinct(query),
  'events.durations': ({ events }: ReadContext, query: DurationsQuery) => events.durations(query),
  'events.trustReached': ({ events }: ReadContext, query: TrustReachedQuery) => events.trustReached(query),
  'events.recount': ({ events }: ReadContext, query: { orgId: string; hourStartMs: number }) =>
    events.recount(query),
  'events.verify': ({ events }: ReadContext) => events.verify(),
  'events.overview': ({ events }: ReadContext, orgId: string) => events.overview(orgId),
  ...identityReadVerbs,
  'rejected.list': listRejected,
  ...webhookReadVerbs,
  ...registryReadVerbs,
  ...retentionReadVerbs,
  'sessions.page': ({ events }: ReadContext, query: SessionPageQuery) => events.sessionPage(query),
  'sessions.story': ({ events }: ReadContext, query: SessionStoryQuery) => events.sessionStory(query),
  health,
  sealedSecrets,
} satisfies { [verb: string]: (context: ReadContext, query: never) => unknown }

export type ReadVerbs = typeof readVerbs
