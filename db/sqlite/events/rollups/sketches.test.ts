/** Quantiles from buckets against exact ones: never off by more than 2 % or 0.01 ms. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { bucketOf, bucketsMax, leastMs, quantile, relativeError } from './sketches.ts'

function countsOf(durations: number[]): Map<number, number> {
  const counts = new Map<number, number>()
  for (const one of durations) counts.set(bucketOf(one), (counts.get(bucketOf(one)) ?? 0) + 1)
  return counts
}

const exact = (durations: number[], share: number) =>
  durations.toSorted((a, b) => a - b)[Math.max(1, Math.ceil(share * durations.length)) - 1]!

function expectNear(durations: number[], share: number): void {
  const want = exact(durations, share)
  const off = Math.abs(quantile(countsOf(durations), share) - want)
  expect([want, off <= Math.max(leastMs, want * relativeError * 1.000001)]).toEqual([want, true])
}

test('p50, p95 and p99 of any durations are within the promise', () => {
  const duration = fc.oneof(
    fc.double({ min: 0, max: 1e12, noNaN: true }),
    fc.nat(30_000),
    fc.constantFrom(0, leastMs, 1e-9, 1e15),
  )
  fc.assert(
    fc.property(fc.array(duration, { minLength: 1, maxLength: 200 }), (durations) => {
      for (const share of [0, 0.5, 0.95, 0.99, 1]) expectNear(durations, share)
    }),
  )
})

test('a long tail too, and the widest spread keeps within the buckets there are', () => {
  const tail = Array.from({ length: 10_000 }, (_, n) => 5 + 2_000 / (1 + ((n * 7_919) % 10_000)))
  for (const share of [0.5, 0.95, 0.99]) expectNear(tail, share)
  expect(bucketOf(Number.MAX_VALUE)).toBe(bucketsMax - 1)
  expect(quantile(new Map(), 0.5)).toBe(0)
})
