/** Queries that follow the URL: pushed data of the selected sites, and counts of its range with live events. */
import { useComputed, useSignalEffect, type ReadonlySignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { navigate, place, withQuery, query as address } from '../app/router.ts'
import {
  addressOf,
  choiceOf,
  lastRange,
  nextPageParams,
  rangeParams,
  rangePart,
  rememberRange,
} from './range.ts'
import { canFilter } from './filters.tsx'
import {
  createInvalidation,
  createQuery,
  prefetchQuery,
  refreshOnEvents,
  refreshPushed,
  type Pushed,
  type Query,
  type QueryModel,
} from '../query/query.ts'
import { useRestart } from '../query/use-query.ts'
import { api, type PageCounts, type Totals } from '../api/api.ts'
import { totals } from '../app/session.ts'
import type { LiveState } from '../live/live.ts'

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
