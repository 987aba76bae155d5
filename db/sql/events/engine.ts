/** The interface of an event engine: a synchronous writer, and readers that run in slices. */
import type {
  SessionPage,
  SessionPageQuery,
  SessionStory,
  SessionStoryQuery,
} from '../../contract/sessions.ts'
import type {
  AgentCounts,
  AgentsQuery,
  AppendResult,
  Breakdown,
  BreakdownQuery,
  ClassVendor,
  ClassVendorQuery,
  Distinct,
  DistinctQuery,
  Durations,
  DurationsQuery,
  EventBatch,
  EventCountQuery,
  EventHistogram,
  EventPage,
  EventPageQuery,
  EventStore,
  FilteredCounts,
  EventTail,
  EventTailQuery,
  EventVerdict,
  HistogramQuery,
  Metrics,
  MetricsQuery,
  MetricsText,
  NewValues,
  NewValuesQuery,
  RollupRepair,
  Series,
  SeriesQuery,
  StoredEvent,
  Top,
  TopQuery,
  TrustReached,
  TrustReachedQuery,
  FilteredCountsQuery,
} from '../../contract/store.ts'
import type { Explored, ExploreQuery } from '../../contract/explore.ts'
import type { RobotsTest, RobotsTestQuery } from '../../contract/robots.ts'
import type { Sliced } from '../slices.ts'
import type { Deletions } from './delete/delete.ts'
import type { VerifiedIds } from './verify/blocks.ts'

/** One per writer. The writer opens and ends the transactions and tells the engine how each ended. */
export interface EventWriter extends Deletions {
  /** Stages one batch inside the open transaction. When it throws, nothing of this batch is staged. */
  append(batch: EventBatch): AppendResult
  /** Writes the staged batches: the last call before the transaction commits. */
  flush(): void
  /** Drops a bounded number of rollup rows of hours before a time without a live event. */
  dropRollups(command: { orgId: string; beforeMs: number }): { rows: number; done: boolean }
  /** As `AccessLogStore.expire`. */
  expireAccess(command: { orgId: string; beforeMs: number; now: number }): { rows: number; done: boolean }
  /** As `EventStore.expireNetworks`. */
  expireNetworks(beforeDay: number): { rows: number; done: boolean }
  repair(command: { orgId: string; repairs: RollupRepair[] }): void
  /** The transaction was committed. */
  committed(): void
  /** The transaction was rolled back: memory must match the tables again. */
  rolledBack(): void
  /** The writer was idle for a second: a chance for maintenance, outside any transaction. */
  idle(): void
  /** Does some milliseconds of work that nobody waits for, outside any transaction. False: nothing is left to do. */
  spare(): boolean
  /** The last call, outside any transaction. */
  close(): void
}

/** How an engine finds an event by its id, on one connection. */
export interface EventIds extends VerifiedIds {
  find(org: number, id: string): StoredEvent | null
}

/** One per reader's connection. Long queries run in slices, in one snapshot except for `recount`. */
export interface EventReader {
  page(query: EventPageQuery): Sliced<EventPage>
  byId(query: { orgId: string; id: string }): StoredEvent | null
  /** Stops after a while, at the row whose arrival number it returns. */
  count(query: EventCountQuery): Sliced<{ count: number; lastSeq: number }>
  tail(query: EventTailQuery): Sliced<EventTail>
  lastSeq(orgId: string): number
  metrics(query: MetricsQuery): Sliced<Metrics>
  metricsText(query: MetricsQuery): Sliced<MetricsText>
  breakdown(query: BreakdownQuery): Sliced<Breakdown>
  classVendor(query: ClassVendorQuery): Sliced<ClassVendor>
  agents(query: AgentsQuery): Sliced<AgentCounts>
  filteredCounts(query: FilteredCountsQuery): Sliced<FilteredCounts>
  histogram(query: HistogramQuery): Sliced<EventHistogram>
  series(query: SeriesQuery): Sliced<Series>
  top(query: TopQuery): Sliced<Top>
  explore(query: ExploreQuery): Sliced<Explored>
  newValues(query: NewValuesQuery): Sliced<NewValues>
  distinct(query: DistinctQuery): Sliced<Distinct>
  durations(query: DurationsQuery): Sliced<Durations>
  recount(query: { orgId: string; hourStartMs: number }): Sliced<RollupRepair[]>
  verify(): EventVerdict
  eventBytes(orgId: string): Sliced<number>
  cutoff(query: { orgId: string; bytesMax: number }): Sliced<number | null>
  firstHour(orgId: string): Sliced<number | null>
  sessionPage(query: SessionPageQuery): Sliced<SessionPage>
  sessionStory(query: SessionStoryQuery): Sliced<SessionStory | null>
  trustReached(query: TrustReachedQuery): Sliced<TrustReached | null>
  robotsTest(query: RobotsTestQuery): Sliced<RobotsTest>
  overview(orgId: string): Sliced<Awaited<ReturnType<EventStore['overview']>>>
}
