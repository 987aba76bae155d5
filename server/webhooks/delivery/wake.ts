/** Wakes the dispatcher within a second of new work. The job of `--dispatch-cron` repeats whatever a wake missed. */
import type { Store } from '../../../db/contract/store.ts'
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'

interface WakeServices {
  store: Pick<Store, 'webhooks' | 'events'>
  clock: Clock
  log: Log
  dispatch(now: number): Promise<void>
  /** Turns new events of an organization into deliveries and sends them. */
  fanOut(orgId: string, now: number): Promise<void>
}

export interface Wake {
  /** Reports that a delivery becomes due at this time. */
  dueAt(atMs: number): void
  stop(): void
}

/** Deliveries created within this time are claimed together. */
const dispatchAfterMs = 20
/** Events that arrive within this time share a batch. */
const fanOutAfterMs = 100
/** Under a steady stream of events the endpoints of an organization get a batch this often. */
const fanOutEveryMs = 1_000
/** The clock may be set while a retry waits, so a timer runs at most this long. */
const sleepMsMax = 60_000

type Later = (work: () => Promise<void>, afterMs: number) => Timer

interface OrgState {
  isTimed: boolean
  isRunning: boolean
  isRequested: boolean // while it was running
  endedMs: number
}

export function startWake(services: WakeServices): Wake {
  const { store, clock, log } = services
  const stopped = new AbortController()
  let dispatchTimer: Timer | null = null
  let due: { timer: Timer; atMs: number } | null = null

  const later: Later = (work, afterMs) => {
    const failed = (error: unknown) => {
      // A stop closes the store during a run; the next start does its work.
      if (!stopped.signal.aborted) log.warn('webhook_wake_failed', { message: String(error) })
    }
    const timer = setTimeout(
      () => {
        if (!stopped.signal.aborted) void work().catch(failed)
      },
      Math.max(0, afterMs),
    )
    timer.unref()
    return timer
  }
  const fanOutSoon = makeFanOutSoon(services, later)

  function dispatchSoon(): void {
    dispatchTimer ??= later(async () => {
      dispatchTimer = null
      await services.dispatch(clock.now())
    }, dispatchAfterMs)
  }

  function dueAt(atMs: number): void {
    if (due !== null && due.atMs <= atMs) return
    clearTimeout(due?.timer)
    due = { atMs, timer: later(dispatchDue, Math.min(atMs - clock.now(), sleepMsMax)) }
  }

  async function dispatchDue(): Promise<void> {
    due = null
    const now = clock.now()
    await services.dispatch(now)
    const nextMs = await store.webhooks.nextDueAt(now)
    if (nextMs !== null) dueAt(nextMs)
  }

  // Deliveries that became due, and events that arrived, while the appliance was stopped.
  later(async () => {
    await dispatchDue()
    for (const { orgId } of await store.webhooks.activeEndpoints()) fanOutSoon(orgId)
  }, 0)
  const ends = [
    store.events.watch((orgIds) => orgIds.forEach(fanOutSoon)),
    store.webhooks.watch((orgId) => (orgId === null ? dispatchSoon() : fanOutSoon(orgId))),
  ]
  return {
    dueAt,
    stop() {
      stopped.abort()
      for (const end of ends) end()
    },
  }
}

/** Fans out an organization's events soon after a request: one run at a time and at most one per second. */
function makeFanOutSoon({ fanOut, clock }: WakeServices, later: Later): (orgId: string) => void {
  const states = new Map<string, OrgState>()

  function fanOutSoon(orgId: string): void {
    const unused = { isTimed: false, isRunning: false, isRequested: false, endedMs: -Infinity }
    const state = states.get(orgId) ?? unused
    states.set(orgId, state)
    state.isRequested = true
    if (state.isRunning || state.isTimed) return
    state.isTimed = true
    later(
      async () => {
        Object.assign(state, { isTimed: false, isRunning: true, isRequested: false })
        await fanOut(orgId, clock.now()).finally(() => {
          Object.assign(state, { isRunning: false, endedMs: performance.now() })
          if (state.isRequested) fanOutSoon(orgId)
        })
      },
      Math.max(fanOutAfterMs, state.endedMs + fanOutEveryMs - performance.now()),
    )
  }
  return fanOutSoon
}
