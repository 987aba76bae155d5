/** Wakes the dispatcher within a second of what concerns it. The run of `--dispatch-cron` stays as the guarantee. */
import type { Store } from '../../../db/contract/store.ts'
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'

export interface WakeParts {
  store: Pick<Store, 'webhooks' | 'events'>
  clock: Clock
  log: Log
  dispatch(now: number): Promise<void>
  /** Turns new events of an organization into deliveries and sends them. */
  feed(orgId: string, now: number): Promise<void>
}

export interface Wake {
  /** A delivery becomes due at this time. */
  dueAt(atMs: number): void
  stop(): void
}

/** Deliveries that are made one after the other are claimed together. */
const dispatchAfterMs = 20
/** Events that arrive one after the other travel in one batch. */
const feedAfterMs = 100
/** Under a steady stream of events an organization's endpoints get a batch this often. */
const feedEveryMs = 1_000
/** The clock may be set while a retry waits; it is looked at again within this. */
const sleepMsMax = 60_000

type Later = (work: () => Promise<void>, afterMs: number) => Timer

interface Feed {
  isTimed: boolean
  isRunning: boolean
  isAsked: boolean // while it was running
  endedMs: number
}

export function startWake(parts: WakeParts): Wake {
  const { store, clock, log } = parts
  const stopped = new AbortController()
  let dispatchTimer: Timer | null = null
  let due: { timer: Timer; atMs: number } | null = null

  const later: Later = (work, afterMs) => {
    const failed = (error: unknown) => {
      // A stop closes the store under a run that is on its way; the next start does its work.
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
  const feedSoon = makeFeedSoon(parts, later)

  function dispatchSoon(): void {
    dispatchTimer ??= later(async () => {
      dispatchTimer = null
      await parts.dispatch(clock.now())
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
    await parts.dispatch(now)
    const nextMs = await store.webhooks.nextDueAt(now)
    if (nextMs !== null) dueAt(nextMs)
  }

  /** What became due while nobody was here, and events that no endpoint has been told of. */
  later(async () => {
    await dispatchDue()
    for (const { orgId } of await store.webhooks.activeEndpoints()) feedSoon(orgId)
  }, 0)
  const ends = [
    store.events.watch((orgIds) => orgIds.forEach(feedSoon)),
    store.webhooks.watch((orgId) => (orgId === null ? dispatchSoon() : feedSoon(orgId))),
  ]
  return {
    dueAt,
    stop() {
      stopped.abort()
      for (const end of ends) end()
    },
  }
}

/** Feeds an organization soon after it is asked to: one feed at a time, and one a second at most. */
function makeFeedSoon({ feed: feedOrg, clock }: WakeParts, later: Later): (orgId: string) => void {
  const feeds = new Map<string, Feed>()

  function feedSoon(orgId: string): void {
    const feed = feeds.get(orgId) ?? { isTimed: false, isRunning: false, isAsked: false, endedMs: -Infinity }
    feeds.set(orgId, feed)
    feed.isAsked = true
    if (feed.isRunning || feed.isTimed) return
    feed.isTimed = true
    later(
      async () => {
        Object.assign(feed, { isTimed: false, isRunning: true, isAsked: false })
        await feedOrg(orgId, clock.now()).finally(() => {
          Object.assign(feed, { isRunning: false, endedMs: performance.now() })
          if (feed.isAsked) feedSoon(orgId)
        })
      },
      Math.max(feedAfterMs, feed.endedMs + feedEveryMs - performance.now()),
    )
  }
  return feedSoon
}
