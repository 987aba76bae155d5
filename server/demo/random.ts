/** Seeded random numbers: the same seed gives the same choices on every machine and in every release. */

export interface Random {
  /** 0 inclusive to 1 exclusive. */
  next(): number
  /** An integer from `min` to `max`, inclusive. */
  whole(min: number, max: number): number
  chance(probability: number): boolean
  pick<T>(from: readonly T[]): T
  /** Picks by weight. */
  weighted<T extends { weight: number }>(from: readonly T[]): T
  /** A duration with a log-normal distribution: mostly near the median, sometimes several times as long. */
  spread(median: number, width: number): number
}

/** The generator mulberry32, seeded with a hash of the arguments, so that every day and class has its own sequence. */
export function randomFrom(...parts: (string | number)[]): Random {
  let state = hash(parts.join('/'))
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const pick = <T>(from: readonly T[]): T => from[Math.floor(next() * from.length)]!
  return {
    next,
    whole: (min, max) => min + Math.floor(next() * (max - min + 1)),
    chance: (probability) => next() < probability,
    pick,
    weighted: (from) => {
      const total = from.reduce((sum, { weight }) => sum + weight, 0)
      let remainingWeight = next() * total
      return from.find(({ weight }) => (remainingWeight -= weight) < 0) ?? from.at(-1)!
    },
    spread: (median, width) => {
      // The sum of uniform numbers is nearly normal; its exponential is log-normal.
      const normal = next() + next() + next() + next() - 2
      return median * Math.exp(normal * width * 1.7)
    },
  }
}

export function hash(text: string): number {
  let value = 0x811c9dc5
  for (let index = 0; index < text.length; index++)
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193)
  // FNV-1a gives similar outputs for similar inputs; the finalizer of murmur3 separates them.
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b)
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35)
  return (value ^ (value >>> 16)) >>> 0
}
