/** A range and its form fields convert into each other without loss. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { fieldsOf, rangeOf } from './range-bar.tsx'

const zone = fc.constantFrom('UTC', 'Europe/Berlin', 'America/St_Johns', 'Asia/Kathmandu')
const iso = (range: ReturnType<typeof rangeOf>) =>
  typeof range === 'string' ? range : [range.sinceMs, range.untilMs].map((ms) => new Date(ms).toISOString())

test('days are whole even when clocks change, and each time is optional', () => {
  const days = { fromDay: '2026-10-25', fromTime: '', toDay: '2026-10-25', toTime: '' }
  expect(iso(rangeOf(days, 'Europe/Berlin'))).toEqual([
    '2026-10-24T22:00:00.000Z',
    '2026-10-25T23:00:00.000Z',
  ])
  expect(iso(rangeOf({ ...days, fromTime: '12:30' }, 'Asia/Kathmandu'))).toEqual([
    '2026-10-25T06:45:00.000Z',
    '2026-10-25T18:15:00.000Z',
  ])
  expect(rangeOf({ ...days, toDay: '2026-10-24' }, 'UTC')).toBe('The end must be after the start.')
  expect(rangeOf({ ...days, fromTime: '12:00', toTime: '12:00' }, 'UTC')).toBe(
    'The end must be after the start.',
  )
  for (const wrong of ['', '2026-13-01', 'x']) {
    expect(rangeOf({ ...days, fromDay: wrong }, 'UTC')).toBe('Enter a start and an end date.')
  }
})

test('law: every range of whole minutes survives its fields, except in the repeated hour', () => {
  const minute = fc.integer({ min: 0, max: 60 * 24 * 365 * 60 })
  fc.assert(
    fc.property(zone, minute, fc.integer({ min: 1, max: 1_000_000 }), (name, start, length) => {
      const sinceMs = start * 60_000
      const untilMs = sinceMs + length * 60_000
      const again = rangeOf(fieldsOf(sinceMs, untilMs, name), name)
      if (typeof again === 'string') throw new Error(again)
      for (const [ms, back] of [
        [sinceMs, again.sinceMs],
        [untilMs, again.untilMs],
      ] as const)
        expect([0, 3_600_000]).toContain(ms - back)
    }),
    { numRuns: 300 },
  )
})
