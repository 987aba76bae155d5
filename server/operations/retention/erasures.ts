/**
 * Erases a session or a subject completely. Erasures of the dashboard run in the background, one per organization.
 * Their progress is in the store, so every node shows it. No node continues an erasure of another one, because the
 * store does not know whose data it erases: that would be one more copy to erase.
 */
import { isoTime, type Clock } from '../../clock.ts'
import { StoreError } from '../../../db/contract/errors.ts'
import { AppError } from '../../errors.ts'
import { newId } from '../../ids.ts'
import { createHmac } from 'node:crypto'
import { auditEntry, type Actor } from '../../audit/entry.ts'
import type {
  AuditEntry,
  EraseCursor,
  EraseResult,
  ErasureProgress,
  ErasureRun,
  Store,
} from '../../../db/contract/store.ts'
import type { Log } from '../../log.ts'

export interface ErasuresJson {
  running: (ErasedCounts & { by: Erasure['kind']; startedAt: string }) | null
  /** The newest that ended; `erased` is null when it was interrupted, for `problem`. */
  last: { by: Erasure['kind']; endedAt: string; erased: Erased | null; problem: string | null } | null
  beyond: readonly string[] // what an erasure cannot reach
}

export interface Erasures {
  /**
   * Resolves after the first step, when the audit entry is written, because an erasure can outlast the deadline
   * of a request. Throws `conflict` while another erasure of the organization runs, and any error of the first step.
   */
  start(actor: Actor, erasure: Erasure): Promise<void>
  view(orgId: string): Promise<ErasuresJson>
  /** Interrupts the running erasures at their next step; the log records it. */
  stop(): Promise<void>
}

interface ErasureServices {
  store: Pick<Store, 'events' | 'retention' | 'erasures' | 'secret'>
  clock: Clock
  log: Log
  node: string
}

/** Steps take less than a second each. A node that is silent for longer has stopped. */
const leaseMs = 30_000

export function makeErasures({ store, clock, log, node }: ErasureServices): Erasures {
  /** Those of this process. */
  const running = new Map<string, { run: string; work: Promise<void> }>()
  const ending = new AbortController()

  /** Rejects only through `begun`: the result is in the store and in the log. */
  async function work(
    actor: Actor,
    erasure: Erasure,
    run: { id: string; node: string },
    startSignal: PromiseWithResolvers<void>,
  ): Promise<void> {
    const { orgId } = actor
    let erased: ErasedCounts | null = null
    const onProgress = (sum: ErasedCounts) => {
      erased = sum
      startSignal.resolve()
    }
    try {
      await eraseAll({ store, clock }, actor, erasure, { run, onProgress, ending: ending.signal })
    } catch (error) {
      if (erased === null) return startSignal.reject(error)
      const { events } = erased as ErasedCounts
      log.error('erasure_interrupted', { orgId, by: erasure.kind, events, message: messageOf(error) })
    } finally {
      running.delete(orgId)
    }
  }

  return {
    async start(actor, erasure) {
      for (
        let ownErasure = running.get(actor.orgId);
        ownErasure !== undefined;
        ownErasure = running.get(actor.orgId)
      ) {
        const stored = await store.erasures.find({ orgId: actor.orgId, now: clock.now() })
        if (stored?.run !== ownErasure.run || stored.endedAtMs === null) throw anotherRuns()
        await ownErasure.work // it has ended, and only returns
      }
      const startSignal = Promise.withResolvers<void>()
      const id = newId('era')
      running.set(actor.orgId, { run: id, work: work(actor, erasure, { id, node }, startSignal) })
      await startSignal.promise.catch((error: unknown) => {
        throw error instanceof StoreError && error.kind === 'conflict' ? anotherRuns() : error
      })
    },
    async view(orgId) {
      const progress = await store.erasures.find({ orgId, now: clock.now() })
      const isOwn = progress !== null && running.get(orgId)?.run === progress.run
      return { ...viewOf(progress, isOwn, node), beyond: beyondErasure }
    },
    async stop() {
      ending.abort(new Error('the server stopped before it finished: erase again'))
      await Promise.all([...running.values()].map((runningErasure) => runningErasure.work))
    },
  }
}

function anotherRuns(): AppError {
  return new AppError('conflict', 'Another erasure is running. Try again when it finishes.')
}

function viewOf(
  progress: ErasureProgress | null,
  isOwn: boolean,
  node: string,
): Pick<ErasuresJson, 'running' | 'last'> {
  if (progress === null) return { running: null, last: null }
  const { kind: erasureKind, events, deliveries, samples, endedAtMs, logEmptied } = progress
  const counts = { events, deliveries, samples }
  // What this node began and does not run was begun by a process that ended.
  const isAlive = isOwn || (progress.node !== node && progress.silentMs < leaseMs)
  if (endedAtMs === null && isAlive)
    return { running: { by: erasureKind, startedAt: isoTime(progress.startedAtMs), ...counts }, last: null }
  const problem =
    endedAtMs === null ? `${progress.node} stopped before it finished: erase again` : progress.problem
  const erased = logEmptied === null ? null : { ...counts, logEmptied }
  const last = { by: erasureKind, endedAt: isoTime(endedAtMs ?? progress.seenAtMs), erased, problem }
  return { running: null, last }
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
  run: { id: string; node: string }
  /** Called after each step with the totals so far; the audit entry exists after the first. */
  onProgress?: (sum: ErasedCounts) => void
  /** When aborted, the next step throws its reason; erased data stays erased. */
  ending?: AbortSignal
}

/** The audit entry is written before the first event is erased, and names the target only by a keyed hash. */
export async function eraseAll(
  { store, clock }: { store: Pick<Store, 'events' | 'retention' | 'erasures' | 'secret'>; clock: Clock },
  actor: Actor,
  { kind, value }: Erasure,
  { run: { id, node }, onProgress, ending }: EraseOptions,
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
  const end = (outcome: { logEmptied: boolean | null; problem: string | null }) =>
    store.erasures.end({ orgId: actor.orgId, run: id, ...outcome, now: clock.now() })
  let cursor: EraseCursor | null = null
  try {
    do {
      const run: ErasureRun = { id, kind, node, leaseMs, now: clock.now() }
      const step: EraseResult = await store.events.erase({ ...command, audit, cursor, run })
      sum.events += step.events
      sum.deliveries += step.deliveries
      sum.samples += step.samples
      cursor = step.next
      audit = null
      onProgress?.({ ...sum })
      if (cursor !== null) ending?.throwIfAborted()
    } while (cursor !== null)
    const logEmptied = await emptyLog(store)
    await end({ logEmptied, problem: null })
    return { ...sum, logEmptied }
  } catch (error) {
    // One that cannot be recorded is silent from now on, which says that it stopped.
    if (audit === null) await end({ logEmptied: null, problem: messageOf(error) }).catch(() => undefined)
    throw error
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
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
