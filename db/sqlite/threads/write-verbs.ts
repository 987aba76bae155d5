/** Every verb that changes something, by the name under which it reaches the writer. Each runs in a transaction. */
import type {
  EraseCursor,
  EraseResult,
  EventStore,
  ExpireCommand,
  RollupRepair,
} from '../../contract/store.ts'
import { appendAudit } from '../audit/append.ts'
import type { WriteContext } from './contexts.ts'
import { identityWriteVerbs } from '../identity/verbs.ts'
import { addRejected } from '../registry/rejected.ts'
import { eraseFromDeliveries, eraseSamples } from '../retention/erase-copies.ts'
import { retentionWriteVerbs } from '../retention/verbs.ts'
import { removePushed } from '../registry/sites.ts'
import { registryWriteVerbs } from '../registry/verbs.ts'
import { secret } from '../file/secrets.ts'
import { webhookWriteVerbs } from '../webhooks/verbs.ts'

export const writeVerbs = {
  ...identityWriteVerbs,
  'rejected.add': addRejected,
  'events.removeSite': removeSite,
  'events.erase': erase,
  'events.repair': ({ events }: WriteContext, command: { orgId: string; repairs: RollupRepair[] }) =>
    events.repair(command),
  'events.expire': ({ events }: WriteContext, command: ExpireCommand) => events.expire(command),
  ...retentionWriteVerbs,
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
  removePushed(db, orgId, siteId)
  appendAudit(db, audit)
  return removed
}

/** Deliveries that one step looks through: half a megabyte each at most. */
const deliveriesMax = 16

/** Events first: a dispatcher that runs meanwhile makes no delivery of them after the deliveries were looked at. */
function erase(
  { db, events }: WriteContext,
  { audit, cursor, ...command }: Parameters<EventStore['erase']>[0],
): EraseResult {
  if (audit !== null) appendAudit(db, audit)
  if (cursor?.among === 'deliveries') {
    const samples = cursor.after === 0 ? eraseSamples(db, command) : 0
    const { erased, lastSeq } = eraseFromDeliveries(db, command, cursor.after, deliveriesMax)
    const next = lastSeq === null ? null : { ...cursor, after: lastSeq }
    return { events: 0, deliveries: erased, samples, next }
  }
  const step = events.erase(command, cursor)
  const next: EraseCursor =
    step.next === null ? { among: 'deliveries', after: 0 } : { among: 'events', ...step.next }
  return { events: step.events, deliveries: 0, samples: 0, next }
}
