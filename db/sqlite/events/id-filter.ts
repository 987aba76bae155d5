/** The Bloom filter of dedupe: which id runs may hold a fingerprint, all runs asked at once. */

/*
 * A run of 2^18 ids has 2^22 bits, 6 of them set for each id (16 bits an id, one false hit in a thousand). The filters
 * of 32 runs lie crosswise: word i holds bit i of each of them, so AND-ing six words answers for 32 runs at the price
 * of one. On disk a run's bits lie in one blob of 512 KiB (event_id_filter); in memory 16 MiB serve 32 runs, which are
 * 8.4 M events. Each run costs every new event one false hit in a thousand, so fewer and larger ones keep the rate.
 *
 * Runs of earlier versions have 2^17 ids and 2^21 bits: bit i of theirs stands for the bits 2i and 2i + 1.
 */
const filterBits = 2 ** 22
const bitShift = 32 - Math.log2(filterBits)
const bitsPerId = 6
const runsPerGroup = 32

export interface IdFilter {
  /** Adds to the run in memory, and to `bits`, its own filter, on the way to disk. */
  add(run: number, bits: Uint32Array, fingerprint: number): void
  /** `bits` as they came from disk, of a run of this version or of an earlier one. */
  load(run: number, bits: Uint32Array): void
  /** Calls `visit` with each run that may hold the fingerprint, until it returns true; says whether it did. */
  some(fingerprint: number, visit: (run: number) => boolean): boolean
  /** Forgets a run; the memory of 32 goes when the last of them does. */
  drop(run: number): void
}

export function newRunBits(): Uint32Array<ArrayBuffer> {
  return new Uint32Array(filterBits / 32)
}

export function idFilter(): IdFilter {
  const groups = new Map<number, { words: Uint32Array; runs: number }>()

  function groupOf(run: number): Uint32Array {
    const index = Math.floor(run / runsPerGroup)
    let group = groups.get(index)
    if (group === undefined) groups.set(index, (group = { words: new Uint32Array(filterBits), runs: 0 }))
    group.runs |= 1 << (run % runsPerGroup)
    return group.words
  }

  return {
    add(run, bits, fingerprint) {
      const words = groupOf(run)
      const mark = 1 << (run % runsPerGroup)
      const step = stepOf(fingerprint)
      let hash = fingerprint >>> 0
      for (let k = 0; k < bitsPerId; k++, hash = (hash + step) | 0) {
        const bit = hash >>> bitShift
        words[bit]! |= mark
        bits[bit >>> 5]! |= 1 << (bit & 31)
      }
    },
    load(run, bits) {
      const words = groupOf(run)
      const mark = 1 << (run % runsPerGroup)
      const each = filterBits / (bits.length * 32)
      for (let index = 0; index < bits.length; index++) {
        for (let rest = bits[index]!; rest !== 0; rest &= rest - 1) {
          const first = (index * 32 + 31 - Math.clz32(rest & -rest)) * each
          for (let bit = first; bit < first + each; bit++) words[bit]! |= mark
        }
      }
    },
    some(fingerprint, visit) {
      const step = stepOf(fingerprint)
      for (const [index, { words }] of groups) {
        let hash = fingerprint >>> 0
        let runs = -1
        for (let k = 0; k < bitsPerId && runs !== 0; k++, hash = (hash + step) | 0)
          runs &= words[hash >>> bitShift]!
        for (; runs !== 0; runs &= runs - 1) {
          if (visit(index * runsPerGroup + 31 - Math.clz32(runs & -runs))) return true
        }
      }
      return false
    },
    drop(run) {
      const index = Math.floor(run / runsPerGroup)
      const group = groups.get(index)
      if (group === undefined) return
      const keep = ~(1 << (run % runsPerGroup))
      group.runs &= keep
      if (group.runs === 0) groups.delete(index)
      else for (let word = 0; word < filterBits; word++) group.words[word]! &= keep
    },
  }
}

/** The distance between a fingerprint's bits, from its upper half, which does not say where they start. */
function stepOf(fingerprint: number): number {
  const high = Math.floor(fingerprint / 2 ** 32)
  return Math.imul(high ^ (fingerprint >>> 7), 0x9e3779b1) | 1
}
