/** The audit part of the store contract: entries, searching them, verifying and trimming the chain. */

/** One row of an organization's audit chain, and the JSON values it may carry: what every noun of the store shares. */
export type Json = null | boolean | number | string | Json[] | { [member: string]: Json }

/** The chain of acts on the whole appliance, which belong to no organization (contract §8). */
export const applianceOrgId = 'org_system'

/** As the caller gives it; the engine adds the chain's hash. */
export interface AuditEntry {
  id: string // aud_…
  orgId: string
  actor: string // user:<id> | key:<id> | cli | system
  action: string // noun.verb
  target: string // id of the thing acted on
  metadata: { [member: string]: Json } // its label and what changed
  occurredAtMs: number
}

/** A list means any of; an absent one does not filter. */
export interface AuditFilter {
  sinceMs?: number // inclusive
  untilMs?: number // exclusive
  actors?: string[]
  actions?: string[] // a trailing `.*` is a prefix
  targets?: string[]
  text?: string // a part of actor, action, target or metadata, whatever its case
}

export interface AuditQuery {
  orgId: string
  limit: number
  beforeSeq: number | null
  filter?: AuditFilter
}

/** The end of a chain: how many entries it has, and the hash of the newest. */
export interface AuditHead {
  count: number
  hash: string // 64 zeros for an empty chain
}

/** Where a chain begins since its oldest entries were taken out: after entry `count`, whose hash was `hash`. Signed. */
export interface AuditTrim extends AuditHead {
  orgId: string
  at: string // when it was signed
  key: string // the public one, base64url
  signature: string // base64url
}

/** An entry as it is kept and hashed, all text: what a proof is made of. */
export interface AuditRow {
  id: string
  orgId: string
  actor: string
  action: string
  target: string
  metadata: string
  occurredAt: string
  position: string // from 1, twelve digits
  prevHash: string
  hash: string
}

/** A head that was known elsewhere at some time: the chain must still run through it. */
export interface AuditAnchor extends AuditHead {
  orgId: string
  source: string // as in "the file audit-checkpoints"
}

/** What is wrong with an audit chain, at its first bad row. */
export interface AuditFault {
  orgId: string
  position: number // counts from 1
  entryId: string | null // null when the entry itself is gone
  kind: 'edited' | 'missing' | 'reordered' | 'rewritten' | 'cut' | 'forged'
  message: string
}

/** The chains as far as they are sound, and at most one fault for each. */
export interface AuditVerdict {
  chains: { orgId: string; count: number; hash: string; trim: AuditTrim | null }[]
  faults: AuditFault[]
  /** When a file of heads or checkpoints was found missing and made anew: what was cut before is not known to it. */
  renewed: { file: string; at: string }[]
}

export interface AuditStore {
  append(entry: AuditEntry): Promise<void>
  /** Newest first; `seq` is the entry's position in its organization's chain. */
  list(query: AuditQuery): Promise<{ entries: (AuditEntry & { seq: number })[]; next: number | null }>
  /** The newest head of every chain. */
  heads(): Promise<{ [orgId: string]: AuditHead }>
  /** The rows after a position, oldest first. */
  rows(query: { orgId: string; afterSeq: number; limit: number }): Promise<AuditRow[]>
  /** The trims of all chains, by organization. */
  trims(): Promise<{ [orgId: string]: AuditTrim }>
  /**
   * Where a trim may end: the last entry before the first one that is as new as `beforeMs`, but never the newest of the
   * chain. Null when nothing may go. An entry later than `untilMs` has the time of a wrong clock: it goes with an older
   * one behind it.
   */
  trimPoint(query: { orgId: string; beforeMs: number; untilMs?: number }): Promise<AuditHead | null>
  /** From now on the chain begins after the trim. What lies before is deleted by `sweep`. */
  trim(command: { trim: AuditTrim; audit: AuditEntry }): Promise<void>
  /** One step of deleting what was trimmed; to be called until `done`. */
  sweep(orgId: string): Promise<{ entries: number; done: boolean }>
  /**
   * Checks every chain, row by row, from its trim on; who signed that is for the caller to check. Without opening a
   * store: `verifyAudit` of `db/open.ts`.
   */
  verify(anchors: AuditAnchor[]): Promise<AuditVerdict>
}
