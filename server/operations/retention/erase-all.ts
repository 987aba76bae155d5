/** Erases a session or a subject to the end: events, copies in deliveries and samples, and the log behind them. */
import { createHmac } from 'node:crypto'
import type { AuditEntry, EraseCursor, EraseResult, Store } from '../../../db/contract/store.ts'
import { auditEntry, type Actor } from '../../audit/entry.ts'
import type { Clock } from '../../clock.ts'

export interface Erasure {
  kind: 'session' | 'subject'
  value: string
}

export interface Taken {
  events: number
  deliveries: number
  samples: number
}

export interface Erased extends Taken {
  /** Whether the write-ahead log was emptied: until then it may hold old pages. */
  logEmptied: boolean
}

/** What no erasure of ours can reach, said wherever one was done. */
export const beyondErasure = [
  'events that arrived after it had begun: once their sender is quiet, erase again',
  'backups, which keep it until they are deleted',
  'events that webhooks, file sinks or exports carried out of the appliance',
  'counts of hours whose events retention has already taken',
] as const

const truncateTries = 50
const truncateWaitMs = 100

export interface EraseOptions {
  /** Called after each step with the sums so far; after the first one the audit entry stands. */
  told?: (sum: Taken) => void
  /** Throws its reason at the next step once it is aborted; what is gone stays gone. */
  ending?: AbortSignal
}

/** The audit entry stands before the first event is gone, and names what is erased by a keyed hash alone. */
export async function eraseAll(
  { store, clock }: { store: Pick<Store, 'events' | 'retention' | 'secret'>; clock: Clock },
  actor: Actor,
  { kind, value }: Erasure,
  { told, ending }: EraseOptions = {},
): Promise<Erased> {
  const command = {
    orgId: actor.orgId,
    sessionIds: kind === 'session' ? [value] : [],
    subjects: kind === 'subject' ? [value] : [],
  }
  const target = await hashOf(store, actor.orgId, kind, value)
  let audit: AuditEntry | null = auditEntry(
    actor,
    { action: 'events.erased', target, metadata: { by: kind } },
    clock.now(),
  )
  const sum = { events: 0, deliveries: 0, samples: 0 }
  let cursor: EraseCursor | null = null
  do {
    const step: EraseResult = await store.events.erase({ ...command, audit, cursor })
    sum.events += step.events
    sum.deliveries += step.deliveries
    sum.samples += step.samples
    cursor = step.next
    audit = null
    told?.({ ...sum })
    if (cursor !== null) ending?.throwIfAborted()
  } while (cursor !== null)
  return { ...sum, logEmptied: await emptyLog(store) }
}

/** A plain hash of an e-mail address is soon guessed; this one needs the store's secret. */
async function hashOf(
  store: Pick<Store, 'secret'>,
  orgId: string,
  kind: string,
  value: string,
): Promise<string> {
  const secret = await store.secret('cursor')
  const hash = createHmac('sha256', secret).update(JSON.stringify(['erased', orgId, kind, value]))
  return `${kind}-hash:${hash.digest('hex').slice(0, 32)}`
}

async function emptyLog({ retention }: Pick<Store, 'retention'>): Promise<boolean> {
  for (let tries = 0; tries < truncateTries; tries++) {
    if (await retention.truncateLog()) return true
    await Bun.sleep(truncateWaitMs)
  }
  return false
}
