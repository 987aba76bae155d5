/** Sketches as counted values: durations in logarithmic buckets (within 2 %), and HyperLogLog registers. */

/*
 * Bucket b > 0 holds durations in (least * growth^(b-2), least * growth^(b-1)]. Its middle differs from each of them by
 * at most `relativeError`. Bucket 0 holds durations below `leastMs`, as 0; the last is beyond 10^15 ms.
 */
export const relativeError = 0.02
export const leastMs = 0.01
export const bucketsMax = 1_024

const growth = (1 + relativeError) / (1 - relativeError)
const perBucket = Math.log(growth)

/** Of whole milliseconds, 0 when it was not computed yet: a logarithm takes longer than to read an event. */
const wholeMs = new Uint16Array(16_384)

export function bucketOf(durationMs: number): number {
  if (durationMs < leastMs) return 0
  if (durationMs >= wholeMs.length || !Number.isInteger(durationMs)) return computedBucket(durationMs)
  return (wholeMs[durationMs] ||= computedBucket(durationMs))
}

function computedBucket(durationMs: number): number {
  return Math.min(bucketsMax - 1, 1 + Math.ceil(Math.log(durationMs / leastMs) / perBucket))
}

function middleOf(bucket: number): number {
  return bucket === 0 ? 0 : (leastMs * 2 * growth ** (bucket - 1)) / (growth + 1)
}

/** The quantile by nearest rank: the ⌈share · n⌉-th shortest. Zero without durations. */
export function quantile(counts: ReadonlyMap<number, number>, share: number): number {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
  let remainingCount = Math.max(1, Math.ceil(share * total))
  for (const bucket of [...counts.keys()].sort((a, b) => a - b)) {
    remainingCount -= counts.get(bucket)!
    if (remainingCount <= 0) return middleOf(bucket)
  }
  return 0
}

/*
 * A hash picks one of 4,096 registers and has a rank, the position of its first 1 among the other bits. Both together
 * are a code. Each code is counted like any other value of a rollup, so that erased events can be subtracted, which
 * registers alone do not allow. Estimates need the highest rank per register. The standard error is 1.04 / sqrt(4,096)
 * = 1.6 %; few values are counted almost exactly (linear counting).
 */
const registerBits = 12
export const registers = 2 ** registerBits
const hashBits = 31
const ranksMax = 32

export const standardError = 1.04 / Math.sqrt(registers)

/** `hash` is the code of a field that is always hashed (blocks/fields.ts). */
export function sketchCode(hash: number): number {
  const bits = hash % 2 ** hashBits
  const rankBits = Math.floor(bits / registers)
  const rank =
    rankBits === 0 ? hashBits - registerBits + 1 : Math.clz32(rankBits) - (32 - (hashBits - registerBits)) + 1
  return (bits % registers) * ranksMax + rank
}

export function registerAndRank(code: number): [register: number, rank: number] {
  return [Math.floor(code / ranksMax), code % ranksMax]
}

/** `ranks` has the highest rank per register, 0 for an empty one. */
export function estimate(ranks: Uint8Array): number {
  // The sum is of powers of two, and exact in any order.
  const counts = new Uint16Array(ranksMax)
  for (let register = 0; register < registers; register++) counts[ranks[register]!]!++
  const empty = counts[0]!
  const sum = counts.reduce((total, count, rank) => total + count * 2 ** -rank, 0)
  const bias = 0.7213 / (1 + 1.079 / registers)
  const raw = (bias * registers * registers) / sum
  const likely = raw <= 2.5 * registers && empty > 0 ? registers * Math.log(registers / empty) : raw
  // Hashes of 31 bits collide. This corrects the estimate.
  const range = 2 ** hashBits
  return Math.round(-range * Math.log(1 - Math.min(likely / range, 0.999)))
}
