/**
 * The store contract: every verb of an engine, and the types that cross its boundary.
 *
 * Rules. Every method is async and one atomic verb; no transaction handle leaves an engine. Times are integer
 * milliseconds since 1970 UTC, and `now` is always an argument. Callers make the ids. Every verb whose change a person
 * may have to answer for writes the audit entry it is passed, in the same transaction. Failures are `StoreError`s. A
 * verb that fails has changed nothing, except that after `unavailable` the outcome of a write can be unknown: the
 * engine asks its database for it, but a database that stays away cannot say. Business rules that engines must follow
 * to the letter are in `../rules`.
 *
 * Nothing outside an engine may assume that only one process uses the database. Several stores on one database act as
 * one: what a verb of one of them has acknowledged is true for every verb that any of them is asked afterwards, except
 * where a verb says that it answers from memory. Clocks of nodes differ, so verbs that compare times of several nodes
 * say whose clock counts. Texts are ordered by their UTF-8 bytes. A search of events ignores case as `toUpperCase`
 * does, a search of the audit log that of ASCII letters.
 */
import type { AccessLines, AccessLogStore, AccessResult } from './access-logs.ts'
import type { AuditEntry, Json } from './audit.ts'
import type { StoreError, StoreErrorKind } from './errors.ts'
import type { Door, Provenance } from './provenance.ts'
import type { EventFieldValues, EventFilter, EventPosition, StoredEvent } from './event-fields.ts'
import type { Histogram } from './histogram.ts'
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
  FilteredCounts,
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
  FilteredCountsQuery,
} from './event-counts.ts'
import type { Explored, ExploreQuery, Following } from './explore.ts'
import type { Series, SeriesQuery } from './event-series.ts'
import type { IdentityStore } from './identity.ts'
import type { BatchCount, IngestCountStore } from './ingest-counts.ts'
import type { Behind, JobLease, JobStore, NodeStore } from './nodes.ts'
import type { ErasureRun, ErasureStore, EvidenceStore, RetentionStore } from './operations.ts'
import type { RegistryStore } from './registry.ts'
import type { RobotsStore } from './robots.ts'
import type { ShareLinkStore } from './share-links.ts'
import type { SignatureStore } from './signatures.ts'
import type { SessionStore } from './sessions.ts'
import type { WebhookStore } from './webhooks.ts'
export type * from './access-logs.ts'
export type * from './identity.ts'
export type * from './event-counts.ts'
export type * from './event-series.ts'
export type * from './admin.ts'
export type * from './explore.ts'
export type * from './operations.ts'
export type { AuditEntry, Json, StoreError }
export type { Door, EventFilter, EventPosition, Provenance, StoredEvent }

// ---------------------------------------------------------------- events

/** A validated event. `json` is the whole event as readers receive it. */
export interface EventRecord extends EventFieldValues {
  id: string
  occurredAtMs: number
  durationMs: number | null
  network: string | null // of a contradicted request, /24 or /48; stored beside the event, for a limited time
  json: string
}

export interface EventBatch {
  orgId: string
  keyId: string // the ingest key that sent it
  door: Door // how it came in
  receivedAtMs: number // by the node's clock; the store may raise it, see `append`
  events: EventRecord[] // 1 to 1,000; with `access` 0 to 2,000
  count?: BatchCount // as defined in `ingestCounts`; without it the batch is not counted
  access?: AccessLines // lines of an access log, stored in the same transaction
}

/** The field whose limit (contract §4: 1,000 types, 100 outcomes, 1,000 sites per organization) an event exceeds. */
export type GuardRail = 'type' | 'outcome' | 'siteId'

/** An event with a value beyond its organization's limit. */
export interface RailedEvent {
  index: number // index into batch.events
  member: GuardRail
  id: string
  json: string
}

export interface AppendResult {
  accepted: number
  deduped: number
  rejected: RailedEvent[]
  access?: AccessResult // of a batch with `access`
}

export interface EventPageQuery {
  orgId: string
  filter: EventFilter
  limit: number // 1..2,000
  bytesMax?: number // of the events' texts in UTF-8: ends the page early, but never before its first event
  before: EventPosition | null // null: from the newest
  ceilingSeq: number | null // excludes later arrivals; null: set it to the newest arrival now
  provenance?: boolean // adds to each event who says so
}

export interface EventPage {
  events: StoredEvent[] // newest first by (occurredAt, seq)
  /** Null exactly when no further event matches; with `text`, when no event is left to examine. */
  next: EventPosition | null
  ceilingSeq: number
}

export interface EventCountQuery {
  orgId: string
  filter: EventFilter
  afterSeq: number
  ceilingSeq: number
  exceptKeys?: string[] // excludes events sent with these keys
}

