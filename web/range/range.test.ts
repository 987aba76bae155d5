/** The address says the range and gives it back; steps and periods have the right names. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { PeriodView } from '../api.ts'
import { withQuery } from '../router.ts'
import { addressOf, askedOf, choiceOf, lengthName, periodSentence, rangePart, stepName } from './range.ts'

const hourMs = 3_600_000
const period: PeriodView = {
  range: '7d',
  since: '2026-11-14T01:00:00.000Z',
  until: '2026-11-21T01:00:00.000Z',
  before: { since: '2026-11-07T01:00:00.000Z', until: '2026-11-14T01:00:00.000Z' },
  now: '2026-11-21T00:31:00.000Z',
  stepHours: 1,
  siteIds: [],
  sites: [],
}

test('an address without a range means the last 7 days, every site, compared', () => {
  const choice = choiceOf(new URLSearchParams('type=x'))
  expect(choice).toEqual({ range: '7d', since: null, until: null, siteIds: [], compare: true })
  expect(`${askedOf(choice)}`).toBe('range=7d')
  expect(choiceOf(new URLSearchParams('range=constructor')).range).toBe('7d')
})

test('every choice survives the address', () => {
  const time = fc.integer({ min: 0, max: 4e12 }).map((ms) => new Date(ms).toISOString())
  const site = fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme' })
  const range = fc.oneof(
    fc.constantFrom('24h' as const, '7d' as const, '30d' as const).map((name) => ({
      range: name,
      since: null,
      until: null,
    })),
    fc.record({ range: fc.constant(null), since: time, until: fc.oneof(time, fc.constant(null)) }),
  )
  fc.assert(
    fc.property(range, fc.uniqueArray(site, { maxLength: 3 }), fc.boolean(), (of, siteIds, compare) => {
      const choice = { ...of, siteIds, compare }
      const search = withQuery('?event=a', addressOf(choice))
      expect(choiceOf(new URLSearchParams(search))).toEqual(choice)
      expect(choiceOf(new URLSearchParams(rangePart(search)))).toEqual(choice)
      expect(rangePart(search)).not.toContain('event')
    }),
  )
})

test('names of steps and periods are in UTC', () => {
  const midnight = Date.parse('2026-11-20T00:00:00Z')
  expect(stepName(midnight, hourMs)).toBe('Fri 20 Nov, 00:00 to 01:00')
  expect(stepName(midnight + 18 * hourMs, 6 * hourMs)).toBe('Fri 20 Nov, 18:00 to 24:00')
  expect(stepName(midnight, 24 * hourMs)).toBe('Fri 20 Nov')
  expect(lengthName(period)).toBe('7 days')
  expect(lengthName({ ...period, range: 'custom', until: '2026-11-14T02:00:00.000Z' })).toBe('1 hour')
  expect(periodSentence(period, true)).toBe(
    'Sat 14 Nov, 01:00 to now, UTC, compared with the same hours 7 days earlier.',
  )
  expect(periodSentence({ ...period, now: '2026-12-01T00:00:00.000Z' }, false)).toBe(
    'Sat 14 Nov, 01:00 to Sat 21 Nov, 01:00, UTC.',
  )
})
