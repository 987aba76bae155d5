/** Every verb of the store, by the name under which a thread receives it. Writing verbs run in a transaction. */
import { appendAudit } from './audit/append.ts'
import { identityReadVerbs, identityWriteVerbs } from './identity/verbs.ts'
import {
  addIngestCounts,
  addRejected,
  listIngestCounts,
  listNearMisses,
  listRejected,
  listScopes,
  pruneSignatures,
  useSignatures,
} from './ingest-counts/ingest-counts.ts'
import {
  eraseFromDeliveries,
  eraseSamples,
  noteErasure,
  retentionReadVerbs,
  retentionWriteVerbs,
} from './retention/retention.ts'
import { accessReadVerbs, removeAccess } from './access/access-logs.ts'
import { registryReadVerbs, registryWriteVerbs, removePushed } from './pushed/pushed.ts'
import { robotsReadVerbs, robotsWriteVerbs } from './pushed/robots.ts'
import { shareLinkReadVerbs, shareLinkWriteVerbs } from './identity/share-links.ts'
import { webhookReadVerbs, webhookWriteVerbs } from './webhooks/verbs.ts'
import { nodeReadVerbs, nodeWriteVerbs, requireLease } from './nodes/nodes.ts'
import { settingReadVerbs, settingWriteVerbs } from './settings/settings.ts'
import type {
  AccessLogStore,
  AgentsQuery,
  BreakdownQuery,
  ClassVendorQuery,
  DistinctQuery,
  DurationsQuery,
  EraseCursor,
  EraseResult,
  EventCountQuery,
  EventPageQuery,
  EventStore,
  ExpireCommand,
  FilteredCountsQuery,
  HistogramQuery,
  MetricsQuery,
  NewValuesQuery,
  RollupRepair,
  SeriesQuery,
  TopQuery,
  TrustReachedQuery,
} from '../contract/store.ts'
import type { ExploreQuery } from '../contract/explore.ts'
import type { JobLease } from '../contract/nodes.ts'
import type { RobotsTestQuery } from '../contract/robots.ts'
import type { ReadContext, WriteContext } from './contexts.ts'
import type { SessionPageQuery, SessionStoryQuery } from '../contract/sessions.ts'

export const writeVerbs = {
  ...identityWriteVerbs,
  'rejected.add': addRejected,
  'ingestCounts.add': addIngestCounts,
  'events.removeSite': removeSite,
  'events.erase': erase,
  'events.repair': repair,
  'events.expire': ({ events, tight }: WriteContext, command: ExpireCommand) => events.expire(command, tight),
  'events.expireNetworks': ({ events }: WriteContext, { beforeDay }: { beforeDay: number }) =>
    events.expireNetworks(beforeDay),
  'accessLogs.expire': ({ events }: WriteContext, command: Parameters<AccessLogStore['expire']>[0]) =>
    events.expireAccess(command),
  ...retentionWriteVerbs,
  ...webhookWriteVerbs,
  ...registryWriteVerbs,
  ...robotsWriteVerbs,
  ...shareLinkWriteVerbs,
  ...nodeWriteVerbs,
  ...settingWriteVerbs,
  'signatures.use': useSignatures,
  'signatures.prune': pruneSignatures,
  checkWrites,
} satisfies { [verb: string]: (context: WriteContext, command: never) => unknown }

export type WriteVerbs = typeof writeVerbs

export const readVerbs = {
  'events.page': ({ events }: ReadContext, query: EventPageQuery) => events.page(query),
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
  'events.series': ({ events }: ReadContext, query: SeriesQuery) => events.series(query),
  'events.top': ({ events }: ReadContext, query: TopQuery) => events.top(query),
  'events.explore': ({ events }: ReadContext, query: ExploreQuery) => events.explore(query),
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
  'ingestCounts.scopes': listScopes,
  ...webhookReadVerbs,
  ...registryReadVerbs,
  ...robotsReadVerbs,
  ...shareLinkReadVerbs,
  'robots.test': ({ events }: ReadContext, query: RobotsTestQuery) => events.robotsTest(query),
  ...retentionReadVerbs,
  ...accessReadVerbs,
  ...nodeReadVerbs,
  ...settingReadVerbs,
  'sessions.page': ({ events }: ReadContext, query: SessionPageQuery) => events.sessionPage(query),
  'sessions.story': ({ events }: ReadContext, query: SessionStoryQuery) => events.sessionStory(query),
  health: ({ health }: ReadContext) => health(),
} satisfies { [verb: string]: (context: ReadContext, query: never) => unknown }

export type ReadVerbs = typeof readVerbs

/** Changes a row whatever it says, so that an engine which refuses writes refuses this one. */
function checkWrites({ db }: WriteContext): void {
  db.query(
    `INSERT INTO job_lease (job, node, lease, until_ms) VALUES ('check-writes', '', 1, 0)
     ON CONFLICT (job) DO UPDATE SET lease = job_lease.lease + 1`,
  ).run()
}

/** A repair adds differences, so it must not run twice. */
function repair({ db, events }: WriteContext, { lease, ...command }: RepairCommand): void {
  if (lease !== undefined) requireLease(db, lease)
  events.repair(command)
}

interface RepairCommand {
  orgId: string
  repairs: RollupRepair[]
  lease?: JobLease
}

function removeSite(
  { db, events }: WriteContext,
  { orgId, siteId, audit }: Parameters<EventStore['removeSite']>[0],
): number {
  const removed = events.removeSite(orgId, siteId)
  removePushed(db, orgId, siteId)
  removeAccess(db, orgId, siteId)
  appendAudit(db, audit)
  return removed
}

/** Deliveries per step: at most half a megabyte each. */
const deliveriesMax = 16

/** Events first, so that a running dispatcher makes no new delivery of them after the deliveries were searched. */
function erase(context: WriteContext, { run, ...command }: Parameters<EventStore['erase']>[0]): EraseResult {
  const step = eraseStep(context, command)
  if (run !== undefined)
    noteErasure(context.db, { orgId: command.orgId, run, isFirst: command.cursor === null, step })
  return step
}

function eraseStep(
  { db, events }: WriteContext,
  { audit, cursor, ...command }: Omit<Parameters<EventStore['erase']>[0], 'run'>,
): EraseResult {
  if (audit !== null) appendAudit(db, audit)
  if (cursor?.among === 'deliveries') {
    const samples = cursor.after === 0 ? eraseSamples(db, command) : 0
    const { erased, lastSeq } = eraseFromDeliveries(db, command, cursor.after, deliveriesMax)
    const next = lastSeq === null ? null : { ...cursor, after: lastSeq }
    return { events: 0, deliveries: erased, samples, next }
  }
  const step = events.erase(command, cursor)
  const next: EraseCursor =
    step.next === null ? { among: 'deliveries', after: 0 } : { among: 'events', ...step.next }
  return { events: step.events, deliveries: 0, samples: 0, next }
}
