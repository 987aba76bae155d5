/** Binds a page to the counts of its range: follows the address, and takes the range along to other pages. */
import { useComputed, useSignalEffect } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { api, type PageCounts, type Totals } from '../api/api.ts'
import { isoTime } from '../app/clock.ts'
import { navigate, place, withQuery } from '../app/router.ts'
import { useStart } from './use-start.ts'
import { askAhead, recall, remember } from './query-cache.ts'
import { type CountsModel, createCounts } from './counts-model.ts'
import { askedNext, lastRange, rememberRange } from '../range/last-range.ts'
import { askedHere, countsOf } from './queries.ts'
import { addressOf, choiceOf, type RangeChoice, rangePart } from '../range/range.ts'
import { refreshTotals, totals } from '../range/totals.ts'

/** Changes the range, the site or the comparison; every change is a place to come back to. */
export function chooseRange(change: Partial<RangeChoice>): void {
  const here = place.peek()
  const choice = { ...choiceOf(new URLSearchParams(here.search)), ...change }
  navigate(here.path + withQuery(here.search, addressOf(choice)))
}

/** A range dragged in a chart or chosen by keys. */
export function chooseTimes(sinceMs: number, untilMs: number): void {
  chooseRange({ range: null, since: isoTime(sinceMs), until: isoTime(untilMs) })
}

/** The range goes along from page to page: a page opened without one takes that of the page before. */
function useSameRange(path: string): void {
  useMemo(() => {
    const here = place.peek()
    if (rangePart(here.search) !== '' || lastRange() === '') return
    const part = choiceOf(new URLSearchParams(lastRange()))
    navigate(here.path + withQuery(here.search, addressOf(part)), { replace: true })
  }, [])
  useSignalEffect(() => {
    // On the way to another page the address is that page's already, and may have no range yet.
    if (place.value.path === path) rememberRange(rangePart(place.value.search))
  })
}

type Page = keyof PageCounts

/** Pages whose answers hold the totals of their range. */
type CountedPage = { [P in Page]: PageCounts[P] extends Totals ? P : never }[Page]

/** The counts of such a page. */
export function countAhead<P extends Page>(page: P): Promise<PageCounts[P]> {
  return askAhead(countsOf(page, askedNext()))
}

/** `types` are the events whose arrival changes the page; [] means every event. */
export function useCounts<P extends CountedPage>(page: P, types: string[]): CountsModel<PageCounts[P]> {
  // The address at first: a page is drawn again while the reader is on the way to another one.
  const path = useMemo(() => place.peek().path, [])
  useSameRange(path)
  const model = useMemo(
    () =>
      createCounts<PageCounts[P]>(
        {
          counts: (params, signal) => api.counts(page, params, signal),
          newest: (filter, signal) => api.events(filter, { limit: 1 }, signal),
          live: api.live,
          recall: (params) => recall<PageCounts[P]>(`${page}?${params}`),
          remember: (params, counted) => remember(`${page}?${params}`, counted),
        },
        types,
      ),
    [],
  )
  const asked = useComputed(() => `${askedHere()}`)
  useStart(asked, (params) => {
    if (place.peek().path === path) model.start(new URLSearchParams(params))
  })
  useSignalEffect(() => {
    const counted = model.data.value
    // The navigation counts the range, whatever the page is filtered by.
    if (counted === null) return
    if (counted.period.filters.length > 0) void refreshTotals()
    else totals.value = { period: counted.period, totals: counted.totals }
  })
  useEffect(() => () => model.stop(), [])
  return model
}
