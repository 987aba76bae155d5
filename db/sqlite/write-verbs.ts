/** Every verb that changes something, by the name under which it reaches the writer. Each runs in a transaction. */
import type { AuditEntry, EventStore } from '../store.ts'
import { createAccount, createFirstOwner, setPassword } from './accounts.ts'
import { appendAudit } from './audit.ts'
import type { WriteContext } from './contexts.ts'
import { createKey, markKeyExposed, revokeKey, touchKeys } from './keys.ts'
import { createLink, resetPassword } from './links.ts'
import { bootstrapOrg, createOrg } from './orgs.ts'
import { addRejected } from './rejected.ts'
import { secret } from './secrets.ts'
import { createSignIn, endSignIn, pruneSignIns, touchSignIn } from './sign-ins.ts'
import { webhookWriteVerbs } from './webhooks/verbs.ts'

export const writeVerbs = {
  'orgs.create': createOrg,
  'orgs.bootstrap': bootstrapOrg,
  'accounts.createFirstOwner': createFirstOwner,
  'accounts.create': createAccount,
  'accounts.setPassword': setPassword,
  'accounts.createLink': createLink,
  'accounts.resetPassword': resetPassword,
  'signIns.create': createSignIn,
  'signIns.touch': touchSignIn,
  'signIns.end': endSignIn,
  'signIns.prune': pruneSignIns,
  'keys.create': createKey,
  'keys.revoke': revokeKey,
  'keys.markExposed': markKeyExposed,
  'keys.touch': touchKeys,
  'audit.append': ({ db }: WriteContext, entry: AuditEntry) => appendAudit(db, entry),
  'rejected.add': addRejected,
  'events.removeSite': removeSite,
  ...webhookWriteVerbs,
  secret,
} satisfies { [verb: string]: (context: WriteContext, command: never) => unknown }

export type WriteVerbs = typeof writeVerbs

function removeSite(
  { db, events }: WriteContext,
  { orgId, siteId, audit }: Parameters<EventStore['removeSite']>[0],
): number {
  const removed = events.removeSite(orgId, siteId)
  appendAudit(db, audit)
  return removed
}
