/** Appends audit entries to the chain of their organization (hash: `db/contract/audit.ts`). */
import type { Database } from '../database.ts'
import { auditHash, genesisHash, positionText } from '../../contract/audit.ts'
import type { AuditEntry, AuditHead, AuditRow } from '../../contract/store.ts'

/** Named, because an engine may add a column. */
export const auditColumns = 'id, orgId, actor, action, target, metadata, occurredAt, position, prevHash, hash'

/** Appends one entry to its organization's chain, only inside the transaction of the verb that it records. */
export function appendAudit(db: Database, entry: AuditEntry): void {
  const head = db
    .query<AuditHead, [string]>('SELECT count, hash FROM audit_head WHERE org_id = ?')
    .get(entry.orgId) ?? { count: 0, hash: genesisHash }
  const row = {
    id: entry.id,
    orgId: entry.orgId,
    actor: entry.actor,
    action: entry.action,
    target: entry.target,
    metadata: JSON.stringify(entry.metadata),
    occurredAt: new Date(entry.occurredAtMs).toISOString(),
    position: positionText(head.count + 1),
    prevHash: head.hash,
  }
  const hash = auditHash(row)
  db.query(
    `INSERT INTO audit_entry
      (${auditColumns})
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    row.id,
    row.orgId,
    row.actor,
    row.action,
    row.target,
    row.metadata,
    row.occurredAt,
    row.position,
    row.prevHash,
    hash,
  )
  db.query(
    `INSERT INTO audit_head (org_id, count, hash) VALUES (?1, ?2, ?3)
     ON CONFLICT (org_id) DO UPDATE SET count = ?2, hash = ?3`,
  ).run(entry.orgId, head.count + 1, hash)
}

/** The head of every organization's chain, as committed. */
export function auditHeads(db: Database): { [orgId: string]: AuditHead } {
  const rows = db
    .query<AuditHead & { orgId: string }, []>(
      'SELECT org_id AS orgId, count, hash FROM audit_head ORDER BY org_id',
    )
    .all()
  return Object.fromEntries(rows.map(({ orgId, count, hash }) => [orgId, { count, hash }]))
}

/** Increases with every entry of any organization; 0 without entries. */
export function newestAuditRow(db: Database): number {
  return db.query<{ n: number | null }, []>('SELECT max(rowid) AS n FROM audit_entry').get()?.n ?? 0
}
