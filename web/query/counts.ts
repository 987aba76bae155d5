/** Counts of pages and panels: their queries, and the page of counts that follows the URL and the live stream. */
import { type ReadonlySignal, useComputed, useSignalEffect } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { api, type PageCounts, type Totals } from '../api/api.ts'
import { navigate, place, query, withQuery } from '../app/router.ts'
import type { LiveState } from '../live/live.ts'
import { lastRange, nextPageParams, rememberRange } from '../range/choose-range.ts'
import { canFilter } from '../range/filters.tsx'
import { addressOf, choiceOf, rangeParams, rangePart } from '../range/range.ts'
import { refreshTotals } from '../range/totals.ts'
import { totals } from '../app/session.ts'
import { createQuery, prefetchQuery, type Query, type QueryModel } from './query.ts'
import { refreshOnEvents } from './refresh.ts'
import { useRestart } from './use-query.ts'

type Page = keyof PageCounts

/** The parameters of the current URL, filters included. */
export function pageParams(): URLSearchParams {
  const params = rangeParams(choiceOf(query.value))
  for (const filter of canFilter() ? query.value.getAll('filter') : []) params.append('filter', filter)
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
function useSameRange(path: string): void {
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
    else totals.value = { period: counted.period, totals: counted.totals }
  })
  useEffect(() => () => model.stop(), [])
  return model
}
