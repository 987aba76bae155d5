/** Queries in components: of a panel or dialog, of pushed data, and of counts that follow the URL and live events. */
import { useComputed, useSignal, useSignalEffect, type ReadonlySignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { navigate, place, query as address, withQuery } from '../app/router.ts'
import {
  addressOf,
  choiceOf,
  lastRange,
  nextPageParams,
  rangeParams,
  rangePart,
  rememberRange,
} from '../range/range.ts'
import {
  createInvalidation,
  createQuery,
  prefetchQuery,
  readCache,
  refreshOnEvents,
  refreshOnInvalidate,
  refreshPushed,
  refreshWhile,
  runQuery,
  type Pushed,
  type Query,
  type QueryModel,
  type RefreshPolicy,
} from './query.ts'
import { api, type ApiError, type PageCounts, type Totals } from '../api/api.ts'
import { canFilter } from '../range/filters.tsx'
import { totals } from '../app/session.ts'
import type { LiveState } from '../live/live.ts'

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

type Page = keyof PageCounts

/** The parameters of the current URL, filters included. */
export function pageParams(): URLSearchParams {
  const params = rangeParams(choiceOf(address.value))
  for (const filter of canFilter() ? address.value.getAll('filter') : []) params.append('filter', filter)
  return params
}

/** Counts of a page or panel, by default of the current URL. */
export function countsQuery<P extends Page>(
  page: P,
  params: URLSearchParams = pageParams(),
): Query<PageCounts[P]> {
  return { key: `${page}?${params}`, fetch: (signal) => api.counts(page, params, signal) }
}

/** The counts with all rows of their tables, for a CSV file. */
export function fetchAllRows<P extends Page>(page: P, signal: AbortSignal): Promise<PageCounts[P]> {
  const params = pageParams()
  params.set('rows', 'all')
  return api.counts(page, params, signal)
}

/** Prefetches the counts that a page needs first. */
export function prefetchCounts<P extends Page>(page: P): Promise<PageCounts[P]> {
  return prefetchQuery(countsQuery(page, nextPageParams()))
}

/** A page opened without a range gets the range of the previous page. */
export function useSameRange(path: string): void {
  useMemo(() => {
    const here = place.peek()
    if (rangePart(here.search) !== '' || lastRange() === '') return
    const part = choiceOf(new URLSearchParams(lastRange()))
    navigate(here.path + withQuery(here.search, addressOf(part)), { replace: true })
  }, [])
  useSignalEffect(() => {
    // While another page loads, the URL already belongs to it and may have no range yet.
    if (place.value.path === path) rememberRange(rangePart(place.value.search))
  })
}

/** Pages whose responses contain the totals of their range. */
type CountedPage = { [P in Page]: PageCounts[P] extends Totals ? P : never }[Page]

export interface CountsModel<T> extends QueryModel<T> {
  connection: ReadonlySignal<LiveState>
}

/** A query that is fetched again when events arrive. `types` limits them; [] means all events. */
export function createLiveQuery<T>(
  types: string[],
  where?: { name: string; value: string }[],
): CountsModel<T> {
  const policy = refreshOnEvents<T>(
    { newest: (filter, signal) => api.events(filter, { limit: 1 }, signal), live: api.live },
    { types, outcomes: [], ...(where && { where }) },
  )
  return { ...createQuery<T>(policy, { keepPrevious: true }), connection: policy.connection }
}

/** The counts of a page. They follow its URL and provide the totals of the navigation. */
export function useCounts<P extends CountedPage>(page: P, types: string[]): CountsModel<PageCounts[P]> {
  // The initial path: the page may render again while the next one loads.
  const path = useMemo(() => place.peek().path, [])
  useSameRange(path)
  const model = useMemo(() => createLiveQuery<PageCounts[P]>(types), [])
  const params = useComputed(() => `${pageParams()}`)
  useRestart(params, (text) => {
    if (place.peek().path === path) model.start(countsQuery(page, new URLSearchParams(text)))
  })
  useSignalEffect(() => {
    const counted = model.data.value
    if (counted === null) return
    // The navigation counts the range regardless of the page's filters.
    if (counted.period.filters.length > 0) void refreshTotals()
    else totals.value = { period: counted.period, totals: counted.totals, unit: counted.unit }
  })
  useEffect(() => () => model.stop(), [])
  return model
}

/** Fetches the totals of the navigation. Ignores errors, because old counts are better than none. */
export async function refreshTotals(): Promise<void> {
  const params = `${nextPageParams()}`
  try {
    const found = await api.totals(new URLSearchParams(params))
    if (params === `${nextPageParams()}`) totals.value = found
  } catch {
    // The open page shows its own errors.
  }
}
