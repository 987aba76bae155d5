/** Token buckets: a burst, then a steady rate per name, independent of clock changes. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { tokenBuckets } from './rate-limit.ts'

function createClock(startMs = 1_000_000) {
  let nowMs = startMs
  return { now: () => nowMs, move: (byMs: number) => void (nowMs += byMs) }
}

test('a burst of n, then one every window/n', () => {
  const clock = createClock()
  const buckets = tokenBuckets({ count: 3, windowMs: 60_000 }, clock)
  expect([1, 2, 3].map(() => buckets.take('a').remaining)).toEqual([2, 1, 0])
  expect(buckets.take('a')).toMatchObject({ remaining: 0, waitMs: 20_000, fullMs: 60_000 })
  expect(buckets.take('b').waitMs).toBe(0)
  clock.move(19_999)
  expect(buckets.take('a').waitMs).toBe(1)
  clock.move(1)
  expect(buckets.take('a')).toMatchObject({ waitMs: 0, remaining: 0 })
  clock.move(10 * 60_000)
  expect(buckets.take('a').remaining).toBe(2)
})

test('never allows more than n + rate * time, and never less to a sender that waits for Retry-After', () => {
  const step = fc.integer({ min: -2_000, max: 5_000 })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 50 }), fc.array(step, { maxLength: 200 }), (count, steps) => {
      const clock = createClock()
      const buckets = tokenBuckets({ count, windowMs: 10_000 }, clock)
      let passed = 0
      let forwardMs = 0
      for (const byMs of steps) {
        clock.move(byMs)
        forwardMs += Math.max(0, byMs)
        if (buckets.take('a').waitMs === 0) passed++
      }
      expect(passed).toBeLessThanOrEqual(count + (forwardMs * count) / 10_000 + 1e-6)
      const { waitMs } = buckets.take('a')
      if (waitMs === 0) return
      clock.move(waitMs)
      expect(buckets.take('a').waitMs).toBe(0)
    }),
  )
})
