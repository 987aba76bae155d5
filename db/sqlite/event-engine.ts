/** The inner seam: what an event engine does on the writer's thread and on the readers', all synchronous. */
import type { SessionPage, SessionPageQuery, SessionStory, SessionStoryQuery } from '../session-store.ts'
import type {
  AppendResult,
  Breakdown,
  BreakdownQuery,
  ClassVendor,
  ClassVendorQuery,
  Distinct,
  DistinctQuery,
  Durations,
  DurationsQuery,
  EraseCommand,
  EraseRange,
  EventBatch,
  EventCountQuery,
  EventPage,
  EventPageQuery,
  EventStore,
  EventTail,
  EventTailQuery,
  EventVerdict,
  ExpireCommand,
  ExpireResult,
  Metrics,
  MetricsQuery,
  MetricsText,
  RollupRepair,
  StoredEvent,
} from '../store.ts'

/** One per writer. The writer opens and ends the transactions; the engine only says when its memory follows. */
export interface EventWriter {
  /** Takes one batch inside the open transaction. When it throws, nothing of this batch was taken. */
  append(batch: EventBatch): AppendResult
  /** Writes what was taken: the last call before the transaction commits. */
  flush(): void
  /** Removes every event of a site inside the open transaction; returns how many. */
  removeSite(orgId: string, siteId: string): number
  /** Removes everything of an organization inside the open transaction. */
  removeOrg(orgId: string): void
  /** Takes the oldest events away inside the open transaction, in a step of bounded length (retention). */
  expire(command: ExpireCommand): ExpireResult
  /** Erases in a step of bounded length, first (null) from the first arrival on; `next` is what is left. */
  erase(command: EraseCommand, range: EraseRange | null): { events: number; next: EraseRange | null }
  /** Drops a bounded number of rollup rows of hours before a time that no event is left of. */
  dropRollups(command: { orgId: string; beforeMs: number }): { rows: number; done: boolean }
  repair(command: { orgId: string; repairs: RollupRepair[] }): void
  /** The transaction is on disk. */
  committed(): void
  /** The transaction was undone: memory must say again what the tables say. */
  rolledBack(): void
  /** The writer has had nothing to do for a second: a chance for maintenance, outside any transaction. */
  idle(): void
  /** The last call, outside any transaction. */
  close(): void
}

/** One per reader. Calls that may run long throw `deadline` by themselves. */
export interface EventReader {
  page(query: EventPageQuery): EventPage
  byId(orgId: string, id: string): StoredEvent | null
  /** Stops after a while, at a row whose arrival number it returns. */
  count(query: EventCountQuery): { count: number; lastSeq: number }
  tail(query: EventTailQuery): EventTail
  lastSeq(orgId: string): number
  metrics(query: MetricsQuery): Metrics
  metricsText(query: MetricsQuery): MetricsText
  breakdown(query: BreakdownQuery): Breakdown
  classVendor(query: ClassVendorQuery): ClassVendor
  distinct(query: DistinctQuery): Distinct
  durations(query: DurationsQuery): Durations
  /** Asks for its slices one by one, so that others are answered between two of them. */
  recount(query: { orgId: string; hourStartMs: number }): Promise<RollupRepair[]>
  verify(): EventVerdict
  eventBytes(orgId: string): number
  cutoff(query: { orgId: string; bytesMax: number }): number | null
  firstHour(orgId: string): number | null
  sessionPage(query: SessionPageQuery): SessionPage
  sessionStory(query: SessionStoryQuery): SessionStory | null
  overview(orgId: string): Awaited<ReturnType<EventStore['overview']>>
}
