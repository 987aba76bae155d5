/** A small seeded generator (mulberry32), so that a failing run can be repeated. */

export interface Seeded {
  /** From 0 to before 1. */
  fraction(): number
  /** A whole number from 0 to before `count`. */
  below(count: number): number
}

export function seeded(seed: number): Seeded {
  let state = seed
  function fraction(): number {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  return { fraction, below: (count) => Math.floor(fraction() * count) }
}

export const anySeed = (): number => Math.floor(Math.random() * 2 ** 31)
