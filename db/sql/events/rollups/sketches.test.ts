/** Quantiles and distinct counts against exact ones, within the errors that the sketches promise. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  bucketOf,
  bucketsMax,
  estimate,
  leastMs,
  quantile,
  registerAndRank,
  registers,
  relativeError,
  sketchCode,
  standardError,
} from './sketches.ts'
import { hashCode } from '../blocks/fields.ts'

function countsOf(durations: number[]): Map<number, number> {
  const counts = new Map<number, number>()
  for (const duration of durations) counts.set(bucketOf(duration), (counts.get(bucketOf(duration)) ?? 0) + 1)
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

test('a long tail too, and the widest spread stays within the buckets', () => {
  const tail = Array.from({ length: 10_000 }, (_, n) => 5 + 2_000 / (1 + ((n * 7_919) % 10_000)))
  for (const share of [0.5, 0.95, 0.99]) expectNear(tail, share)
  expect(bucketOf(Number.MAX_VALUE)).toBe(bucketsMax - 1)
  expect(quantile(new Map(), 0.5)).toBe(0)
})

function estimated(count: number, seed: number): number {
  const ranks = new Uint8Array(registers)
  for (let n = 0; n < count; n++) {
    const [register, rank] = registerAndRank(sketchCode(hashCode(`ses_${n}`, seed)))
    ranks[register] = Math.max(rank, ranks[register]!)
  }
  return estimate(ranks)
}

test('few values are counted to a percent', () => {
  for (const count of [0, 1, 2, 10, 100, 1_000]) {
    const off = [1, 2, 3, 4, 5, 6, 7, 8].map((seed) => Math.abs(estimated(count, seed) - count))
    expect([count, Math.max(...off) <= Math.max(1, count * 0.03)]).toEqual([count, true])
  }
})

test('many values are within three standard errors, and within one most of the time', () => {
  for (const [count, seeds] of [
    [5_000, 20],
    [20_000, 20],
    [100_000, 10],
    [1_000_000, 2],
  ] as const) {
    const off = Array.from({ length: seeds }, (_, seed) => Math.abs(estimated(count, seed + 1) / count - 1))
    expect([count, Math.max(...off) < 3 * standardError]).toEqual([count, true])
    const mean = off.reduce((sum, deviation) => sum + deviation, 0) / seeds
    expect([count, mean < 1.5 * standardError]).toEqual([count, true])
  }
}, 20_000)
