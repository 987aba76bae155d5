/**
 * Queries of the dashboard: a key, a fetcher, a cache entry, and the loop that fetches again when a policy says so:
 * after live events, after an invalidation, or while a pushed list is empty.
 */
import { batch, signal, type ReadonlySignal } from '@preact/signals'
import { ApiError, idleSignal, type EventFilter, type EventPage } from '../api/api.ts'
import { session } from '../app/session.ts'
import { followLive, type LiveState } from '../live/live.ts'

export interface Query<T> {
  key: string // queries with the same key have the same answer
  fetch: (signal: AbortSignal) => Promise<T>
}

const cache = new Map<string, unknown>() // least recently written first
const cacheEntriesMax = 64
const prefetchMsMax = 10_000

/** Clears the cache when the person or organization changes, so that neither sees the other's data. */
function cacheKey(key: string): string {
  const currentSession = session.peek()
  return JSON.stringify([currentSession?.account.id, currentSession?.org.id, key])
}

/** `T` is the type of the query with this key. */
export function readCache<T>(key: string): T | null {
  return (cache.get(cacheKey(key)) as T | undefined) ?? null
}

export function writeCache(key: string, data: unknown): void {
  const entry = cacheKey(key)
  cache.delete(entry)
  cache.set(entry, data)
  for (const oldest of cache.keys()) if (cache.size > cacheEntriesMax) cache.delete(oldest)
}

/** Fetches into the cache unless the key is cached. Rejects when the request fails; the page then fetches itself. */
export async function prefetchQuery<T>({ key, fetch }: Query<T>): Promise<T> {
  const cached = readCache<T>(key)
  if (cached !== null) return cached
  const entry = cacheKey(key)
  const data = await fetch(AbortSignal.any([idleSignal(), AbortSignal.timeout(prefetchMsMax)]))
  // The person may have changed during the request.
  if (entry === cacheKey(key)) writeCache(key, data)
  return data
}

/** True if the values are equal apart from the server's clock, which may differ by less than ten minutes. */
function isSame(oldData: unknown, newData: unknown): boolean {
  const minutes = 'YYYY-MM-DDTHH:M'.length
  const text = (data: unknown): string =>
    JSON.stringify(data, (name, value: unknown) =>
      name === 'now' && typeof value === 'string' ? value.slice(0, minutes) : value,
    )
  return oldData !== null && text(oldData) === text(newData)
}

export interface Outcome<T> {
  data: T | null // null: the request failed
  error: ApiError | null
  tookMs: number
}

/** Resolves to true when the query should be fetched again, and to false when it should stop. */
type Wait<T> = (outcome: Outcome<T>) => Promise<boolean>

export interface RefreshPolicy<T> {
  /** Runs before each fetch; the returned function runs after it. */
  begin: (stop: AbortSignal) => Wait<T> | Promise<Wait<T>>
  /** Runs instead of the wait when the fetch or `begin` fails. */
  failed?: (error: ApiError, stop: AbortSignal) => Promise<boolean>
}

/** Fetches until `stop` aborts. An equal result keeps the identity of the cached one, which avoids a render. */
export async function runQuery<T>(
  { key, fetch }: Query<T>,
  policy: RefreshPolicy<T>,
  publish: (outcome: Outcome<T>) => void,
  stop: AbortSignal,
): Promise<void> {
  let again = true
  while (again && !stop.aborted) {
    let wait: Wait<T> = () => Promise.resolve(false)
    let startedMs = performance.now()
    const outcome: Outcome<T> = { data: null, error: null, tookMs: 0 }
    try {
      wait = await policy.begin(stop)
      startedMs = performance.now()
      outcome.data = await fetch(stop)
    } catch (cause) {
      if (stop.aborted) return
      if (!(cause instanceof ApiError)) throw cause
      outcome.error = cause
    }
    if (stop.aborted) return
    outcome.tookMs = performance.now() - startedMs
    if (outcome.error === null) {
      const cached = readCache<T>(key)
      if (isSame(cached, outcome.data)) outcome.data = cached
      writeCache(key, outcome.data)
    }
    publish(outcome)
    again = await (outcome.error && policy.failed ? policy.failed(outcome.error, stop) : wait(outcome))
  }
}

