/** Audit entries: how a chain of them is hashed, and the store's interface to list, verify and trim the chains. */

/** One row of an organization's audit chain, and the JSON values that it may carry. */
export type Json = null | boolean | number | string | Json[] | { [member: string]: Json }

/** The chain of actions on the whole appliance, which belong to no organization (contract §8). */
export const applianceOrgId = 'org_system'

/** An entry as the caller passes it. The engine adds the chain's hash. */
export interface AuditEntry {
  id: string // aud_…
  orgId: string
  actor: string // user:<id> | key:<id> | cli | system
  action: string // noun.verb
  target: string // id of the changed object
  metadata: { [member: string]: Json } // its label and what changed
  occurredAtMs: number
}

/** A list matches any of its values; an absent list does not filter. */
export interface AuditFilter {
  sinceMs?: number // inclusive
  untilMs?: number // exclusive
  actors?: string[]
  actions?: string[] // a trailing `.*` is a prefix
  targets?: string[]
  text?: string // matches within actor, action, target or metadata, ignoring case
}

export interface AuditQuery {
  orgId: string
  limit: number
  beforeSeq: number | null
  filter?: AuditFilter
}

/** The end of a chain: the number of its entries and the hash of the newest. */
export interface AuditHead {
  count: number
  hash: string // 64 zeros for an empty chain
}

/** The head of a chain at some time, signed. Nobody can forge it afterwards. */
export interface SignedHead extends AuditHead {
  orgId: string
  at: string // when it was signed
  key: string // public key, base64url
  signature: string // base64url
}

/** A signed head in the database. */
export interface AuditCheckpoint extends SignedHead {
  seq: number // from 1, without a gap
}

/** The start of a chain after its oldest entries were deleted: after entry `count`, whose hash was `hash`. Signed. */
export type AuditTrim = SignedHead

/** An entry as stored and hashed, all text: the input of a proof. */
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

/** A head recorded earlier elsewhere. The chain must still contain it. */
export interface AuditAnchor extends AuditHead {
  orgId: string
  source: string // for example "the file audit-checkpoints"
}

/** The first fault of an audit chain. */
export interface AuditFault {
  orgId: string
  position: number // counts from 1
  entryId: string | null // null when the entry is missing
  kind: 'edited' | 'missing' | 'reordered' | 'rewritten' | 'cut' | 'forged'
  message: string
}

/** The valid part of each chain, and at most one fault per chain. */
export interface AuditVerdict {
  chains: { orgId: string; count: number; hash: string; trim: AuditTrim | null }[]
  faults: AuditFault[]
  /** Of the same moment. */
  evidence: EvidenceState
}

/** Actions of the appliance's chain; their target is the name of the evidence. */
export const evidenceMissing = 'audit.evidence_missing'
export const evidenceAccepted = 'audit.evidence_accepted'

/** Evidence that a start found missing and created anew. It cannot show an earlier truncation. */
export interface EvidenceLoss {
  file: string
  at: string
  acceptedAt: string | null // null: no operator has accepted it yet
}

/** What there was beside the audit chains when it was last recorded. */
export interface AuditEvidence {
  signingKey: string | null // public key of the file `audit-signing.key`; null: the nodes' key ring signs
  checkpoints: number // written, at least
}

export interface EvidenceState {
  recorded: AuditEvidence | null // null: never, as before the first start of this release
  stored: number // checkpoints in the database
  losses: EvidenceLoss[]
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
   * The last entry before the first one at or after `beforeMs`, but never the newest of the chain. Null when nothing
   * may be trimmed. An entry later than `untilMs` has the time of a wrong clock and goes with an older one behind it.
   */
  trimPoint(query: { orgId: string; beforeMs: number; untilMs?: number }): Promise<AuditHead | null>
  /**
   * Stores signed heads that differ from the newest checkpoint of their chain and returns them. They are never changed
   * or deleted, also when their organization is. `DatabaseAdmin.checkpoints` reads them.
   */
  addCheckpoints(heads: SignedHead[]): Promise<SignedHead[]>
  /** What the database knows of the evidence beside it. */
  evidence(): Promise<EvidenceState>
  /** Replaces the record of `evidence`. */
  recordEvidence(evidence: AuditEvidence | null): Promise<void>
  /** Adds checkpoints of the file to the record. Call after they are on disk. */
  noteCheckpoints(count: number): Promise<void>
  /** Starts the chain after the trim. `sweep` deletes the entries before it. */
  trim(command: { trim: AuditTrim; audit: AuditEntry }): Promise<void>
  /** Deletes a bounded number of trimmed entries. Call until `done`. */
  sweep(orgId: string): Promise<{ entries: number; done: boolean }>
  /**
   * Verifies every chain, row by row, from its trim on. The caller checks the trim's signature. Without an open store,
   * use `DatabaseAdmin.verifyAudit`.
   */
  verify(anchors: AuditAnchor[]): Promise<AuditVerdict>
}

/**
 * Hashes an audit entry. Every entry carries the hash of the previous one of its organization.
 *
 * hash = SHA-256, lower-case hex, of the UTF-8 text
 *   JSON.stringify(['sightglass-audit-1', prevHash, position, id, orgId, actor, action, target, metadata, occurredAt])
 * with every value exactly as stored, all text. The first entry's prevHash is 64 zeros.
 */
export const genesisHash = '0'.repeat(64)
const positionDigits = 12

export function auditHash(row: Omit<AuditRow, 'hash'>): string {
  const { prevHash, position, id, orgId, actor, action, target, metadata, occurredAt } = row
  const text = [
    'sightglass-audit-1',
    prevHash,
    position,
    id,
    orgId,
    actor,
    action,
    target,
    metadata,
    occurredAt,
  ]
  // Not node:crypto, which each thread that imports it would load for 7 ms.
  return new Bun.CryptoHasher('sha256').update(JSON.stringify(text)).digest('hex')
}

export function positionText(position: number): string {
  return String(position).padStart(positionDigits, '0')
}
