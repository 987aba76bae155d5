/** Types of whole-database operations, and the store's interface for evidence, retention and the re-count. */
import type { Node } from './nodes.ts'
import type { AuditAnchor, AuditEntry, AuditHead, AuditVerdict, EvidenceState } from './audit.ts'

/** The contents of a database in numbers that can be compared. */
export interface DatabaseFacts {
  schema: number
  events: number
  orgs: number
  accounts: number
  keys: number
  auditHeads: { [orgId: string]: AuditHead }
}

/** Contents just before and just after the copy. The copy must lie between the two. */
export interface CopyReport {
  before: DatabaseFacts
  after: DatabaseFacts
}

export interface Inspection {
  facts: DatabaseFacts
  /** Faults that the engine's own checks found; empty when the file is sound. */
  faults: string[]
  audit: AuditVerdict
}

export interface InspectionQuery {
  path: string
  /** Heads that the audit chains must contain. */
  anchors: AuditAnchor[]
}

export interface SchemaState {
  version: number // 0: a database without tables
  newest: number // the newest of this release
  isNewer: boolean // and this release must not write to it: a newer one wrote the data
  applied: { version: number; name: string; appliedAtMs: number }[]
  pending: { version: number; name: string }[] // also empty for a newer schema
}

/** What replaces a data folder's database, and where the old one moves. */
export interface Placement {
  folder: string
  staged: string // folder of the incoming files, on the same file system
  aside: string // name of the new folder inside `folder` for the old files
  files: string[] // more files beside the database that move with it
  holder: number // process id, reported as the lock's holder
  kind: 'restore' | 'undo'
}

/** The outcome of an interrupted placement. */
export interface SettledPlacement {
  kind: Placement['kind']
  outcome: 'rolled_back' | 'finished'
  aside: string
}

/** One check of `doctor`. */
export interface Finding {
  id: string
  status: 'ok' | 'warning' | 'failure'
  detail: string // one sentence
  hint: string | null // what to do
}

/** What `doctor` reads from a database within a second or two. */
export interface Checkup {
  facts: DatabaseFacts
  engine: string // its name and version, as people write them
  bytes: number
  logBytes: number | null // of the log that is not in the database yet; null when the engine has none to watch
  problems: string[] | null // null: too large for a quick check
  findings: Finding[] // of the engine about its own server; empty for an engine without one
  nodes: Node[] // those that were seen within a day
  storeMs: number // the time by the clock of the nodes' times
  eventsLastWeek: number // by occurredAt
  newestAuditAtMs: number | null
  auditEvidence: EvidenceState // beside the audit chains
  evidence: StoredPack | null // the evidence pack that replaces the bundled one
  /** Active keys. */
  keys: { live: number; exposed: number; endingSoon: number; idle: number }
}

/** An evidence pack that replaces the bundled one. */
export interface StoredPack {
  digest: string // SHA-256 of `pack`, hex
  pack: string // at most 8 MiB
  signedBy: string | null // public key of a release; null: trusted without a signature
  storedBy: string // actor
  storedAtMs: number
}

export interface EvidenceStore {
  /** Digest of the stored pack; null: the bundled one is in force. A read of one small row. */
  digest(): Promise<string | null>
  read(): Promise<StoredPack | null>
  /** Null: back to the bundled pack. */
  replace(command: { pack: StoredPack | null; audit: AuditEntry }): Promise<void>
}

/** Null: the server's default. */
export interface RetentionSetting {
  days: number | null
  bytes: number | null
  auditDays: number | null // days that audit entries are stored
}

export interface RecountProgress {
  throughMs: number // hours that ended by then were counted again
  repaired: number // rollup rows corrected so far
}

/** Which erasure a step belongs to, so that every node knows how far it is. */
export interface ErasureRun {
  id: string // differs for each erasure
  kind: 'session' | 'subject'
  node: string
  leaseMs: number // how long the node may be silent before another erasure may begin
  now: number
}

/** The newest erasure of an organization. It does not name what is erased. Times are of the store's clock. */
export interface ErasureProgress {
  run: string
  kind: ErasureRun['kind']
  node: string
  startedAtMs: number
  seenAtMs: number // its last step
  silentMs: number // since then
  events: number
  deliveries: number
  samples: number
  endedAtMs: number | null // null: it runs, or its process has ended
  logEmptied: boolean | null // null unless it is complete
  problem: string | null // why it is not complete
}

/** Progress is stored by the steps of `events.erase`, in their transactions. */
export interface ErasureStore {
  find(query: { orgId: string; now: number }): Promise<ErasureProgress | null>
  /** Changes nothing when another erasure has begun since. */
  end(command: {
    orgId: string
    run: string
    logEmptied: boolean | null
    problem: string | null
    now: number
  }): Promise<void>
}

export type MaintenanceReason = 'deleted' | 'full'

export interface RetentionStore {
  setting(orgId: string): Promise<RetentionSetting>
  set(command: { orgId: string; setting: RetentionSetting; audit: AuditEntry }): Promise<void>
  /** Bytes of the organization's events with their ids and texts, without indexes and rollups. */
  eventBytes(orgId: string): Promise<number>
  /** Events with a smaller arrival number must be deleted so that the rest fits in `bytesMax`; null: none. */
  cutoff(query: { orgId: string; bytesMax: number }): Promise<number | null>
  /** Drops a bounded number of rollups of hours before `beforeMs` without a live event. Call until `done`. */
  dropRollups(command: { orgId: string; beforeMs: number }): Promise<{ rows: number; done: boolean }>
  /** Returns a bounded number of free pages to the disk and leaves a few. Call until `done`. */
  release(): Promise<{ bytes: number; done: boolean }>
  /**
   * Maintains what the engine stores on disk. `deleted`: returns the space of deleted data, of which no copy remains in
   * its files when the answer is true; false while an open read prevents that. `full`: a write was rejected with
   * `storage_full`. Also frees what the engine has reserved for deleting, and the steps of deleting verbs become as
   * small as they can until there is space again.
   */
  maintain(command: { reason: MaintenanceReason }): Promise<boolean>
  /** The start of the first hour with counts, or null. */
  firstHour(orgId: string): Promise<number | null>
  recounted(orgId: string): Promise<RecountProgress | null>
  noteRecount(command: { orgId: string } & RecountProgress): Promise<void>
}
