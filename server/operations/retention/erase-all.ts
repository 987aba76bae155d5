/** Erases a session or a subject completely: events, copies in deliveries and samples, and the write-ahead log. */
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
  /** Whether the write-ahead log was truncated; until then it may contain erased pages. */
  logEmptied: boolean
}

/** What an erasure cannot reach, shown with every result. */
export const beyondErasure = [
  'events that arrived after the start: erase again when their sender has stopped',
  'backups, until they are deleted',
  'events that webhooks, file sinks or exports have sent elsewhere',
  'counts of hours whose events retention has already deleted',
] as const

const truncateTries = 50
const truncateWaitMs = 100

export interface EraseOptions {
  /** Called after each step with the totals so far; the audit entry exists after the first. */
  onProgress?: (sum: Taken) => void
  /** When aborted, the next step throws its reason; erased data stays erased. */
  ending?: AbortSignal
}

/** The audit entry is written before the first event is erased, and names the target only by a keyed hash. */
export async function eraseAll(
  { store, clock }: { store: Pick<Store, 'events' | 'retention' | 'secret'>; clock: Clock },
  actor: Actor,
  { kind, value }: Erasure,
  { onProgress, ending }: EraseOptions = {},
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
    onProgress?.({ ...sum })
    if (cursor !== null) ending?.throwIfAborted()
  } while (cursor !== null)
  return { ...sum, logEmptied: await emptyLog(store) }
}

/** Keyed with the store's secret, because a plain hash of an email address is easily guessed. */
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