export interface EventTailQuery {
  orgId: string
  filter: EventFilter
  afterSeq: number
  limit: number
  bytesMax?: number // as in a page
  exceptKeys?: string[] // excludes events sent with these keys
  provenance?: boolean // adds to each event who says so
}

export interface EventTail {
  events: StoredEvent[] // in arrival order
  lastSeq: number // resume after this one (it also covers events that the filter excluded)
}

export interface Pressure {
  queuedBytes: number
  oldestMs: number
  full: boolean
}

export interface EventStore {
  /**
   * Stores a batch and resolves when it is on disk (fsync). A known (orgId, id) counts as deduped, whichever node
   * stored it; the first one stays.
   *
   * Arrival numbers of an organization are dense from 1 and become visible in order: who sees n sees all below n. The
   * live stream, webhooks and alerts depend on it.
   *
   * `receivedAtMs` does not fall while arrival numbers rise: the store raises a batch's time to that of the
   * organization's newest arrival (`arrivalTimeMs`). A newest arrival more than an hour ahead comes from a clock that
   * was corrected since, or from a node whose clock is wrong, and raises nothing.
   *
   * After `unavailable` the batch may be stored. Send it again: dedupe answers for what is.
   *
   * Lines of an access log (`access`) are stored once: the position of the log is compared and moved in the transaction
   * of the events. Of one log send a batch after the answer to the one before. A site beyond the limit of the
   * organization is `conflict`.
   */
  append(batch: EventBatch): Promise<AppendResult>
  /**
   * Bytes and milliseconds of appends that wait for the disk, for the decision on 503 before a body is read. `full`,
   * for 507: the last append was rejected with `storage_full` less than a second ago.
   */
  pressure(): Pressure
  page(query: EventPageQuery): Promise<EventPage>
  /** With its provenance. */
  byId(query: { orgId: string; id: string }): Promise<StoredEvent | null>
  /**
   * Counts matches after arrival `afterSeq` up to `ceilingSeq`. Continue after `lastSeq` until it reaches the ceiling.
   */
  count(query: EventCountQuery): Promise<{ count: number; lastSeq: number }>
  /** Events that arrived after `afterSeq`, oldest first, at most `limit`. For the live stream and webhooks. */
  tail(query: EventTailQuery): Promise<EventTail>
  /** Highest arrival number of the organization, 0 when it has none. */
  lastSeq(orgId: string): Promise<number>
  /** Whether the organization ever stored an event, and the count of each type. */
  overview(orgId: string): Promise<{ total: number; byType: { [type: string]: number } }>
  /** Like every count: includes each event that any node acknowledged before the call. */
  metrics(query: MetricsQuery): Promise<Metrics>
  metricsText(query: MetricsQuery): Promise<MetricsText>
  breakdown(query: BreakdownQuery): Promise<Breakdown>
  classVendor(query: ClassVendorQuery): Promise<ClassVendor>
  /** Counts agents by vendor, name and purpose. */
  agents(query: AgentsQuery): Promise<AgentCounts>
  /** Counts stored events under any filter. Without a filter, rollups are quicker. */
  filteredCounts(query: FilteredCountsQuery): Promise<FilteredCounts>
  /** Counts stored events by outcome and time under any filter, newest first, within the budget. */
  histogram(query: HistogramQuery): Promise<EventHistogram>
  /** A measure over time under any filter, by the values of one field. */
  series(query: SeriesQuery): Promise<Series>
  /** The most frequent values, and combinations of values, of the newest matching events. */
  top(query: TopQuery): Promise<Top>
  /** Measures stored events by the values of a field, or of a member of their metadata, over time. */
  explore(query: ExploreQuery, following?: Following): Promise<Explored>
  /** The values of a field that first arrived in a range of arrivals. */
  newValues(query: NewValuesQuery): Promise<NewValues>
  /** Quantiles of durations by tool, exact at every moment within the promised error. */
  durations(query: DurationsQuery): Promise<Durations>
  /**
   * The highest trust of the sessions of some events, exact; null after the deadline. Read in slices beside other
   * reads.
   */
  trustReached(query: TrustReachedQuery): Promise<TrustReached | null>
  /** How many distinct sessions or verified subjects each day or month had. */
  distinct(query: DistinctQuery): Promise<Distinct>
  /**
   * Calls back with organizations that got events: after every commit of this store, soon after those of other nodes,
   * perhaps late, perhaps for nothing. A hint to read again: who needs every event also polls. Returns a function that
   * ends the watch.
   */
  watch(listener: (orgIds: string[]) => void): () => void
  /**
   * Deletes every event of a site and its registry (demo data only; evidence is never edited). Returns the number of
   * events.
   */
  removeSite(command: { orgId: string; siteId: string; audit: AuditEntry }): Promise<number>
  /**
   * Counts an hour's live events again and repairs its rollups. Returns the number of wrong rows (expected: 0). A
   * repair adds differences, so with `lease` it is rejected with `conflict` when another node has claimed the job.
   */
  recount(query: { orgId: string; hourStartMs: number; lease?: JobLease }): Promise<number>
  /**
   * Erases a bounded number of events, webhook deliveries with them, and samples of rejected requests. The first call
   * has no cursor and passes the audit entry, which must not contain the session or subject in clear; later calls pass
   * the cursor of the previous step. Events that arrive after the first step may stay. A resend of an erased event
   * counts as deduped while retention lasts.
   *
   * With `run` each step adds to the progress of `erasures`. The first is rejected with `conflict` while another
   * erasure of the organization runs, and a later one after another has begun.
   */
  erase(
    command: EraseCommand & { audit: AuditEntry | null; cursor: EraseCursor | null; run?: ErasureRun },
  ): Promise<EraseResult>
  /**
   * Deletes a bounded number of networks of contradicted requests that arrived before a day (days since 1970 UTC), of
   * all organizations. Call until `done`.
   */
  expireNetworks(command: { beforeDay: number }): Promise<{ rows: number; done: boolean }>
  /** Expires a bounded number of events. Call until `done`. */
  expire(command: ExpireCommand): Promise<ExpireResult>
}

