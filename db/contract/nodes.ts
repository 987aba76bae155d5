/** The store's interface for the nodes of one database: which of them run, and which runs a job of all of them. */

export type NodeRole = 'all' | 'ingest' | 'web' | 'jobs'

export interface NewNode {
  name: string // unique among the nodes that run
  version: string // of its release
  role: NodeRole
}

/** Times are of the store's clock. */
export interface Node extends NewNode {
  startedAtMs: number
  seenAtMs: number
}

/**
 * The store's clock is that of the database's machine. A data folder has one node, so its store uses `now`. Clocks of
 * nodes differ; their times are never compared with each other.
 */
export interface NodeStore {
  /** Adds the node, or replaces the one with its name, which ended. Deletes nodes that were not seen for a day. */
  register(command: { node: NewNode; now: number }): Promise<void>
  /** Returns the store's time, from which a node learns how far its clock is off. `not_found` before `register`. */
  heartbeat(command: { name: string; now: number }): Promise<{ storeMs: number }>
  /** By name. */
  list(): Promise<Node[]>
}

/** The right to run a job of the whole appliance. */
export interface JobLease {
  job: string
  lease: number
}

/**
 * One node at a time runs a job such as retention. Leases end by the store's clock. A node that was suspended does not
 * notice that its lease ended, so jobs run in steps that are safe twice; the step that is not, the repair of a
 * re-count, passes its lease and is rejected with `conflict` when another node has claimed the job (fencing).
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
