/** What pages ask the server: a text that names all of it, and how it is asked. */
import { api, type PageCounts } from '../api/api.ts'
import { query } from '../app/router.ts'
import { canFilter } from '../range/filters.ts'
import { askedOf, choiceOf } from '../range/range.ts'

export interface Question<T> {
  text: string // the same text is the same question: its last answer may stand for the next one
  ask: (signal: AbortSignal) => Promise<T>
}

/** What the address asks for, filters included. */
export function askedHere(): URLSearchParams {
  const params = askedOf(choiceOf(query.value))
  for (const filter of canFilter() ? query.value.getAll('filter') : []) params.append('filter', filter)
  return params
}

/** A page's counts of the address with every row of its tables, for a CSV file. */
export function wholeCounts<P extends keyof PageCounts>(
  page: P,
  signal: AbortSignal,
): Promise<PageCounts[P]> {
  const params = askedHere()
  params.set('rows', 'all')
  return api.counts(page, params, signal)
}

/** Counts of a page or panel; those of the address by default. */
export function countsOf<P extends keyof PageCounts>(
  page: P,
  params: URLSearchParams = askedHere(),
): Question<PageCounts[P]> {
  return { text: `${page}?${params}`, ask: (signal) => api.counts(page, params, signal) }
}