/** A request or event that ingest rejected, stored for the ingest-health page (newest 1,000 per organization). */
export interface RejectedSample {
  orgId: string
  keyId: string
  atMs: number
  code: string
  message: string
  path: string
  excerpt: string // of the body, at most 4 KiB
}

// ---------------------------------------------------------------- and the rest

export interface StoreHealth {
  schema: number
  newestSchema: number // of this release
  isNewer: boolean // a newer release wrote the data, and this one must not write to it
  engine: string // its name and version
  judgedSinceMs: number | null // when an upgrade began to record judges of verdicts; null: from the first event on
  bytes: number // of the database, its log included
  logBytes: number | null // of the log that is not in the database yet; null when the engine has none to watch
}

/** Since the store was opened. */
export interface StoreTimes {
  commit: Histogram // commits of the writer, each with its fsync
  append: Histogram // batches of events, from `append` to the acknowledgement
}

/** The log of events, with what ingest counted and rejected: the part of an engine that is its own. */
interface EventLog {
  events: EventStore
  sessions: SessionStore
  ingestCounts: IngestCountStore
  accessLogs: AccessLogStore
  rejected: {
    add(samples: RejectedSample[]): Promise<void>
    list(query: { orgId: string; limit: number }): Promise<RejectedSample[]>
  }
}

/** Ordinary rows: identity, the audit log, webhooks, the registry, robots.txt, settings of retention. */
interface Records extends IdentityStore {
  webhooks: WebhookStore
  registry: RegistryStore
  robots: RobotsStore
  shareLinks: ShareLinkStore
  retention: RetentionStore
  erasures: ErasureStore
}

/** Whether nodes have the same key ring: a known text, encrypted with it, which each must be able to decrypt. */
interface KeyCheckStore {
  /** Stores the value if there is none yet, and returns the stored one. */
  agree(value: string): Promise<string>
  /** With null, the next `agree` stores its value. */
  replace(value: string | null): Promise<void>
}

export interface Store extends EventLog, Records {
  nodes: NodeStore
  jobs: JobStore
  keyCheck: KeyCheckStore
  evidence: EvidenceStore
  signatures: SignatureStore
  /** Null when no other process writes to the database: then nothing is behind. */
  behind(): Behind | null
  /**
   * A secret of the database, made once (32 random bytes, hex), the same on every node and in every copy: cursors of
   * one node work on every other, and a line of an access log has the same id.
   */
  secret(name: 'cursor' | 'access-log-ids'): Promise<string>
  health(): Promise<StoreHealth>
  /**
   * Why writes fail, judged by the last one; null when they work. After a failure it tries a small write itself, at
   * most twice per second.
   */
  writeFailure(): Promise<StoreErrorKind | null>
  /** How many secrets are encrypted with the key file of the data folder. */
  encryptedSecrets(): Promise<number>
  times(): Promise<StoreTimes>
  /** Settles when the device has failed: every later write fails, and only a new process can read what is on disk. */
  broken: Promise<StoreError>
  /** Completes queued writes, truncates the log and closes. Later verbs reject with `closed`. */
  close(): Promise<void>
}
