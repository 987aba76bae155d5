/** Laws of the relay's rate: never more than the bucket and its refill, and a wait that is really enough. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createRate } from './receive-events.ts'

test('law: in any minute pass at most a full bucket and a minute’s refill', () => {
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
          .filter((each) => each.ms > ms - 60_000)
          .reduce((sum, each) => sum + each.count, 0)
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

test('more than a bucket never passes, and many addresses are forgotten, oldest first', () => {
  const rate = createRate(10, () => 0)
  expect(rate.take('a', 11)).toBeGreaterThanOrEqual(0)
  expect(rate.take('b', 10)).toBe(0)
  expect(rate.take('b', 1)).toBeGreaterThan(0)
  for (let index = 0; index < 10_000; index++) rate.take(`n${index}`, 1)
  expect(rate.take('b', 10)).toBe(0) // forgotten, so it starts anew
})
