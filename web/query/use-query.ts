/** Queries in components: of a panel, a dialog or a section of Settings. */
import { useSignal, useSignalEffect, type ReadonlySignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import {
  createInvalidation,
  createQuery,
  readCache,
  refreshOnInvalidate,
  refreshWhile,
  runQuery,
  type Query,
  type QueryModel,
  type RefreshPolicy,
} from './query.ts'
import type { ApiError } from '../api/api.ts'

interface Answer<T> {
  data: T | null
  error: ApiError | null
  refetch: () => void
}

interface QueryOptions {
  restMs?: number // minimum time between two fetches
  keepPrevious?: boolean // show the data of the previous key until the new data arrives
}

/** Fetches when the key changes, and again after `restMs` when `version` changes because events arrived. */
export function useQuery<T>(query: Query<T>, version?: unknown, options: QueryOptions = {}): Answer<T> {
  const { restMs = 0, keepPrevious = false } = options
  const answer = useSignal<{ key: string; data: T | null; error: ApiError | null }>({
    key: '',
    data: null,
    error: null,
  })
  const invalidation = useMemo(createInvalidation, [])
  const lastVersion = useRef(version)
  const drawn = useRef<{ data: T | null; error: ApiError | null }>({ data: null, error: null })
  const { key } = query
  // In an effect, because a prerendered page must not fetch.
  useEffect(() => {
    const stop = new AbortController()
    const policy = refreshOnInvalidate<T>(invalidation, restMs)
    void runQuery(
      query,
      policy,
      ({ data, error }) => {
        if (error === null && drawn.current.error === null && drawn.current.data === data) return
        answer.value = { key, data: data ?? readCache<T>(key), error }
      },
      stop.signal,
    )
    return () => stop.abort()
  }, [key])
  useEffect(() => {
    if (Object.is(lastVersion.current, version)) return
    lastVersion.current = version
    invalidation.invalidate()
  }, [version])
  const current = answer.value
  const cached = current.key === key ? null : readCache<T>(key)
  const previous = keepPrevious ? drawn.current.data : null
  drawn.current = current.key === key ? current : { data: cached ?? previous, error: null }
  return { ...drawn.current, refetch: invalidation.invalidate }
}

const fetchOnce = refreshWhile<unknown>(() => false, 0)

/**
 * Data that a section of Settings shows and changes: the cached answer at once, then a fetch. A change calls `refetch`,
 * or `replace` with its own answer. Null: the reader may not see the data.
 */
export function useRecords<T>(
  query: Query<T> | null,
  policy: RefreshPolicy<T> = fetchOnce as RefreshPolicy<T>,
): QueryModel<T> {
  const model = useMemo(() => createQuery<T>(policy, { keepPrevious: true }), [])
  const key = query?.key ?? null
  const started = useRef<string | null>(null)
  const start = (): void => {
    if (query === null || started.current === key) return
    started.current = key
    model.start(query)
  }
  // The first start is before the first render, which then has cached data.
  useMemo(start, [])
  useEffect(start, [key])
  useEffect(() => model.stop, [])
  return model
}

/** Calls `start` at once and when the key changes. At once is before the first render, which then has cached data. */
export function useRestart(key: ReadonlySignal<string>, start: (key: string) => void): void {
  const started = useMemo(() => {
    start(key.peek())
    return { key: key.peek() }
  }, [])
  useSignalEffect(() => {
    if (key.value === started.key) return
    started.key = key.value
    start(key.value)
  })
}
