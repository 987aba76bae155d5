/** A histogram of durations, as the store reports those of its writes. */

export interface Histogram {
  boundsMs: readonly number[] // ascending
  /** Durations per bucket: at most this bound and above the previous one. The last entry is above all bounds. */
  counts: number[]
  sumMs: number
}
