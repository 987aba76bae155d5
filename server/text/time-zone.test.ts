/** Zones with whole, half and quarter hours, with and without summer time: moments, wall times, days, months. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  edgesOf,
  exactEdgesOf,
  isZone,
  momentOf,
  moved,
  offsetAt,
  perStep,
  startOf,
  type Step,
  steps,
  wallOf,
} from './time-zone.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
const zone = fc.constantFrom(
  'UTC',
  'Europe/Berlin',
  'America/St_Johns',
  'Asia/Kathmandu',
  'Asia/Kolkata',
  'America/New_York',
  'Australia/Lord_Howe',
  'Pacific/Chatham',
  'America/Havana',
  'Pacific/Apia',
  'Africa/Casablanca',
)
const moment = fc.integer({ min: Date.UTC(1970, 0, 3), max: Date.UTC(2200, 0) })
const step = fc.constantFrom(...(Object.keys(steps) as Step[]))
const text = (ms: number) => new Date(ms).toISOString().slice(0, 16)

test('recognizes names of time zones and nothing else', () => {
  for (const name of ['UTC', 'Europe/Berlin', 'Asia/Calcutta']) expect(isZone(name)).toBe(true)
  for (const name of ['', 'Europe/Atlantis', '../etc', 'x'.repeat(10_000)]) expect(isZone(name)).toBe(false)
})

test('a wall time converts back to its moment, or to the first of two', () => {
  fc.assert(
    fc.property(zone, moment, (name, ms) => {
      const back = momentOf(wallOf(ms, name), name)
      expect(wallOf(back, name)).toBe(wallOf(ms, name))
      expect(back).toBeLessThanOrEqual(ms)
      expect(ms - back).toBeLessThanOrEqual(2 * hourMs)
    }),
    { numRuns: 500 },
  )
})

test('a skipped wall time is the moment after the gap; a repeated one is the first of the two', () => {
  const momentText = (wall: string, name: string) => text(momentOf(Date.parse(`${wall}Z`), name))
  expect(momentText('2026-03-29T02:30', 'Europe/Berlin')).toBe('2026-03-29T01:30')
  expect(momentText('2026-10-25T02:30', 'Europe/Berlin')).toBe('2026-10-25T00:30')
  expect(momentText('2026-11-01T01:30', 'America/St_Johns')).toBe('2026-11-01T04:00')
  expect(momentText('2011-12-30T00:00', 'Pacific/Apia')).toBe('2011-12-30T10:00')
  expect(offsetAt(Date.UTC(2026, 6), 'Asia/Kathmandu')).toBe(5.75 * hourMs)
})

test('steps cover a range without gaps or overlaps', () => {
  fc.assert(
    fc.property(zone, moment, fc.integer({ min: 1, max: 60 }), step, (name, ms, days, stepSize) => {
      const since = Math.floor(ms / hourMs) * hourMs
      const until = since + days * dayMs
      const { edges } = edgesOf(since, until, stepSize, name)
      expect(edges[0]).toBeLessThanOrEqual(since)
      expect(edges[1]).toBeGreaterThan(since)
      expect(edges.at(-1)).toBeGreaterThanOrEqual(until)
      expect(edges.at(-2)).toBeLessThan(until)
      expect(
        edges.every((edge, index) => edge % hourMs === 0 && (index === 0 || edge > edges[index - 1]!)),
      ).toBe(true)
    }),
    { numRuns: 300 },
  )
})

test('exact steps begin at full hours and midnights of any zone, and are the rounded ones where those are on the hour', () => {
  fc.assert(
    fc.property(zone, moment, fc.integer({ min: 1, max: 60 }), step, (name, ms, days, stepSize) => {
      const until = ms + days * dayMs
      const edges = exactEdgesOf(ms, until, stepSize, name)
      expect(edges[0]).toBeLessThanOrEqual(ms)
      expect(edges.at(-1)).toBeGreaterThanOrEqual(until)
      expect(edges.at(-2)).toBeLessThan(until)
      expect(edges.every((edge, index) => index === 0 || edge > edges[index - 1]!)).toBe(true)
      if (stepSize === 'hour') expect(edges.every((edge) => (edge - edges[0]!) % hourMs === 0)).toBe(true)
      // A step that clocks skip begins after the gap.
      else for (const edge of edges) expect(edge).toBe(momentOf(startOf(wallOf(edge, name), stepSize), name))
      const rounded = edgesOf(ms, until, stepSize, name)
      if (rounded.onTheHour && stepSize !== 'hour') expect(edges).toEqual(rounded.edges)
    }),
    { numRuns: 300 },
  )
})

/** Until 2011 clocks of St John's went back at 00:01, and a minute of the new date came before the old one ended. */
const sinceMidnightsAreOnce = fc.integer({ min: Date.UTC(2012, 0), max: Date.UTC(2200, 0) })

test('on the hour, every moment of a day step has the date of its start', () => {
  fc.assert(
    fc.property(zone, sinceMidnightsAreOnce, fc.nat(1_000), (name, ms, part) => {
      const { edges, onTheHour } = edgesOf(ms, ms + 40 * dayMs, 'day', name)
      for (const [index, edge] of edges.slice(0, -1).entries()) {
        const inside = edge + Math.floor(((edges[index + 1]! - edge - 1) * part) / 1_000)
        const date = (timeMs: number) => text(wallOf(timeMs, name)).slice(0, 10)
        // Cut down to the UTC hour, a day begins less than an hour before its midnight.
        if (onTheHour) expect(date(inside)).toBe(date(edge))
        else
          expect(date(Math.min(edges[index + 1]! - hourMs, inside) + hourMs - 1)).toBe(
            date(edge + hourMs - 1),
          )
      }
    }),
    { numRuns: 60 },
  )
})

test('the step of a chart has a name, whatever its ends and the change of clocks', () => {
  const hours = (...lengths: number[]) =>
    lengths.reduce((edges, hourCount) => [...edges, edges.at(-1)! + hourCount * hourMs], [0])
  expect(perStep(hours(1, 3, 3, 4, 3, 2))).toBe('per 3 hours')
  expect(perStep(hours(1))).toBe('per hour')
  expect(perStep(hours(5, 25, 24, 24))).toBe('per day')
  expect(perStep(hours(10, 168, 167, 168))).toBe('per week')
  expect(perStep(hours(31 * 24, 28 * 24, 31 * 24, 30 * 24))).toBe('per month')
  expect(perStep(hours(365 * 24, 366 * 24))).toBe('per year')
  expect(perStep([0, 300_000, 600_000])).toBe('per 5 minutes')
  expect(perStep([0, 1_000, 2_000])).toBe('per second')
  expect(perStep([0])).toBe('per hour')
})

test('months and years keep the day where it exists', () => {
  const movedText = (wall: string, stepSize: Step, times: number) =>
    text(moved(Date.parse(`${wall}Z`), stepSize, times))
  expect(movedText('2026-11-22T15:00', 'month', -12)).toBe('2025-11-22T15:00')
  expect(movedText('2024-03-31T01:00', 'month', -1)).toBe('2024-02-29T01:00')
  expect(movedText('2026-12-31T00:00', 'month', 2)).toBe('2027-02-28T00:00')
  expect(movedText('2024-02-29T00:00', 'year', 1)).toBe('2025-02-28T00:00')
  expect(text(startOf(Date.parse('2026-11-22T15:00Z'), 'week'))).toBe('2026-11-16T00:00')
  expect(text(startOf(Date.parse('2026-11-22T15:00Z'), 'month'))).toBe('2026-11-01T00:00')
})
