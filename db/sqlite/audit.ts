/**
 * The audit chain: every entry carries the hash of the one before it in its organization.
 *
 * hash = SHA-256, lower-case hex, of the UTF-8 text
 *   JSON.stringify(['sightglass-audit-1', prevHash, position, id, orgId, actor, action, target, metadata, occurredAt])
 * with every member exactly as it stands in the table, all text. The first entry's prevHash is 64 zeros.
 */
import type { Database } from 'bun:sqlite'
import { createHash } from 'node:crypto'
import type { AuditEntry, AuditHead, AuditRow } from '../store.ts'

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
  return createHash('sha256').update(JSON.stringify(text)).digest('hex')
}

export function positionText(position: number): string {
  return String(position).padStart(positionDigits, '0')
}

/** Appends one entry to its organization's chain. Only inside the transaction of the verb that it tells of. */
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
      (id, orgId, actor, action, target, metadata, occurredAt, position, prevHash, hash)
     VALUES ($id, $orgId, $actor, $action, $target, $metadata, $occurredAt, $position, $prevHash, $hash)`,
  ).run({ ...row, hash })
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

/** Rises with every entry of any organization, 0 when there is none. */
export function newestAuditRow(db: Database): number {
  return db.query<{ n: number | null }, []>('SELECT max(rowid) AS n FROM audit_entry').get()?.n ?? 0
}
