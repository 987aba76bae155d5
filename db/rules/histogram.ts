/** Histograms of durations, from which monitoring computes quantiles. */

export interface Histogram {
  boundsMs: readonly number[] // ascending
  /** How many took at most each bound and longer than the one before; the last entry is the rest. */
  counts: number[]
  sumMs: number
}

export function makeHistogram(boundsMs: readonly number[]): Histogram {
  return { boundsMs, counts: Array<number>(boundsMs.length + 1).fill(0), sumMs: 0 }
}

export function observe(histogram: Histogram, ms: number): void {
  const { boundsMs, counts } = histogram
  let at = 0
  while (at < boundsMs.length && ms > boundsMs[at]!) at++
  counts[at]!++
  histogram.sumMs += ms
}

/** Of writes to disk: a good one is a few milliseconds. */
export const diskBoundsMs = [1, 2, 5, 10, 20, 50, 100, 250, 500, 1_000, 2_500]
