/** Every reading verb, by the name under which a reader receives it. */
import { searchPage } from '../events/read/page.ts'
import { identityReadVerbs } from '../identity/verbs.ts'
import { listIngestCounts, listNearMisses, listRejected } from '../registry/ingest-counts.ts'
import { retentionReadVerbs } from '../retention/retention.ts'
import { registryReadVerbs } from '../registry/pushed.ts'
import { webhookReadVerbs } from '../webhooks/verbs.ts'
import { statSync } from 'node:fs'
import { sqliteVersion } from '../file/connection.ts'
import { databasePath } from '../file/files.ts'
import { schemaVersion } from '../migrations/migrations.ts'
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
  StoreHealth,
  FilteredCountsQuery,
  TopQuery,
  TrustReachedQuery,
} from '../../contract/store.ts'
import type { ReadContext } from './contexts.ts'

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
  'events.filteredCounts': ({ events }: ReadContext, query: FilteredCountsQuery) =>
    events.filteredCounts(query),
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
  'ingestCounts.list': listIngestCounts,
  'ingestCounts.nearMisses': listNearMisses,
  ...webhookReadVerbs,
  ...registryReadVerbs,
  ...retentionReadVerbs,
  'sessions.page': ({ events }: ReadContext, query: SessionPageQuery) => events.sessionPage(query),
  'sessions.story': ({ events }: ReadContext, query: SessionStoryQuery) => events.sessionStory(query),
  health,
  sealedSecrets,
} satisfies { [verb: string]: (context: ReadContext, query: never) => unknown }

export type ReadVerbs = typeof readVerbs

/** The store's schema, engine and file sizes. */
function health({ db, folder }: ReadContext): StoreHealth {
  const path = databasePath(folder)
  const walBytes = fileBytes(`${path}-wal`)
  return {
    schema: schemaVersion(db),
    engine: `sqlite ${sqliteVersion(db)}`,
    bytes: fileBytes(path) + walBytes,
    walBytes,
  }
}

function fileBytes(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

/** Encrypted secrets in any table, which need the data folder's secret.key. */
function sealedSecrets({ db }: ReadContext): number {
  const columns = db
    .query<{ table: string; column: string }, []>(
      `SELECT t.name AS "table", c.name AS "column" FROM sqlite_schema t, pragma_table_info(t.name) c
        WHERE t.type = 'table' AND c.name GLOB 'sealed_*'`,
    )
    .all()
  const counts = columns.map(({ table, column }) => {
    const sql = `SELECT count(*) AS n FROM "${table}" WHERE "${column}" IS NOT NULL`
    return db.query<{ n: number }, []>(sql).get()?.n ?? 0
  })
  return counts.reduce((sum, n) => sum + n, 0)
}
