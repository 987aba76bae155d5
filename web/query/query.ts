/** Queries of the dashboard: a key, a fetcher, a cache entry, and the loop that fetches again when a policy says so. */
import { batch, type ReadonlySignal, signal } from '@preact/signals'
import { ApiError, idleSignal } from '../api/api.ts'
import { session } from '../app/session.ts'

export interface Query<T> {
  key: string // queries with the same key have the same answer
  fetch: (signal: AbortSignal) => Promise<T>
}

const cache = new Map<string, unknown>() // least recently written first
const cacheEntriesMax = 64
const prefetchMsMax = 10_000

/** Clears the cache when the person or organization changes, so that neither sees the other's data. */
function cacheKey(key: string): string {
  const who = session.peek()
  return JSON.stringify([who?.account.id, who?.org.id, key])
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
function isSame(before: unknown, after: unknown): boolean {
  const minutes = 'YYYY-MM-DDTHH:M'.length
  const text = (data: unknown): string =>
    JSON.stringify(data, (name, value: unknown) =>
      name === 'now' && typeof value === 'string' ? value.slice(0, minutes) : value,
    )
  return before !== null && text(before) === text(after)
}

export interface Outcome<T> {
  data: T | null // null: the request failed
  error: ApiError | null
  tookMs: number
}

/** Resolves to true when the query should be fetched again, and to false when it should stop. */
export type Wait<T> = (outcome: Outcome<T>) => Promise<boolean>

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
  start(query: Query<T>): void
  refetch(): void
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
  let running = new AbortController()
  let current: Query<T> | null = null
  const run = (): void => {
    running.abort()
    running = new AbortController()
    if (current !== null) void runQuery(current, policy, publish, running.signal)
  }
  const publish = (outcome: Outcome<T>): void =>
    batch(() => {
      error.value = outcome.error
      if (outcome.error !== null) return
      data.value = outcome.data
      stale.value = false
    })
  return {
    ...{ data, stale, error },
    start(query) {
      current = query
      batch(() => {
        data.value = readCache<T>(query.key) ?? (keepPrevious ? data.peek() : null)
        stale.value = data.peek() !== null
      })
      run()
    },
    refetch: run,
    stop: () => running.abort(),
  }
}
