/** When a query is fetched again: after live events, after an invalidation, or while a pushed list is empty. */
import { type ReadonlySignal, signal } from '@preact/signals'
import type { EventFilter, EventPage } from '../api/api.ts'
import { followLive, type LiveState } from '../live/live.ts'
import type { RefreshPolicy } from './query.ts'

export interface LiveSource {
  newest: (filter: EventFilter, signal: AbortSignal) => Promise<EventPage>
  live: (filter: EventFilter, after: string, signal: AbortSignal) => Promise<Response>
}

/**
 * At most one fetch per second, and at most a sixth of the time spent fetching: an open page must not keep the
 * appliance busy. The stream is closed between fetches, because a page of counts does not need the events.
 */
const restMs = 1_000
const restFactor = 5
const soonMs = 100
const retryMs = 4_000
const quarterHourMs = 900_000

/** Fetches again when a matching event arrives, and every 15 minutes because a relative range moves. */
export function refreshOnEvents<T>(
  source: LiveSource,
  filter: EventFilter,
): RefreshPolicy<T> & { connection: ReadonlySignal<LiveState> } {
  const connection = signal<LiveState>({ state: 'connecting' })
  return {
    connection,
    async begin(stop) {
      // Reads the position before counting: an event in between is counted twice rather than missed.
      const { live } = await source.newest(filter, stop)
      return async ({ tookMs }) => {
        const restedAtMs = performance.now() + Math.max(restMs, restFactor * tookMs)
        await nextArrival(source, filter, live, stop, (state) => (connection.value = state))
        await sleep(Math.max(soonMs, restedAtMs - performance.now()), stop)
        return true
      }
    },
    async failed(error, stop) {
      connection.value = { state: 'lost', error, retryInMs: retryMs }
      // A rejected query stays rejected. An unreachable appliance is retried.
      if (error.status !== 0 && error.status < 500) return false
      await sleep(Math.max(retryMs, (error.retryAfterS ?? 0) * 1_000), stop)
      return true
    },
  }
}

async function nextArrival(
  source: LiveSource,
  filter: EventFilter,
  after: string,
  stop: AbortSignal,
  onState: (state: LiveState) => void,
): Promise<void> {
  const arrived = new AbortController()
  const timer = setTimeout(() => arrived.abort(), quarterHourMs)
  await followLive({
    after,
    open: (from, signal) => source.live(filter, from, signal),
    onEvents: () => arrived.abort(),
    onState,
    onForgotten: () => arrived.abort(),
    signal: AbortSignal.any([stop, arrived.signal]),
  })
  clearTimeout(timer)
}

export interface Invalidation {
  count(): number
  invalidate(): void
  /** Resolves when there are more invalidations than `count`, or when `stop` aborts. */
  after(count: number, stop: AbortSignal): Promise<void>
}

export function createInvalidation(): Invalidation {
  let count = 0
  const waiting = new Set<() => void>()
  return {
    count: () => count,
    invalidate() {
      count += 1
      for (const resolve of waiting) resolve()
      waiting.clear()
    },
    after(seen, stop) {
      if (count > seen || stop.aborted) return Promise.resolve()
      return new Promise((resolve) => {
        waiting.add(resolve)
        stop.addEventListener('abort', () => {
          waiting.delete(resolve)
          resolve()
        })
      })
    },
  }
}

/** A panel waits ten times as long as its last fetch took before it is fetched again. */
const panelRestFactor = 10

export function refreshOnInvalidate<T>(invalidation: Invalidation, restMsMin: number): RefreshPolicy<T> {
  return {
    begin(stop) {
      const seen = invalidation.count()
      return async ({ tookMs }) => {
        await sleep(Math.max(restMsMin, panelRestFactor * tookMs), stop)
        await invalidation.after(seen, stop)
        return true
      }
    },
  }
}

/** Pushed data, up to the maximum of a page. */
export interface Pushed<T> {
  list: T[]
  hasMore: boolean
}

const emptyPauseMs = 2_000

/** No stream reports pushes. An empty list is polled; any other is fetched again when it is `freshMs` old. */
export function refreshPushed<T>(invalidation: Invalidation, freshMs: number): RefreshPolicy<Pushed<T>> {
  return {
    begin(stop) {
      const startedMs = performance.now()
      let seen = invalidation.count()
      return async ({ data }) => {
        if (data?.list.length === 0) {
          await sleep(emptyPauseMs, stop)
          return true
        }
        do {
          await invalidation.after(seen, stop)
          seen = invalidation.count()
        } while (!stop.aborted && performance.now() - startedMs <= freshMs)
        return true
      }
    },
  }
}

function sleep(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    stop.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
