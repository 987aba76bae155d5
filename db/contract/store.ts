/**
 * The store contract: every verb an engine fulfils, and the shapes that cross the seam.
 *
 * Rules of the seam. Every method is async and one atomic verb; no transaction handle leaves an engine. Times are
 * integer milliseconds since 1970 UTC and `now` is always an argument. Ids are made by the caller. Every verb that
 * changes something a person could be asked about takes the audit entry it writes, in the same transaction.
 * Failures are `StoreError`s. Nothing outside an engine may assume that one process alone uses the database.
 */
import type { AuditEntry, Json } from './audit.ts'
import type { StoreError } from './errors.ts'
import type { EventFieldValues } from './event-fields.ts'
import type { EventFilter, EventPosition, StoredEvent } from './event-filter.ts'
import type { Histogram } from '../rules/histogram.ts'
import type {
  AgentCounts,
  AgentsQuery,
  Breakdown,
  BreakdownQuery,
  ClassVendor,
  ClassVendorQuery,
  Distinct,
  DistinctQuery,
  Durations,
  DurationsQuery,
  EraseCommand,
  EraseCursor,
  EraseResult,
  EventHistogram,
  EventTally,
  ExpireCommand,
  ExpireResult,
  HistogramQuery,
  Metrics,
  MetricsQuery,
  MetricsText,
  NewValues,
  NewValuesQuery,
  Top,
  TopQuery,
  TrustReached,
  TrustReachedQuery,
  TallyQuery,
} from './event-counts.ts'
import type { IdentityStore } from './identity.ts'
import type { BatchCount, IngestCountStore } from './ingest-counts.ts'
import type { RetentionStore } from './retention.ts'
import type { RegistryStore } from './registry.ts'
import type { SessionStore } from './sessions.ts'
import type { WebhookStore } from './webhooks.ts'
export type * from './identity.ts'
export type * from './event-counts.ts'
export type * from './retention.ts'
export type { AuditEntry, Json, StoreError }
export type { EventFilter, EventPosition, StoredEvent }

// ---------------------------------------------------------------- events

/** A validated event, ready to be stored. `json` is the whole event as readers get it back. */
export interface EventRecord extends EventFieldValues {
  id: string
  occurredAtMs: number
  durationMs: number | null
  json: string
}

export interface EventBatch {
  orgId: string
  keyId: string // the ingest key that sent it
  receivedAtMs: number
  events: EventRecord[] // 1 to 1,000
  count?: BatchCount // as told by `ingestCounts`; without it the batch is not counted
}

/** Member whose guard rail (contract §4: 1,000 types, 100 outcomes, 1,000 sites an organization) an event breaks. */
export type GuardRail = 'type' | 'outcome' | 'siteId'

/** An event that would be one value too many for its organization. */
export interface RailedEvent {
  index: number // into batch.events
  member: GuardRail
  id: string
  json: string
}

export interface AppendResult {
  accepted: number
  deduped: number
  rejected: RailedEvent[]
}

export interface EventPageQuery {
  orgId: string
  filter: EventFilter
  limit: number // 1..2,000
  bytesMax?: number // of the events' texts in UTF-8: the page ends sooner then, but never before its first event
  before: EventPosition | null // null: from the newest
  ceilingSeq: number | null // arrivals above it are not in this walk; null: fix it at the newest now
}

export interface EventPage {
  events: StoredEvent[] // newest first by (occurredAt, seq)
  /** Null exactly when no further event matches; with `text`: when none is left to look at. */
  next: EventPosition | null
  ceilingSeq: number
}

export interface EventCountQuery {
  orgId: string
  filter: EventFilter
  afterSeq: number
  ceilingSeq: number
  exceptKeys?: string[] // events that these keys sent are not counted
}

export interface EventTailQuery {
  orgId: string
  filter: EventFilter
  afterSeq: number
  limit: number
  bytesMax?: number // as of a page
  exceptKeys?: string[] // events that these keys sent are passed over
}

export interface EventTail {
  events: StoredEvent[] // in arrival order
  lastSeq: number // resume after this one (it also passes events that the filter left out)
}

