/** Every verb that changes something, by the name under which it reaches the writer. Each runs in a transaction. */
import type { EventStore, ExpireCommand, RollupRepair, ExpireResult } from '../store.ts'
import { appendAudit } from './audit.ts'
import type { WriteContext } from './contexts.ts'
import { identityWriteVerbs } from './identity-verbs.ts'
import { addRejected } from './rejected.ts'
import { registryWriteVerbs } from './registry/verbs.ts'
import { secret } from './secrets.ts'
import { webhookWriteVerbs } from './webhooks/verbs.ts'

export const writeVerbs = {
  ...identityWriteVerbs,
  'rejected.add': addRejected,
  'events.removeSite': removeSite,
  'events.erase': erase,
  'events.repair': ({ events }: WriteContext, command: { orgId: string; repairs: RollupRepair[] }) =>
    events.repair(command),
  'events.expire': ({ events }: WriteContext, command: ExpireCommand) => events.expire(command),
  ...webhookWriteVerbs,
  ...registryWriteVerbs,
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

function erase(
  { db, events }: WriteContext,
  { audit, ...command }: Parameters<EventStore['erase']>[0],
): ExpireResult {
  const step = events.erase(command)
  if (audit !== null) appendAudit(db, audit)
  return step
}
