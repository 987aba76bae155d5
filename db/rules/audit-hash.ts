/**
 * Hashes an audit entry. Every entry carries the hash of the previous one of its organization.
 *
 * hash = SHA-256, lower-case hex, of the UTF-8 text
 *   JSON.stringify(['sightglass-audit-1', prevHash, position, id, orgId, actor, action, target, metadata, occurredAt])
 * with every value exactly as stored, all text. The first entry's prevHash is 64 zeros.
 */
import { createHash } from 'node:crypto'
import type { AuditRow } from '../contract/store.ts'

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
