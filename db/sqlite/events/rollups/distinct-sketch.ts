/** HyperLogLog over the hashes that sessions and subjects have for codes, kept as counted values. */

/*
 * A hash picks one of 4,096 registers and has a rank, the place of its first 1 among the bits that are left; both
 * together are a code. How often each code was met is counted like any other value of a rollup, so that what is erased
 * can be taken away again, which registers alone cannot do. The highest rank of each register is what estimates need.
 * The standard error is 1.04 / sqrt(4,096) = 1.6 %; few values are counted almost exactly (linear counting).
 */
const registerBits = 12
export const registers = 2 ** registerBits
const hashBits = 31
const ranksMax = 32

export const standardError = 1.04 / Math.sqrt(registers)

/** `hash` is the code of a member that is always hashed (members.ts). */
export function sketchCode(hash: number): number {
  const bits = hash % 2 ** hashBits
  const rest = Math.floor(bits / registers)
  const rank =
    rest === 0 ? hashBits - registerBits + 1 : Math.clz32(rest) - (32 - (hashBits - registerBits)) + 1
  return (bits % registers) * ranksMax + rank
}

export function registerAndRank(code: number): [register: number, rank: number] {
  return [Math.floor(code / ranksMax), code % ranksMax]
}

/** `ranks` has the highest rank of each register, 0 for one that met nothing. */
export function estimate(ranks: Uint8Array): number {
  let empty = 0
  let sum = 0
  for (const rank of ranks) {
    if (rank === 0) empty++
    sum += 2 ** -rank
  }
  const bias = 0.7213 / (1 + 1.079 / registers)
  const raw = (bias * registers * registers) / sum
  const likely = raw <= 2.5 * registers && empty > 0 ? registers * Math.log(registers / empty) : raw
  // Hashes of 31 bits meet each other: corrects for what that hides.
  const range = 2 ** hashBits
  return Math.round(-range * Math.log(1 - Math.min(likely / range, 0.999)))
}
