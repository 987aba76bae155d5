/** Who asks for something, and the audit row that tells of it. */
import type { AuditEntry } from '../../db/store.ts'
import { newId } from '../ids.ts'

export interface Who {
  orgId: string
  actor: string // user:<id> | key:<id> | cli
}

export function auditOf(
  { orgId, actor }: Who,
  action: string,
  target: string,
  metadata: AuditEntry['metadata'],
  occurredAtMs: number,
): AuditEntry {
  return { id: newId('aud'), orgId, actor, action, target, metadata, occurredAtMs }
}
