/** Date fields use the clocks of the zone, also on days when clocks change. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { dayOf, dayStart, localMoment } from './clock.ts'

const zone = fc.constantFrom('UTC', 'Europe/Berlin', 'America/St_Johns', 'Asia/Kathmandu', 'America/Havana')
const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString().slice(0, 16))

test('days of a field start at midnight in the zone and end where the next one starts', () => {
  expect(iso(dayStart('2026-10-25', 0, 'Europe/Berlin'))).toBe('2026-10-24T22:00')
  expect(iso(dayStart('2026-10-25', 1, 'Europe/Berlin'))).toBe('2026-10-25T23:00')
  expect(iso(dayStart('2026-11-22', 0, 'Asia/Kathmandu'))).toBe('2026-11-21T18:15')
  for (const wrong of ['', 'tomorrow', '2026-13-01', '2026-1-1']) expect(dayStart(wrong)).toBeNull()
})

test('law: every moment is between the start of its day and the start of the next', () => {
  fc.assert(
    fc.property(zone, fc.integer({ min: 0, max: Date.UTC(2200, 0) }), (name, ms) => {
      const day = dayOf(ms, name)
      expect(dayStart(day, 0, name)!).toBeLessThanOrEqual(ms)
      expect(dayStart(day, 1, name)!).toBeGreaterThan(ms)
    }),
    { numRuns: 500 },
  )
})

test('a time of day is in the zone', () => {
  expect(iso(localMoment('2026-11-22T09:30', 'America/St_Johns'))).toBe('2026-11-22T13:00')
  expect(localMoment('9:30', 'UTC')).toBeNull()
})
