/** The histogram's steps hold every event of its span once, whichever way they are counted. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { spanOf } from './histogram.ts'

const hourMs = 3_600_000
const now = Date.parse('2026-11-21T01:20:30.400Z')

test('the span covers what was asked for, in whole steps of a fit length', () => {
  const time = fc.integer({ min: 0, max: now })
  fc.assert(
    fc.property(time, fc.integer({ min: 1, max: 500 * 24 * hourMs }), (sinceMs, lengthMs) => {
      const span = spanOf({ sinceMs, untilMs: sinceMs + lengthMs }, now)
      expect(span.sinceMs).toBeLessThanOrEqual(sinceMs)
      expect(span.untilMs).toBeGreaterThanOrEqual(sinceMs + lengthMs)
      expect((span.untilMs - span.sinceMs) % span.stepMs).toBe(0)
      expect((span.untilMs - span.sinceMs) / span.stepMs).toBeLessThanOrEqual(98)
    }),
  )
})

test('without a time it is the last day, the running quarter of an hour included', () => {
  const span = spanOf({}, now)
  expect(span.untilMs - span.sinceMs).toBeLessThanOrEqual(25 * hourMs)
  expect(span.untilMs).toBeGreaterThan(now)
  expect(span.stepMs).toBe(15 * 60_000)
  expect(spanOf({}, now, hourMs).stepMs).toBe(hourMs)
})
