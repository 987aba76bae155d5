/** The histogram's steps contain every event of its range once, however they are counted. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { spanOf } from './histogram.ts'

const hourMs = 3_600_000
const now = Date.parse('2026-11-21T01:20:30.400Z')

test('the steps cover exactly the range in every zone', () => {
  const time = fc.integer({ min: 0, max: now })
  const zone = fc.constantFrom('UTC', 'Europe/Berlin', 'America/St_Johns', 'Asia/Kathmandu')
  fc.assert(
    fc.property(time, fc.integer({ min: 1, max: 9_000 * 24 * hourMs }), zone, (sinceMs, lengthMs, name) => {
      const { edges } = spanOf({ sinceMs, untilMs: sinceMs + lengthMs }, now, name)
      expect(edges[0]).toBe(sinceMs)
      expect(edges.at(-1)).toBe(sinceMs + lengthMs)
      expect(edges.every((ms, index) => index === 0 || ms > edges[index - 1]!)).toBe(true)
      expect(edges.length).toBeLessThanOrEqual(104)
    }),
  )
})

test('the default range is the last 24 hours, from the start of the running hour back, and the running step', () => {
  const { edges, stepMs } = spanOf({}, now, 'UTC')
  const untilMs = edges.at(-1)!
  expect(edges[0]).toBe(Date.parse('2026-11-20T01:00:00Z'))
  expect(untilMs).toBeGreaterThan(now)
  expect(untilMs - now).toBeLessThanOrEqual(stepMs)
  expect(stepMs).toBe(15 * 60_000)
  expect(spanOf({}, now, 'UTC', hourMs).stepMs).toBe(hourMs)
})

test('daily bars are days of the zone, but for the first and the last one', () => {
  const span = { sinceMs: now - 90 * 24 * hourMs, untilMs: now }
  const starts = (zone: string) =>
    spanOf(span, now, zone)
      .edges.slice(1, -1)
      .map((ms) => new Date(ms).getUTCHours())
  expect(new Set(starts('UTC'))).toEqual(new Set([0]))
  expect(new Set(starts('Europe/Berlin'))).toEqual(new Set([22, 23])) // summer and winter
})
