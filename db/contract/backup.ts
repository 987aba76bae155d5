/** The types of backups, restores, checks and upgrades. */
import type { AuditAnchor, AuditHead, AuditVerdict } from './audit.ts'

/** What a database holds, in numbers that can be compared. */
export interface DatabaseFacts {
  schema: number
  events: number
  orgs: number
  accounts: number
  keys: number
  auditHeads: { [orgId: string]: AuditHead }
}

/** What the database held just before it was copied and just after: a copy must lie between the two. */
export interface CopyReport {
  before: DatabaseFacts
  after: DatabaseFacts
}

export interface Inspection {
  facts: DatabaseFacts
  /** What the engine's own checks found, nothing when the file is sound. */
  faults: string[]
  audit: AuditVerdict
}

export interface InspectionWanted {
  path: string
  /** Heads the audit chains must run through. */
  anchors: AuditAnchor[]
}

export interface SchemaState {
  version: number // 0: a database without tables
  newest: number // that this release knows
  applied: { version: number; name: string; appliedAtMs: number }[]
  pending: { version: number; name: string }[] // empty for a newer schema too
}

/** What takes the place of a data folder's database, and where what was there goes. */
export interface Placement {
  folder: string
  staged: string // folder with the files that come in, on the same file system
  aside: string // name of the new folder inside `folder` that keeps what was there
  files: string[] // further files beside the database that come and go with it
  holder: number // process id, to name the lock's holder
  kind: 'restore' | 'undo'
}

/** What became of a placement that had been interrupted. */
export interface SettledPlacement {
  kind: Placement['kind']
  outcome: 'rolled_back' | 'finished'
  aside: string
}

/** What `doctor` asks of a database, found within a second or two. */
export interface Checkup {
  facts: DatabaseFacts
  sqlite: string // version
  bytes: number
  walBytes: number
  problems: string[] | null // null: too large for a quick look
  eventsLastWeek: number // by occurredAt
  newestAuditAtMs: number | null
  /** Keys that open something and still work. */
  keys: { live: number; exposed: number; endingSoon: number; idle: number }
}
