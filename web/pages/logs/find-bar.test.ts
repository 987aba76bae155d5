/** An empty result suggests longer time ranges only. */
import { expect, test } from 'bun:test'
import { longerTimes, sinceEver, sinceOf } from './find-bar.tsx'

const names = (since: string | null, until: string | null = null, hasText = false) =>
  longerTimes(since, until, hasText).map(({ name }) => name)

test('suggests the next two longer ranges and all time; nothing without a start', () => {
  expect(names(sinceOf(1))).toEqual(['Last 24 hours', 'Last 7 days', 'Any time'])
  expect(names(sinceOf(24 * 30))).toEqual(['Last 90 days', 'Any time'])
  expect(names('2020-01-01')).toEqual(['Any time'])
  expect(names(null)).toEqual([])
  expect(names(null, '2026-01-01')).toEqual(['Last hour', 'Last 24 hours', 'Any time'])
})

test('suggestions for a search have a start, and none remain after all time', () => {
  expect(longerTimes(sinceOf(24 * 90), null, true)).toEqual([{ name: 'Any time', since: [sinceEver] }])
  expect(longerTimes(sinceOf(24 * 90), null, false)).toEqual([{ name: 'Any time', since: [] }])
  expect(names(sinceEver, null, true)).toEqual([])
})
