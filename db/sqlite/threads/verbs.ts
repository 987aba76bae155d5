/** Every writing verb, by the name under which the writer receives it. Each runs in a transaction. */
import { appendAudit } from '../audit/append.ts'
import { identityWriteVerbs } from '../identity/verbs.ts'
import { addIngestCounts, addRejected } from '../registry/ingest-counts.ts'
import { eraseFromDeliveries, eraseSamples, retentionWriteVerbs } from '../retention/retention.ts'
import { registryWriteVerbs, removePushed } from '../registry/pushed.ts'
import { webhookWriteVerbs } from '../webhooks/verbs.ts'
import { eq } from 'drizzle-orm'
import { randomBytes } from 'node:crypto'
import { StoreError } from '../../contract/errors.ts'
import { storeSecret } from '../identity/schema.ts'
import type {
  EraseCursor,
  EraseResult,
  EventStore,
  ExpireCommand,
  RollupRepair,
} from '../../contract/store.ts'
import type { WriteContext } from './contexts.ts'

export const writeVerbs = {
  ...identityWriteVerbs,
  'rejected.add': addRejected,
  'ingestCounts.add': addIngestCounts,
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

/** Deliveries per step: at most half a megabyte each. */
const deliveriesMax = 16

/** Events first, so that a running dispatcher makes no new delivery of them after the deliveries were searched. */
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

/** Secrets of this store, each made once and never changed. */
const secretBytes = 32

function secret({ orm }: WriteContext, name: string): string {
  orm
    .insert(storeSecret)
    .values({ name, value: randomBytes(secretBytes).toString('hex') })
    .onConflictDoNothing()
    .run()
  const found = orm.select().from(storeSecret).where(eq(storeSecret.name, name)).get()
  if (found === undefined) throw new StoreError('internal', `the secret ${name} was not stored`)
  return found.value
}
