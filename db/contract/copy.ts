/** Copies a whole database into another one, also of another engine and beside a server that uses the source. */

/** A data folder, or the URL of a shared database. */
export interface CopyEnd {
  location: string
  /** The same without a password, for messages and for the marks in both databases. */
  name: string
}

export interface CopyRequest {
  from: CopyEnd
  to: CopyEnd
  now: number
  /** Whether to wait until nothing uses the source. Otherwise the copy ends once it has caught up. */
  finish: boolean
  /** How long a step takes; tests interrupt a copy between short ones. Default: 200. */
  stepMs?: number
}

/** The progress of a copy after a step. */
export interface CopyStep {
  /**
   * `wait`: something uses the source; call again in a second. `caught_up`: the last step without `finish` while
   * something uses the source. `done`: the last step.
   */
  phase: 'copy' | 'catch_up' | 'wait' | 'compare' | 'caught_up' | 'done'
  pass: number // through the source, from 1
  rows: number // of this pass; an event counts as one
  rowsTotal: number // estimated
  bytes: number // of these rows
  behind: number // events that arrived in the source and are not in the target
  /** Who uses the source; null when the copy has locked it. */
  usedBy: string | null
  /** What was compared, with the last step of `done`. */
  verdict: CopyVerdict | null
}

/** Rows of one kind on both sides. */
export interface CopyCheck {
  name: string // of the table, or `events`, `ids`
  source: Counted
  target: Counted
}

export interface Counted {
  rows: number
  digest: string // SHA-256 in order, hex
}

export interface CopyVerdict {
  equal: boolean
  checks: CopyCheck[]
  /** What else is wrong with the target: its audit chains, its references. */
  faults: string[]
}

export interface DatabaseCopy {
  /** Ids of the keys with which secrets of the source are encrypted. */
  keyIds: string[]
  /** Public keys that signed trims and checkpoints of its audit chains. */
  signingKeys: string[]
  /** Whether the target holds a part of this copy already. */
  isResumed: boolean
  step(): Promise<CopyStep>
  /** Unlocks both ends. Without `done` the target stays unfinished, and the same copy continues it. */
  close(): Promise<void>
}

/** The mark of a database that must not be served. */
export interface CopyState {
  /** `target`: the copy is unfinished. `source`: the copy is finished, or about to be. */
  role: 'target' | 'source'
  other: string // name of the other end
  sinceMs: number
}
