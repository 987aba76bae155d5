/** The Bloom filter of dedupe: which id runs may hold a fingerprint, all runs asked at once. */

/*
 * A run of 2^18 ids has 2^22 bits, 6 of them set for each id (16 bits an id, one false hit in a thousand). The filters
 * of 32 runs lie crosswise: lane i has bit i of each of them, so AND-ing six lanes answers for 32 runs at the price of
 * one. A lane of a group with up to 8 runs has 8 bits, then 16, then 32, and words have one to four lanes: ten million
 * events take 20 MiB where groups of full width took 32. On disk a run's bits lie in one blob of 512 KiB, a row of
 * event_id_filter. Each run costs every new event one false hit in a thousand, so fewer and larger ones keep the rate.
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

interface Group {
  runs: number // a bit for each run that it knows
  width: number // bits of a lane: 8, 16, 32
  split: number // log2 of the lanes in a word
  words: Uint32Array
}

const widthMin = 8

function newGroup(width: number): Group {
  const split = Math.log2(runsPerGroup / width)
  return { runs: 0, width, split, words: new Uint32Array(filterBits >>> split) }
}

/** How far up in its word the lane of a bit begins. */
function shiftOf({ width, split }: Group, bit: number): number {
  return (bit & ((1 << split) - 1)) * width
}

/** The same with lanes twice as wide. */
function widened(group: Group): Group {
  const wide = newGroup(group.width * 2)
  wide.runs = group.runs
  const lane = (1 << group.width) - 1 // groups of full width are not widened
  for (let bit = 0; bit < filterBits; bit++) {
    const runs = (group.words[bit >>> group.split]! >>> shiftOf(group, bit)) & lane
    if (runs !== 0) wide.words[bit >>> wide.split]! |= runs << shiftOf(wide, bit)
  }
  return wide
}

export function idFilter(): IdFilter {
  const groups = new Map<number, Group>()

  function groupOf(run: number): Group {
    const index = Math.floor(run / runsPerGroup)
    const mark = 1 << (run % runsPerGroup)
    let group = groups.get(index) ?? newGroup(widthMin)
    if ((group.runs & mark) !== 0) return group
    while (run % runsPerGroup >= group.width) group = widened(group)
    group.runs |= mark
    groups.set(index, group)
    return group
  }

  return {
    add(run, bits, fingerprint) {
      const group = groupOf(run)
      const { words, split } = group
      const mark = 1 << (run % runsPerGroup)
      const step = stepOf(fingerprint)
      let hash = fingerprint >>> 0
      for (let k = 0; k < bitsPerId; k++, hash = (hash + step) | 0) {
        const bit = hash >>> bitShift
        words[bit >>> split]! |= mark << shiftOf(group, bit)
        bits[bit >>> 5]! |= 1 << (bit & 31)
      }
    },
    load(run, bits) {
      const group = groupOf(run)
      const mark = run % runsPerGroup
      const each = filterBits / (bits.length * 32)
      for (let index = 0; index < bits.length; index++) {
        for (let rest = bits[index]!; rest !== 0; rest &= rest - 1) {
          const first = (index * 32 + 31 - Math.clz32(rest & -rest)) * each
          for (let bit = first; bit < first + each; bit++)
            group.words[bit >>> group.split]! |= 1 << (mark + shiftOf(group, bit))
        }
      }
    },
    some(fingerprint, visit) {
      const step = stepOf(fingerprint)
      for (const [index, group] of groups) {
        const { words, split } = group
        let hash = fingerprint >>> 0
        let runs = group.runs
        for (let k = 0; k < bitsPerId && runs !== 0; k++, hash = (hash + step) | 0) {
          const bit = hash >>> bitShift
          runs &= words[bit >>> split]! >>> shiftOf(group, bit)
        }
        for (; runs !== 0; runs &= runs - 1) {
          if (visit(index * runsPerGroup + 31 - Math.clz32(runs & -runs))) return true
        }
      }
      return false
    },
    drop(run) {
      const index = Math.floor(run / runsPerGroup)
      const group = groups.get(index)
      if (group === undefined || (group.runs & (1 << (run % runsPerGroup))) === 0) return
      group.runs &= ~(1 << (run % runsPerGroup))
      if (group.runs === 0) groups.delete(index)
      else
        for (let bit = 0; bit < filterBits; bit++)
          group.words[bit >>> group.split]! &= ~(1 << ((run % runsPerGroup) + shiftOf(group, bit)))
    },
  }
}

/** The distance between a fingerprint's bits, from its upper half, which does not say where they start. */
function stepOf(fingerprint: number): number {
  const high = Math.floor(fingerprint / 2 ** 32)
  return Math.imul(high ^ (fingerprint >>> 7), 0x9e3779b1) | 1
}
