/** Makes the audit entry of one act; who acts is told apart from what is done, because one request does one thing. */
import type { AuditEntry } from '../../db/contract/store.ts'
import { runningContext } from '../http/request-context.ts'
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
  const whole = { ...labelOf(target, metadata), ...metadata, ...senderOf(actor) }
  return { id: newId('aud'), orgId, actor, action, target, metadata: whole, occurredAtMs }
}

/** An organization's name, where the act itself names nothing: an export's reader knows no ids. */
function labelOf(target: string, metadata: AuditEntry['metadata']): AuditEntry['metadata'] {
  const org = runningContext()?.signIn?.org
  return org?.id === target && targetName({ metadata }) === null ? { label: org.name } : {}
}

/** The name and address of whoever sent the request; nothing for the command line and for jobs. */
function senderOf(actor: string): AuditEntry['metadata'] {
  const context = runningContext()
  if (context === null || !/^(user|key):/.test(actor)) return {}
  const { address, signIn, key } = context
  const names = new Map<string, string>()
  if (signIn !== undefined) names.set(`user:${signIn.account.id}`, signIn.account.email)
  if (key !== undefined) names.set(`key:${key.id}`, key.label)
  const actorLabel = names.get(actor)
  return { ...(actorLabel === undefined ? {} : { actorLabel }), address }
}

const nameMembers = ['label', 'name', 'email', 'slug', 'url']

/** The name that an entry gives its target: of a change the new one. Null when it gives none. */
export function targetName({ metadata }: Pick<AuditEntry, 'metadata'>): string | null {
  for (const members of [metadata, metadata['after'], metadata['before']]) {
    if (typeof members !== 'object' || members === null || Array.isArray(members)) continue
    for (const name of nameMembers) {
      const value = members[name]
      if (typeof value === 'string' && value !== '') return value
    }
  }
  return null
}
