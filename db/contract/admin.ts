/** Operations on a whole database, opened by its location and not by a running store. */
import type { AuditAnchor, AuditCheckpoint, AuditHead, AuditVerdict } from './audit.ts'
import type { CopyState } from './copy.ts'
import type { EventVerdict } from './event-counts.ts'
import type {
  Checkup,
  CopyReport,
  DatabaseFacts,
  Inspection,
  InspectionQuery,
  Placement,
  SchemaState,
  SettledPlacement,
} from './operations.ts'

/** Every operation also works beside a running server, except where it says otherwise. */
export interface DatabaseAdmin {
  readonly newestSchema: number // of this release
  hasData(): Promise<boolean>
  /** Lists the migrations that the database has and lacks. `not_found` without a database. */
  schema(): Promise<SchemaState>
  /** Runs the pending migrations. Rejects with `locked` while another process writes to the database. */
  migrate(now: number): Promise<void>
  /** Throws `locked` while another process writes to the database. */
  requireUnused(): Promise<void>
  /** Summarizes the database without verifying it. */
  facts(): Promise<DatabaseFacts>
  /** Examines the database briefly for `doctor`. */
  checkUp(now: number): Promise<Checkup>
  /** Signed heads of the audit chains that the database has, oldest first. The caller checks the signatures. */
  checkpoints(): Promise<AuditCheckpoint[]>
  /** Verifies the audit chains. `not_found` without a database. */
  verifyAudit(anchors?: AuditAnchor[]): Promise<AuditVerdict>
  /** Verifies every event, id, index and rollup: about 10 s per million events. */
  verifyEvents(): Promise<EventVerdict>
  /**
   * Names of files that the engine keeps as evidence of its audit chains and that are missing, or that record no chain
   * although the database has more entries than the first, which a crash may leave unrecorded.
   */
  missingEvidence(entries?: number): Promise<string[]>
  /** When anything was last written, by the clock of that time; null when the engine does not record it. */
  lastWriteMs(): Promise<number | null>
  /** The mark of a database that must not be served: a half-made copy, or a copied source. */
  copyState(): Promise<CopyState | null>
  backups: DatabaseCopies | OtherTools
}

/** A database that several nodes share, and the name of this one. */
export interface SharedDatabase {
  url: string
  node: string
}

/** Backups of an engine whose database is files of a data folder. */
export interface DatabaseCopies {
  by: 'copy'
  /** Bytes that a copy needs at most. */
  bytes(): number
  /** Writes a consistent copy to a path that must not exist. Writers continue meanwhile. */
  copyTo(path: string): Promise<CopyReport>
  /**
   * Whether the appliance's audit chain contains this head and no restore after it: then a database with this head is
   * an earlier state of this one. False when the entry has expired.
   */
  continues(head: AuditHead): Promise<boolean>
  /**
   * Replaces the database with the staged one, moves the old one aside and deletes the staged folder. Rejects with
   * `locked` while another process holds the folder. A failure rolls back. After an interruption the folder cannot be
   * opened until `settle` has run.
   */
  place(placement: Omit<Placement, 'folder' | 'holder'>): Promise<{ movedAside: string[] }>
  /** Rolls an interrupted placement back or completes it. Null when none was interrupted. */
  settle(): Promise<SettledPlacement | null>
}

/** Backups of an engine whose operators have tools for them. */
export interface OtherTools {
  by: 'tools'
  backUp: string // what to run for a backup, in a sentence
  restore: string // what to run for a restore, in a sentence
}

/** Files that contain a whole database, for example as the body of a backup. They need no data folder. */
export interface DatabaseFiles {
  /** The path of the database in a folder that holds one. */
  pathIn(folder: string): string
  /** Reads a whole database file and reports its contents and faults. Changes nothing. */
  inspect(query: InspectionQuery): Promise<Inspection>
  /** Locks a folder or throws `locked`. Returns the function that unlocks it. */
  hold(folder: string): () => void
}
