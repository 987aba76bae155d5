/** Durations as buckets of a logarithmic scale: counts of them merge, subtract, and give quantiles within 2 %. */

/*
 * Bucket b > 0 holds durations in (least * growth^(b-2), least * growth^(b-1)], and its middle is off by at most
 * `relativeError` of any of them. Bucket 0 holds what is shorter than `leastMs`, as 0; the last is beyond 10^15 ms.
 */
export const relativeError = 0.02
export const leastMs = 0.01
export const bucketsMax = 1_024

const growth = (1 + relativeError) / (1 - relativeError)
const perBucket = Math.log(growth)

export function bucketOf(durationMs: number): number {
  if (durationMs < leastMs) return 0
  return Math.min(bucketsMax - 1, 1 + Math.ceil(Math.log(durationMs / leastMs) / perBucket))
}

export function middleOf(bucket: number): number {
  return bucket === 0 ? 0 : (leastMs * 2 * growth ** (bucket - 1)) / (growth + 1)
}

/** The quantile of the nearest rank: the ⌈share · n⌉-th shortest. Zero when nothing was counted. */
export function quantile(counts: ReadonlyMap<number, number>, share: number): number {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  let left = Math.max(1, Math.ceil(share * total))
  for (const bucket of [...counts.keys()].sort((a, b) => a - b)) {
    left -= counts.get(bucket)!
    if (left <= 0) return middleOf(bucket)
  }
  return 0
}
