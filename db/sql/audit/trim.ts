/**
 * Trims the audit trail for retention: a signed trim moves a chain's start past one of its entries. Readers skip the
 * rows before it from that commit on. They are deleted in steps, and the triggers allow no other deletion. Checkpoints,
 * which are signed heads, are stored in a table that the triggers protect too.
 */
import { columnsOf, type Database } from '../database.ts'
import { StoreError } from '../../contract/errors.ts'
import type { AuditCheckpoint, AuditHead, AuditStore, AuditTrim, SignedHead } from '../../contract/store.ts'
import { applianceOrgId, genesisHash, positionText } from '../../contract/audit.ts'
import { appendAudit } from './append.ts'
import { evidenceState, oldestOpenLoss, recordEvidence } from './evidence.ts'
import type { ReadContext, WriteContext } from '../contexts.ts'

/** Rows per step, which is as long as ingest waits. */
const sweepRows = 2_000

/** The entry before a chain's first one. An untrimmed chain begins with position 1. */
export const untrimmed: AuditHead = { count: 0, hash: genesisHash }

/** By organization. Data of an earlier schema, such as an old backup, has none. */
export function auditTrims(db: Database): { [orgId: string]: AuditTrim } {
  if (!columnsOf(db).some(({ table }) => table === 'audit_trim')) return {}
  const rows = db
    .query<AuditTrim, []>('SELECT org_id AS orgId, count, hash, at, key, signature FROM audit_trim')
    .all()
  return Object.fromEntries(rows.map((trim) => [trim.orgId, trim]))
}

export function auditTrim(db: Database, orgId: string): AuditTrim | null {
  return db
    .query<AuditTrim, [string]>(
      'SELECT org_id AS orgId, count, hash, at, key, signature FROM audit_trim WHERE org_id = ?',
    )
    .get(orgId)
}

/**
 * Never the newest entry, because the head beside the database is compared with it, and no entry of missing evidence
 * that nobody has accepted.
 */
export function trimPoint(
  { db }: ReadContext,
  { orgId, beforeMs, untilMs }: Parameters<AuditStore['trimPoint']>[0],
): AuditHead | null {
  const currentTrim = auditTrim(db, orgId) ?? untrimmed
  const beforeTime = new Date(beforeMs).toISOString()
  const until = untilMs === undefined ? '9999' : new Date(untilMs).toISOString()
  const firstStored = db
    .query<{ position: string }, [string, string, string, string]>(
      `SELECT position FROM audit_entry WHERE orgId = ? AND position > ? AND occurredAt >= ? AND occurredAt <= ?
       ORDER BY position LIMIT 1`,
    )
    .get(orgId, positionText(currentTrim.count), beforeTime, until)
  const newest = db
    .query<{ count: number }, [string]>('SELECT count FROM audit_head WHERE org_id = ?')
    .get(orgId)
  const openLoss = orgId === applianceOrgId ? oldestOpenLoss(db) : null
  const end = Math.min(
    firstStored === null ? Infinity : Number(firstStored.position),
    openLoss === null ? Infinity : Number(openLoss),
    newest?.count ?? 0,
  )
  const last = db
    .query<{ position: string }, [string, string, string, string]>(
      `SELECT position FROM audit_entry WHERE orgId = ? AND position > ? AND position < ? AND occurredAt < ?
       ORDER BY position DESC LIMIT 1`,
    )
    .get(orgId, positionText(currentTrim.count), positionText(end), beforeTime)
  const count = Number(last?.position ?? 0)
  if (count <= currentTrim.count) return null
  const hash = hashAt(db, orgId, count)
  return hash === null ? null : { count, hash }
}

/** Rejects a trim that is not an entry of the chain before its newest. */
export function trimAudit({ db }: WriteContext, { trim, audit }: Parameters<AuditStore['trim']>[0]): void {
  const { orgId, count, hash, at: signedAt, key, signature } = trim
  const newest = db
    .query<{ count: number }, [string]>('SELECT count FROM audit_head WHERE org_id = ?')
    .get(orgId)
  const present = auditTrim(db, orgId)
  // The same trim again, signed with another key: its entry is deleted already.
  const isSame = present?.count === count && present.hash === hash
  if ((hashAt(db, orgId, count) !== hash && !isSame) || count >= (newest?.count ?? 0)) {
    throw new StoreError('conflict', `the audit chain of ${orgId} cannot begin after its entry ${count}`)
  }
  db.query(
    `INSERT INTO audit_trim (org_id, count, hash, at, key, signature) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (org_id) DO UPDATE SET
       count = excluded.count, hash = excluded.hash, at = excluded.at, key = excluded.key,
       signature = excluded.signature`,
  ).run(orgId, count, hash, signedAt, key, signature)
  appendAudit(db, audit)
}

/** Deletes a bounded number of trimmed rows. */
export function sweepTrimmed({ db }: WriteContext, orgId: string): { entries: number; done: boolean } {
  const trim = auditTrim(db, orgId)
  if (trim === null) return { entries: 0, done: true }
  const { changes } = db
    .query(
      `DELETE FROM audit_entry WHERE rowid IN (
         SELECT rowid FROM audit_entry WHERE orgId = ? AND position <= ? ORDER BY position LIMIT ?)`,
    )
    .run(orgId, positionText(trim.count), sweepRows)
  return { entries: changes, done: changes < sweepRows }
}

function hashAt(db: Database, orgId: string, count: number): string | null {
  const row = db
    .query<{ hash: string }, [string, string]>(
      'SELECT hash FROM audit_entry WHERE orgId = ? AND position = ?',
    )
    .get(orgId, positionText(count))
  return row?.hash ?? null
}

/** Adds the heads that differ from the newest checkpoint of their chain, and returns them. */
export function addCheckpoints({ db }: WriteContext, heads: SignedHead[]): SignedHead[] {
  const newest = db.query<{ hash: string }, [string]>(
    'SELECT hash FROM audit_checkpoint WHERE org_id = ? ORDER BY seq DESC LIMIT 1',
  )
  const add = db.query(
    'INSERT INTO audit_checkpoint (seq, org_id, count, hash, at, key, signature) VALUES (?, ?, ?, ?, ?, ?, ?)',
  )
  let seq = db.query<{ n: number | null }>('SELECT max(seq) AS n FROM audit_checkpoint').get()?.n ?? 0
  const { recorded, stored } = evidenceState({ db })
  const added = heads.filter(({ orgId, hash }) => newest.get(orgId)?.hash !== hash)
  for (const { orgId, count, hash, at: signedAt, key, signature } of added)
    add.run(++seq, orgId, count, hash, signedAt, key, signature)
  if (added.length > 0)
    recordEvidence(
      { db },
      {
        signingKey: recorded?.signingKey ?? null,
        checkpoints: (recorded?.checkpoints ?? stored) + added.length,
      },
    )
  return added
}

/** Oldest first. Data of an earlier schema has none. */
export function auditCheckpoints(db: Database): AuditCheckpoint[] {
  if (!columnsOf(db).some(({ table }) => table === 'audit_checkpoint')) return []
  return db
    .query<AuditCheckpoint, []>(
      'SELECT seq, org_id AS orgId, count, hash, at, key, signature FROM audit_checkpoint ORDER BY seq',
    )
    .all()
}
