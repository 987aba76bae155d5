/** Example times move to the current hour and keep their distance from each other. */
import { expect, test } from 'bun:test'
import { withCurrentTimes } from './operation-model.ts'

const now = Date.UTC(2027, 1, 3, 9, 47, 12)

test('times and dates move to the current hour in every notation that the examples use', () => {
  const text = (time: string) => withCurrentTimes(`"at":"${time}",`, now).slice(6, -2)
  expect(text('2026-06-23T12:00:00Z')).toBe('2027-02-03T09:00:00Z')
  expect(text('2026-06-23T12:41:00.000Z')).toBe('2027-02-03T09:41:00.000Z')
  expect(text('2026-06-23T11%3A59%3A12.000Z')).toBe('2027-02-03T08%3A59%3A12.000Z')
  expect(text('2026-06-23')).toBe('2027-02-02')
  expect(text('2026-06-01')).toBe('2027-01-11')
})

test('other times do not change', () => {
  for (const text of ['2026-01-31', '2025-06-23T12:00:00Z', '2026-06-233', '12026-06-23', 'evt_2026'])
    expect(withCurrentTimes(text, now)).toBe(text)
})
