/** The URL stores a range without loss, and steps and periods have correct labels. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { PeriodView } from '../api/api.ts'
import { withQuery } from '../app/router.ts'
import {
  longerRanges,
  addressOf,
  rangeParams,
  choiceOf,
  lengthName,
  periodSentence,
  rangePart,
  stepName,
} from './range.ts'
import { countsRetentionDays } from '../../db/rules/retention-days.ts'

const hourMs = 3_600_000
const period: PeriodView = {
  range: '7d',
  since: '2026-11-14T01:00:00.000Z',
  until: '2026-11-21T01:00:00.000Z',
  before: { since: '2026-11-07T01:00:00.000Z', until: '2026-11-14T01:00:00.000Z' },
  now: '2026-11-21T00:31:00.000Z',
  zone: 'UTC',
  stepHours: 1,
  edges: [],
  onTheHour: true,
  siteIds: [],
  filters: [],
  expired: 0,
  complete: true,
  sites: [],
}

test('a URL without a range means the last 7 days, all sites, compared', () => {
  const choice = choiceOf(new URLSearchParams('type=x'))
  expect(choice).toEqual({ range: '7d', since: null, until: null, siteIds: [], compare: true })
  expect(`${rangeParams(choice)}`).toBe('range=7d')
  expect(choiceOf(new URLSearchParams('range=constructor')).range).toBe('7d')
})

test('law: every choice survives the URL', () => {
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
    fc.property(
      range,
      fc.uniqueArray(site, { maxLength: 3 }),
      fc.boolean(),
      (rangeChoice, siteIds, compare) => {
        const choice = { ...rangeChoice, siteIds, compare }
        const search = withQuery('?event=a', addressOf(choice))
        expect(choiceOf(new URLSearchParams(search))).toEqual(choice)
        expect(choiceOf(new URLSearchParams(rangePart(search)))).toEqual(choice)
        expect(rangePart(search)).not.toContain('event')
      },
    ),
  )
})

test('labels of steps and periods are in the zone', () => {
  const nowMs = Date.parse(period.now)
  const formatStep = (start: number, end: number, zone = 'UTC') => stepName(start, end, zone, nowMs)
  const midnight = Date.parse('2026-11-20T00:00:00Z')
  const first = midnight + hourMs
  const evening = midnight + 18 * hourMs
  const next = midnight + 24 * hourMs
  expect(formatStep(midnight, first)).toBe('Fri 20 Nov, 00:00 to 01:00')
  expect(formatStep(evening, next)).toBe('Fri 20 Nov, 18:00 to 24:00')
  expect(formatStep(midnight, next)).toBe('Fri 20 Nov')
  expect(formatStep(midnight, first, 'Asia/Kolkata')).toBe('Fri 20 Nov, 05:30 to 06:30')
  const day = (name: string) => [Date.parse(`${name}:00Z`), Date.parse(`${name}:00Z`) + 24 * hourMs] as const
  expect(formatStep(...day('2026-11-19T18:00'), 'Asia/Kolkata')).toBe(
    'Thu 19 Nov, 23:30 to Fri 20 Nov, 23:30',
  )
  const parseMs = (text: string) => Date.parse(`${text}Z`)
  expect(formatStep(parseMs('2026-10-24T22:00'), parseMs('2026-10-25T23:00'), 'Europe/Berlin')).toBe(
    'Sun 25 Oct',
  )
  expect(formatStep(parseMs('2026-10-25T00:00'), parseMs('2026-10-25T01:00'), 'Europe/Berlin')).toBe(
    'Sun 25 Oct, 02:00 CEST to 02:00 CET',
  )
  expect(formatStep(parseMs('2026-11-15T23:00'), parseMs('2026-11-22T23:00'), 'Europe/Berlin')).toBe(
    'Mon 16 Nov to Sun 22 Nov',
  )
  expect(formatStep(parseMs('2025-02-01T00:00'), parseMs('2025-03-01T00:00'))).toBe('February 2025')
  expect(formatStep(parseMs('2025-01-01T00:00'), parseMs('2026-01-01T00:00'))).toBe(
    'January 2025 to December 2025',
  )
  expect(lengthName(period)).toBe('7 days')
  expect(lengthName({ ...period, range: 'custom', until: '2026-11-14T02:00:00.000Z' })).toBe('1 hour')
  expect(periodSentence(period, true)).toBe('Sat 14 Nov, 01:00 to now, UTC, compared with the 7 days before.')
  expect(periodSentence({ ...period, now: '2026-12-01T00:00:00.000Z' }, false)).toBe(
    'Sat 14 Nov, 01:00 to Sat 21 Nov, 01:00, UTC.',
  )
})

test('the sentence names the limits of the counts: no comparison, no older hours, no half hours', () => {
  const kept = `Counts are stored for ${countsRetentionDays} days.`
  const emptyRange = { since: period.since, until: period.since }
  const allPeriod: PeriodView = {
    ...period,
    range: 'all',
    since: '2025-05-01T00:00:00.000Z',
    before: emptyRange,
  }
  expect(periodSentence(allPeriod, true)).toBe(
    `Thu 1 May 2025, 00:00 to now, UTC. ${kept} No earlier period to compare with.`,
  )
  expect(periodSentence(allPeriod, false)).toBe(`Thu 1 May 2025, 00:00 to now, UTC. ${kept}`)
  const half: PeriodView = {
    ...period,
    zone: 'Asia/Kolkata',
    onTheHour: false,
    edges: [Date.parse(period.since)],
  }
  expect(periodSentence(half, false)).toBe(
    'Sat 14 Nov, 06:30 to now, Asia/Kolkata. Counts use UTC hours: in Asia/Kolkata, hours start at :30 ' +
      'and days at 23:30.',
  )
})

test('an empty range suggests the next longer one and all time', () => {
  const custom = { range: 'custom' as const, since: '2026-11-01T00:00:00Z', until: '2026-11-11T00:00:00Z' }
  expect(longerRanges({ ...custom, range: '24h' })).toEqual(['7d', 'all'])
  expect(longerRanges({ ...custom, range: '12m' })).toEqual(['all'])
  expect(longerRanges({ ...custom, range: 'all' })).toEqual([])
  expect(longerRanges(custom)).toEqual(['30d', 'all'])
})