export interface EventStore {
  /** Stores a batch; resolves once it is on disk (fsync). A known (orgId, id) counts as deduped, the first stands. */
  append(batch: EventBatch): Promise<AppendResult>
  /** Bytes and milliseconds of appends that wait for the disk now, to decide on 503 before anything is taken. */
  pressure(): { queuedBytes: number; oldestMs: number }
  page(query: EventPageQuery): Promise<EventPage>
  byId(query: { orgId: string; id: string }): Promise<StoredEvent | null>
  /** Counts matches after arrival `afterSeq` up to `ceilingSeq`; go on after `lastSeq` until that is reached. */
  count(query: EventCountQuery): Promise<{ count: number; lastSeq: number }>
  /** Events that arrived after `afterSeq`, oldest first, at most `limit`. The live stream and webhooks stand on it. */
  tail(query: EventTailQuery): Promise<EventTail>
  /** Highest arrival number of the organization, 0 when it has none. */
  lastSeq(orgId: string): Promise<number>
  /** Whether the organization ever stored an event, and of which types, with counts. */
  overview(orgId: string): Promise<{ total: number; byType: { [type: string]: number } }>
  metrics(query: MetricsQuery): Promise<Metrics>
  metricsText(query: MetricsQuery): Promise<MetricsText>
  breakdown(query: BreakdownQuery): Promise<Breakdown>
  classVendor(query: ClassVendorQuery): Promise<ClassVendor>
  /** Which agents came, by name and purpose under their vendors. */
  agents(query: AgentsQuery): Promise<AgentCounts>
  /** Counts stored events under any filter; what rollups can count is asked of them. */
  tally(query: TallyQuery): Promise<EventTally>
  /** Counts stored events by outcome and time under any filter, the newest first, until the budget is used up. */
  histogram(query: HistogramQuery): Promise<EventHistogram>
  /** The most frequent values, and combinations of values, among the newest matching events. */
  top(query: TopQuery): Promise<Top>
  /** The values of a field that were first stored in a range of arrivals. */
  newValues(query: NewValuesQuery): Promise<NewValues>
  /** Quantiles of durations by tool; exact at every moment but for the error that is promised. */
  durations(query: DurationsQuery): Promise<Durations>
  /** What trust the sessions of some events reached, exact; null when time is up. Read in slices, beside others. */
  trustReached(query: TrustReachedQuery): Promise<TrustReached | null>
  /** How many different sessions or verified subjects days or months had. */
  distinct(query: DistinctQuery): Promise<Distinct>
  /** Called after every commit with the organizations that got events; returns a function that ends the watch. */
  watch(listener: (orgIds: string[]) => void): () => void
  /**
   * Removes every event of one site and what it pushed (demo data only, contract: evidence is never edited). Returns
   * how many events went.
   */
  removeSite(command: { orgId: string; siteId: string; audit: AuditEntry }): Promise<number>
  /** Recounts an hour's live events and repairs its rollups; returns how many rows were wrong (expected: 0). */
  recount(query: { orgId: string; hourStartMs: number }): Promise<number>
  /**
   * One step of an erasure of bounded length: of events, of webhook deliveries that carry them, of refused samples. It
   * begins with no cursor and the audit entry, which must not hold the session or subject in clear, and goes on with
   * the cursor of the step before. Events that arrive after the first step may stay. A resend of what was erased
   * counts as deduped while retention lasts.
   */
  erase(
    command: EraseCommand & { audit: AuditEntry | null; cursor: EraseCursor | null },
  ): Promise<EraseResult>
  /** One step of retention, of bounded length; to be called until `done`. */
  expire(command: ExpireCommand): Promise<ExpireResult>
}

/** A request or event that ingest refused, kept for the ingest-health page (newest 1,000 an organization). */
export interface RejectedSample {
  orgId: string
  keyId: string
  atMs: number
  code: string
  message: string
  path: string
  excerpt: string // of what was sent, at most 4 KiB
}

// ---------------------------------------------------------------- and the rest

export interface StoreHealth {
  schema: number
  engine: string // e.g. "sqlite 3.54.1"
  bytes: number // database and log files
  walBytes: number
}

/** Since the store was opened. */
export interface StoreTimes {
  commit: Histogram // commits of the writer, each with its fsync
  append: Histogram // batches of events, from `append` to the acknowledgement
}

export interface Store extends IdentityStore {
  events: EventStore
  webhooks: WebhookStore
  registry: RegistryStore
  ingestCounts: IngestCountStore
  sessions: SessionStore
  retention: RetentionStore
  rejected: {
    add(samples: RejectedSample[]): Promise<void>
    list(query: { orgId: string; limit: number }): Promise<RejectedSample[]>
  }
  /** A secret of this store, made once (32 random bytes, hex), e.g. to seal cursors. */
  secret(name: 'cursor'): Promise<string>
  health(): Promise<StoreHealth>
  /** How many secrets are sealed under the key file of the data folder. */
  sealedSecrets(): Promise<number>
  times(): Promise<StoreTimes>
  /** Settles when the device has failed: no write succeeds any more, and only a new process knows what is on disk. */
  broken: Promise<StoreError>
  /** Finishes what is queued, truncates the log, closes. Afterwards every verb rejects with `closed`. */
  close(): Promise<void>
}
