/**
 * The store's interface for the nodes of one database: which of them run, what each of them says of itself, and which
 * runs a job of all of them.
 */
import type { StoreErrorKind } from './errors.ts'

export type NodeRole = 'all' | 'ingest' | 'web' | 'jobs'

export interface NewNode {
  name: string // unique among the nodes that run
  version: string // of its release
  role: NodeRole
}

/** What a node says of itself with each heartbeat. */
export interface NodeReport {
  /** How far its clock is ahead of the store's. */
  aheadMs: number
  /** Batches that wait to be stored, and how long the oldest of them has waited. */
  queuedBytes: number
  queuedMs: number
  /** How old its view of the changes of other nodes is: its live streams and keys are late by so much. */
  viewMs: number
  /** It finishes its last requests. */
  isEnding: boolean
  /** What it cannot do, in sentences for an operator; null when nothing is wrong. */
  problem: string | null
}

/** Times are of the store's clock. The report is null before the first heartbeat. */
export interface Node extends NewNode {
  schema: number // the newest that its release knows
  startedAtMs: number
  seenAtMs: number
  report: NodeReport | null
}

/** Work that is due in the database. Any node does it. */
export interface Backlog {
  /** Events that are stored but not in the hourly counts yet. Reads add them, so no count is too low. */
  unfolded: number
  /** Arrivals that the slowest active webhook endpoint has not been offered yet. */
  undispatched: number
  /** Deliveries that are due and that no node is sending, and since when the oldest of them is due. */
  deliveriesDue: number
  oldestDueAtMs: number | null
}

/** The work that a node does in the background for the data of all, since its store was opened. */
export interface Upkeep {
  runs: number
  failures: number
  lastFailure: { kind: StoreErrorKind; message: string } | null
  /** For how long every run has failed; null when the last one succeeded. */
  failingMs: number | null
  /** Since the last run ended. */
  ageMs: number
}

/** How far a store is behind the database that it shares. */
export interface Behind {
  /** Since it began its last complete look at what other nodes changed. */
  viewMs: number
  /** Null when the writing thread does this work. */
  upkeep: Upkeep | null
}

/**
 * The store's clock is that of the database's machine. A data folder has one node, so its store uses `now`. Clocks of
 * nodes differ; their times are never compared with each other.
 */
export interface NodeStore {
  /**
   * Adds the node, or replaces the one with its name, which ended: leases of deliveries whose id begins with the name
   * and a slash end, and the deliveries are due again. Deletes nodes that were not seen for a day.
   */
  register(command: { node: NewNode; now: number }): Promise<{ startedAtMs: number }>
  /**
   * Returns the store's time, from which a node learns how far its clock is off, and when the node with its name
   * started: another time than its own means that two processes have one name. `not_found` before `register`.
   */
  heartbeat(command: {
    name: string
    report: NodeReport | null
    now: number
  }): Promise<{ storeMs: number; startedAtMs: number }>
  /** Deletes a node that ends, unless another one has started under its name since. */
  leave(command: { name: string; startedAtMs: number }): Promise<void>
  /** Those that were seen within a day, by name. */
  list(query: { now: number }): Promise<Node[]>
  backlog(query: { now: number }): Promise<Backlog>
}

/** The right to run a job of the whole appliance. */
export interface JobLease {
  job: string
  lease: number
}

/**
 * One node at a time runs a job such as retention. Leases end by the store's clock. A node that was suspended does not
 * notice that its lease ended, so jobs run in steps that are safe twice; those that are not, the repair of a re-count
 * and the steps of an alert, pass their lease and are rejected with `conflict` when another node has claimed the job
 * (fencing).
 */
export interface JobStore {
  /**
   * Null while another node has the job. A claim under the name of the holder comes from the same node, perhaps
   * restarted: it gets a new lease at once, and the old one is lost.
   */
  claim(command: { job: string; node: string; leaseMs: number; now: number }): Promise<JobLease | null>
  /** Extends the lease to `leaseMs` from now. False when it is lost: the job must end. */
  renew(command: JobLease & { leaseMs: number; now: number }): Promise<boolean>
  /**
   * Ends the lease. Other nodes can claim the job after `quietMs`: nodes claim at the same time of day, and the one
   * that is late would run the job again. A lost lease changes nothing.
   */
  release(command: JobLease & { quietMs: number; now: number }): Promise<void>
}
