/** Makes the audit entry of one act; who acts is told apart from what is done, because one request does one thing. */
import type { AuditEntry } from '../../db/store.ts'
import { newId } from '../ids.ts'

export interface Actor {
  orgId: string
  actor: string // user:<id> | key:<id> | cli | system
}

export function auditEntry(
  { orgId, actor }: Actor,
  act: { action: string; target: string; metadata?: AuditEntry['metadata'] },
  occurredAtMs: number,
): AuditEntry {
  const { action, target, metadata = {} } = act
  return { id: newId('aud'), orgId, actor, action, target, metadata, occurredAtMs }
}
