/** Explore in the URL, and its answer as series and cells. */
import { expect, test } from 'bun:test'
import type { ExploreAnswer } from '../../api/api.ts'
import { viewPath } from '../../app/saved-views.ts'
import { viewSearch as logsSearch } from '../logs/filter.ts'
import {
  explorationOf,
  leftOut,
  metadataPaths,
  requestOf,
  rowsOf,
  seriesOf,
  shownView,
  stepCells,
  viewSearch,
} from './explore-model.ts'

const exploration = (search: string) => explorationOf(new URLSearchParams(search))
const numbers = (...steps: (number | null)[]) => ({
  events: 1,
  total: steps.reduce<number>((sum, step) => sum + (step ?? 0), 0),
  steps,
  error: 0,
})
const answer: ExploreAnswer = {
  measure: 'events',
  by: 'vendor',
  zone: 'UTC',
  edges: [],
  truncated: false,
  expired: 0,
  rows: Array.from({ length: 14 }, (_, n) => ({ value: `v${n}`, ...numbers(n, 1) })),
  missing: numbers(5, 0),
  other: { values: 1_200, ...numbers(7, 8) },
  all: numbers(103, 22),
}

test('unknown values in a link become the defaults, and what cannot be stacked is drawn as lines', () => {
  expect(exploration('?measure=money&by=toString&view=pie&rows=7')).toEqual(exploration(''))
  expect(exploration('?by=')).toMatchObject({ by: '' })
  expect(exploration('?by=metadata.a.b&measure=p95')).toMatchObject({ by: 'metadata.a.b', measure: 'p95' })
  expect([shownView(exploration('?measure=bytes')), shownView(exploration('?measure=sessions'))]).toEqual([
    'bars',
    'lines',
  ])
  expect(`${requestOf(new URLSearchParams('?by=&view=table&range=30d&filter=type:a.*&q=x'), 'UTC')}`).toBe(
    'range=30d&measure=events&rows=10&filter=type%3Aa.*&q=x',
  )
})

test('a saved view is whole, and its page is known by its measure', () => {
  const search = viewSearch('?by=metadata.plan&filter=type:tool.*&range=90d&event=e1&q=a%20b')
  expect(search).toBe(
    '?measure=events&by=metadata.plan&view=bars&rows=10&filter=type%3Atool.*&q=a+b&range=90d',
  )
  expect(viewSearch(search)).toBe(search)
  expect(viewPath({ search })).toBe('/analytics/explore')
  expect(viewPath({ search: logsSearch('?type=tool.*&measure=events') })).toBe('/logs')
})

test('a chart has at most eight values, and one of sums has the rest, too', () => {
  const series = seriesOf(answer)
  expect(series.map(({ name }) => name).slice(-3)).toEqual(['v7', '(no vendor)', '(1,206 others)'])
  expect(leftOut(answer)).toBe(null)
  const sums = [0, 1].map((step) => series.reduce((sum, { counts }) => sum + counts[step]!, 0))
  expect(sums).toEqual([103, 22])
  const sessions = { ...answer, measure: 'sessions' as const }
  expect(
    seriesOf(sessions)
      .map(({ name }) => name)
      .slice(-2),
  ).toEqual(['v7', '(no vendor)'])
  expect(leftOut(sessions)).toBe('8 of 14 values, all in the table')
  expect(rowsOf({ ...answer, by: null }).map(({ name, value }) => [name, value])).toEqual([['Events', null]])
  const gap = seriesOf({
    ...answer,
    measure: 'p95',
    rows: [{ value: 'a', ...numbers(null, 3) }],
    missing: null,
    other: null,
  })
  expect(stepCells(gap, [0, 1, 2], (ms) => `t${ms}`)).toEqual([
    ['t0', ''],
    ['t1', 3],
  ])
})

test('suggested paths are the members of the events, most frequent first', () => {
  const events = [{ metadata: { plan: 'a', cart: { items: 1, list: [1] } } }, { metadata: { plan: 'b' } }, {}]
  expect(metadataPaths(events)).toEqual(['plan', 'cart.items', 'cart.list'])
})
