/** Erasures started in the dashboard: in the background, one at a time per organization, with progress. */
import type { Store } from '../../../db/contract/store.ts'
import type { Actor } from '../../audit/entry.ts'
import { isoTime, type Clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import { beyondErasure, eraseAll, type Erased, type Erasure, type Taken } from './erase-all.ts'

export interface ErasuresJson {
  running: (Taken & { by: Erasure['kind']; startedAt: string }) | null
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
    const onProgress = (sum: Taken) => {
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
      const nothing: Taken = { events: 0, deliveries: 0, samples: 0 }
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
