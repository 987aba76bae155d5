/** Queries in components: one for a panel or dialog, and one for pushed data of the selected sites. */
import { type ReadonlySignal, useComputed, useSignal, useSignalEffect } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { ApiError } from '../api/api.ts'
import { query as address } from '../app/router.ts'
import { choiceOf } from '../range/range.ts'
import { createQuery, type Query, type QueryModel, readCache, runQuery } from './query.ts'
import { createInvalidation, type Pushed, refreshOnInvalidate, refreshPushed } from './refresh.ts'

export interface Answer<T> {
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
    ...{ key: '', data: null, error: null },
  })
  const invalidation = useMemo(createInvalidation, [])
  const seen = useRef(version)
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
    if (Object.is(seen.current, version)) return
    seen.current = version
    invalidation.invalidate()
  }, [version])
  const current = answer.value
  const cached = current.key === key ? null : readCache<T>(key)
  const previous = keepPrevious ? drawn.current.data : null
  drawn.current = current.key === key ? current : { data: cached ?? previous, error: null }
  return { ...drawn.current, refetch: invalidation.invalidate }
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

/** Pushed data of the selected sites. `moved` changes when related events arrive. */
export function usePushed<T>(
  of: (siteIds: string[]) => Query<Pushed<T>>,
  moved: ReadonlySignal<unknown>,
  freshMs = 5_000,
): QueryModel<Pushed<T>> {
  const siteIds = useComputed(() => JSON.stringify(choiceOf(address.value).siteIds))
  const invalidation = useMemo(createInvalidation, [])
  const model = useMemo(
    () => createQuery(refreshPushed<T>(invalidation, freshMs), { keepPrevious: false }),
    [],
  )
  useRestart(siteIds, (text) => model.start(of(JSON.parse(text) as string[])))
  useSignalEffect(() => {
    void moved.value
    invalidation.invalidate()
  })
  useEffect(() => {
    window.addEventListener('focus', invalidation.invalidate)
    return () => {
      window.removeEventListener('focus', invalidation.invalidate)
      model.stop()
    }
  }, [])
  return model
}