export interface QueryModel<T> {
  data: ReadonlySignal<T | null>
  stale: ReadonlySignal<boolean> // the data is cached or of the previous query
  error: ReadonlySignal<ApiError | null>
  busy: ReadonlySignal<boolean> // a fetch by `start` or `refetch` has no answer yet
  start(query: Query<T>): void
  refetch(): void
  /** Shows and caches the answer of a change, and continues the policy with it. */
  replace(answer: T): void
  stop(): void
}

/** A query of a page. With `keepPrevious`, the previous data stays, marked stale, until the new data arrives. */
export function createQuery<T>(
  policy: RefreshPolicy<T>,
  { keepPrevious }: { keepPrevious: boolean },
): QueryModel<T> {
  const data = signal<T | null>(null)
  const stale = signal(false)
  const error = signal<ApiError | null>(null)
  const busy = signal(false)
  let running = new AbortController()
  let current: Query<T> | null = null
  const run = (query = current): void => {
    running.abort()
    running = new AbortController()
    busy.value = query !== null
    if (query !== null) void runQuery(query, policy, publish, running.signal)
  }
  const publish = (outcome: Outcome<T>): void =>
    batch(() => {
      busy.value = false
      error.value = outcome.error
      if (outcome.error !== null) return
      data.value = outcome.data
      stale.value = false
    })
  return {
    data,
    stale,
    error,
    busy,
    start(query) {
      current = query
      batch(() => {
        data.value = readCache<T>(query.key) ?? (keepPrevious ? data.peek() : null)
        stale.value = data.peek() !== null
      })
      run()
    },
    refetch: () => run(),
    replace(answer) {
      const query = current
      if (query === null) return
      let first: Promise<T> | null = Promise.resolve(answer)
      run({
        key: query.key,
        fetch(stop) {
          const result = first ?? query.fetch(stop)
          first = null
          return result
        },
      })
    },
    stop: () => running.abort(),
  }
}

/** The calls that a query follows live events with. */
export interface LiveSource {
  newest: (filter: EventFilter, signal: AbortSignal) => Promise<EventPage>
  live: (filter: EventFilter, position: string, signal: AbortSignal) => Promise<Response>
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
  position: string,
  stop: AbortSignal,
  onState: (state: LiveState) => void,
): Promise<void> {
  const arrived = new AbortController()
  const timer = setTimeout(() => arrived.abort(), quarterHourMs)
  await followLive({
    after: position,
    open: (from, signal) => source.live(filter, from, signal),
    onEvents: () => arrived.abort(),
    onState,
    onForgotten: () => arrived.abort(),
    signal: AbortSignal.any([stop, arrived.signal]),
  })
  clearTimeout(timer)
}

interface Invalidation {
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
    after(seenCount, stop) {
      if (count > seenCount || stop.aborted) return Promise.resolve()
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
      const seenCount = invalidation.count()
      return async ({ tookMs }) => {
        await sleep(Math.max(restMsMin, panelRestFactor * tookMs), stop)
        await invalidation.after(seenCount, stop)
        return true
      }
    },
  }
}

/** Fetches again while `isRunning` is true of the newest data, for work that no stream reports. */
export function refreshWhile<T>(isRunning: (data: T) => boolean, everyMs: number): RefreshPolicy<T> {
  let running = false
  const again = async (stop: AbortSignal): Promise<boolean> => {
    if (running) await sleep(everyMs, stop)
    return running
  }
  return {
    begin:
      (stop) =>
      ({ data }) => {
        running = data !== null && isRunning(data)
        return again(stop)
      },
    failed: (_error, stop) => again(stop),
  }
}

/** Pushed data, up to the maximum of a page. */
export interface Pushed<T> {
  list: T[]
  hasMore: boolean
}

const emptyPauseMs = 2_000

/**
 * No stream reports pushes. An empty list is polled; any other is fetched again after an invalidation, when it is
 * `freshMs` old.
 */
export function refreshPushed<T>(invalidation: Invalidation, freshMs: number): RefreshPolicy<Pushed<T>> {
  return {
    begin(stop) {
      const startedMs = performance.now()
      const seenCount = invalidation.count()
      return async ({ data }) => {
        if (data?.list.length === 0) {
          await sleep(emptyPauseMs, stop)
          return true
        }
        await invalidation.after(seenCount, stop)
        if (!stop.aborted) await sleep(Math.max(0, startedMs + freshMs - performance.now()), stop)
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
