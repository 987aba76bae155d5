/** Erases a session or a subject completely. Erasures of the dashboard run in the background, one per organization. */
import { isoTime, type Clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { createHmac } from 'node:crypto'
import { auditEntry, type Actor } from '../../audit/entry.ts'
import type { AuditEntry, EraseCursor, EraseResult, Store } from '../../../db/contract/store.ts'
import type { Log } from '../../log.ts'

export interface ErasuresJson {
  running: (ErasedCounts & { by: Erasure['kind']; startedAt: string }) | null
  /** The newest that ended since the server started; `erased` is null when it was interrupted, for `problem`. */
  last: { by: Erasure['kind']; endedAt: string; erased: Erased | null; problem: string | null } | null
  beyond: readonly string[] // what an erasure cannot reach
}

export interface Erasures {
  /**
   * Resolves after the first step, when the audit entry is written, because an erasure can outlast the deadline
   * of a request. Throws `conflict` while another erasure of the organization runs, and any error of the first step.
   */
  start(actor: Actor, erasure: Erasure): Promise<void>
  view(orgId: string): ErasuresJson
  /** Interrupts the running erasures at their next step; the log records it. */
  stop(): Promise<void>
}

interface ErasureServices {
  store: Pick<Store, 'events' | 'retention' | 'secret'>
  clock: Clock
  log: Log
}

export function makeErasures({ store, clock, log }: ErasureServices): Erasures {
  const running = new Map<string, { state: NonNullable<ErasuresJson['running']>; work: Promise<void> }>()
  const last = new Map<string, NonNullable<ErasuresJson['last']>>()
  const ending = new AbortController()

  /** Rejects only through `begun`: the result is in the view and in the log. */
  async function work(
    actor: Actor,
    erasure: Erasure,
    state: NonNullable<ErasuresJson['running']>,
    begun: PromiseWithResolvers<void>,
  ): Promise<void> {
    const { orgId } = actor
    let isBegun = false
    const onProgress = (sum: ErasedCounts) => {
      Object.assign(state, sum)
      isBegun = true
      begun.resolve()
    }
    const ended = (erased: Erased | null, problem: string | null) =>
      void last.set(orgId, { by: erasure.kind, endedAt: isoTime(clock.now()), erased, problem })
    try {
      ended(await eraseAll({ store, clock }, actor, erasure, { onProgress, ending: ending.signal }), null)
    } catch (error) {
      if (!isBegun) return begun.reject(error)
      const message = error instanceof Error ? error.message : String(error)
      log.error('erasure_cut_short', { orgId, by: erasure.kind, events: state.events, message })
      ended(null, message)
    } finally {
      running.delete(orgId)
    }
  }

  return {
    async start(actor, erasure) {
      if (running.has(actor.orgId))
        throw new AppError('conflict', 'Another erasure is running. Try again when it finishes.')
      const begun = Promise.withResolvers<void>()
      const nothing: ErasedCounts = { events: 0, deliveries: 0, samples: 0 }
      const state = { by: erasure.kind, startedAt: isoTime(clock.now()), ...nothing }
      running.set(actor.orgId, { state, work: work(actor, erasure, state, begun) })
      await begun.promise
    },
    view: (orgId) => ({
      running: running.get(orgId)?.state ?? null,
      last: last.get(orgId) ?? null,
      beyond: beyondErasure,
    }),
    async stop() {
      ending.abort(new Error('the server stopped before it finished: erase again'))
      await Promise.all([...running.values()].map((one) => one.work))
    },
  }
}

export interface Erasure {
  kind: 'session' | 'subject'
  value: string
}

interface ErasedCounts {
  events: number
  deliveries: number
  samples: number
}

interface Erased extends ErasedCounts {
  /** Whether no copy of erased data remains in the files of the store. */
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

interface EraseOptions {
  /** Called after each step with the totals so far; the audit entry exists after the first. */
  onProgress?: (sum: ErasedCounts) => void
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
    if (await retention.maintain({ reason: 'deleted' })) return true
    await Bun.sleep(truncateWaitMs)
  }
  return false
}
