/** Histograms of durations, for the metrics endpoint. */
import type { Histogram } from '../contract/histogram.ts'

export function makeHistogram(boundsMs: readonly number[]): Histogram {
  return { boundsMs, counts: Array<number>(boundsMs.length + 1).fill(0), sumMs: 0 }
}

export function observe(histogram: Histogram, ms: number): void {
  const { boundsMs, counts } = histogram
  let bucket = 0
  while (bucket < boundsMs.length && ms > boundsMs[bucket]!) bucket++
  counts[bucket]!++
  histogram.sumMs += ms
}

/** Bounds for disk writes: a good one takes a few milliseconds. */
export const diskBoundsMs = [1, 2, 5, 10, 20, 50, 100, 250, 500, 1_000, 2_500]
