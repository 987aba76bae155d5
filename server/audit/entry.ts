/** Makes the audit entry of one action, with the sender's name and address from the current request. */
import type { AuditEntry } from '../../db/contract/store.ts'
import { runningContext } from '../http/request.ts'
import { newId } from '../ids.ts'

export interface Actor {
  orgId: string
  actor: string // user:<id> | key:<id> | cli | system
}

/** `id`: of an entry that is written once, whatever runs concurrently. */
export function auditEntry(
  { orgId, actor }: Actor,
  act: { action: string; target: string; metadata?: AuditEntry['metadata']; id?: string },
  occurredAtMs: number,
): AuditEntry {
  const { action, target, metadata = {}, id = newId('aud') } = act
  const whole = { ...labelOf(target, metadata), ...metadata, ...senderOf(actor) }
  return { id, orgId, actor, action, target, metadata: whole, occurredAtMs }
}

/** The organization's name when the action names nothing, because readers of an export do not know ids. */
function labelOf(target: string, metadata: AuditEntry['metadata']): AuditEntry['metadata'] {
  const org = runningContext()?.signIn?.org
  return org?.id === target && targetName({ metadata }) === null ? { label: org.name } : {}
}

/** The name and address of the sender of the request; empty for the command line and for jobs. */
function senderOf(actor: string): AuditEntry['metadata'] {
  const context = runningContext()
  if (context === null || !/^(user|key):/.test(actor)) return {}
  const { signIn, key } = context
  const { address } = context.sender()
  const names = new Map<string, string>()
  if (signIn !== undefined) names.set(`user:${signIn.account.id}`, signIn.account.email)
  if (key !== undefined) names.set(`key:${key.id}`, key.label)
  const actorLabel = names.get(actor)
  return { ...(actorLabel === undefined ? {} : { actorLabel }), address }
}

const nameFields = ['label', 'name', 'email', 'slug', 'url']

/** The name of an entry's target, after a change the new one; null when the entry has none. */
export function targetName({ metadata }: Pick<AuditEntry, 'metadata'>): string | null {
  for (const fields of [metadata, metadata['after'], metadata['before']]) {
    if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) continue
    for (const name of nameFields) {
      const value = fields[name]
      if (typeof value === 'string' && value !== '') return value
    }
  }
  return null
}
