/** The rate limit of the relay: never more than a bucket and its refill, and a correct Retry-After. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createRate } from './receive-events.ts'

test('law: at most a full bucket and a minute’s refill pass per minute', () => {
  const step = fc.record({ waitMs: fc.nat(20_000), count: fc.integer({ min: 1, max: 30 }) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let ms = 0
      const rate = createRate(60, () => ms)
      const passed: { ms: number; count: number }[] = []
      for (const { waitMs, count } of steps) {
        ms += waitMs
        const waitSeconds = rate.take('a', count)
        if (waitSeconds === 0) passed.push({ ms, count })
        const window = passed
          .filter((arrival) => arrival.ms > ms - 60_000)
          .reduce((sum, arrival) => sum + arrival.count, 0)
        expect(window).toBeLessThanOrEqual(120)
        if (waitSeconds > 0) {
          ms += waitSeconds * 1_000
          expect(rate.take('a', count)).toBe(0)
          passed.push({ ms, count })
        }
      }
    }),
  )
})

test('more than a bucket never passes; the least recent addresses are dropped first', () => {
  const rate = createRate(10, () => 0)
  expect(rate.take('a', 11)).toBeGreaterThanOrEqual(0)
  expect(rate.take('b', 10)).toBe(0)
  expect(rate.take('b', 1)).toBeGreaterThan(0)
  for (let index = 0; index < 10_000; index++) rate.take(`n${index}`, 1)
  expect(rate.take('b', 10)).toBe(0) // forgotten, so it starts anew
})
