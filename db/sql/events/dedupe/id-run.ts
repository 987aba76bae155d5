/** Id runs on disk: 2^18 fingerprints with the positions of their events, and the Bloom filter over all runs. */
import type { Database } from '../../database.ts'

/*
 * The upper 10 of a fingerprint's 53 bits choose one of 1,024 chunks (event_id_chunk, about 256 entries, 2 KiB). Each
 * entry of a chunk is two u32, little-endian:
 *   its lower 32 bits
 *   its middle 11 bits, then in 21 bits the distance of its event's seq from the run's first seq of that organization
 * event_id_run says which arrivals of which organization a run covers. A run without these rows does not exist.
 */
export const runIds = 2 ** 18 // 2^17 in earlier versions; on disk only the size of a filter depends on it
export const chunksPerRun = 1_024
const seqSpanMax = 2 ** 21
const chunkShift = 2 ** 43

export interface RunSpan {
  org: number
  firstSeq: number
  lastSeq: number
}

export function chunkOf(fingerprint: number): number {
  return Math.floor(fingerprint / chunkShift)
}

/** Writes entry `index` of a chunk. */
export function packEntry(words: Uint32Array, index: number, fingerprint: number, offset: number): void {
  if (offset < 0 || offset >= seqSpanMax) throw new Error(`an id run spans ${offset} arrivals`)
  words[index * 2] = fingerprint
  words[index * 2 + 1] = middleOf(fingerprint) * seqSpanMax + offset
}

function middleOf(fingerprint: number): number {
  return Math.floor(fingerprint / 2 ** 32) % 2 ** 11
}

/** Calls `confirm` with the offset of each entry that has the fingerprint, until it returns true. */
export function findInChunk(
  entries: Uint8Array,
  fingerprint: number,
  confirm: (offset: number) => boolean,
): boolean {
  const words = new Uint32Array(entries.buffer, entries.byteOffset, entries.byteLength / 4)
  const low = fingerprint >>> 0
  const middle = middleOf(fingerprint)
  for (let index = 0; index < words.length; index += 2) {
    if (words[index] !== low) continue
    const word = words[index + 1]!
    if (Math.floor(word / seqSpanMax) === middle && confirm(word % seqSpanMax)) return true
  }
  return false
}

/** Looks a fingerprint up in one run: the seqs of events that may have it. */
export function runLookup(
  db: Database,
): (run: number, firstSeq: number, fingerprint: number, confirm: (seq: number) => boolean) => boolean {
  const read = db.query<{ entries: Uint8Array }, [number]>(
    'SELECT entries FROM event_id_chunk WHERE chunk = ?',
  )
  return (run, firstSeq, fingerprint, confirm) => {
    const row = read.get(run * chunksPerRun + chunkOf(fingerprint))
    return row !== null && findInChunk(row.entries, fingerprint, (offset) => confirm(firstSeq + offset))
  }
}

export interface Span {
  run: number
  firstSeq: number
  lastSeq: number
}

/** The runs that cover arrivals of an organization, newest first. */
export function spansOf(db: Database, org: number): Span[] {
  return db
    .query<Span, [number]>(
      'SELECT run, first_seq AS firstSeq, last_seq AS lastSeq FROM event_id_run WHERE org = ? ORDER BY run DESC',
    )
    .all(org)
}

/*
 * A run of 2^18 ids has 2^22 bits, 6 of them set per id (16 bits per id, one false hit in a thousand). The filters of
 * 32 runs are interleaved: lane i has bit i of each, so AND-ing six lanes answers for 32 runs at the cost of one. A
 * lane of a group with up to 8 runs has 8 bits, then 16, then 32, and words have one to four lanes: ten million events
 * use 20 MiB instead of 32. On disk a run's bits are one blob of 512 KiB, a row of event_id_filter. Each run costs
 * every new event one false hit in a thousand, so fewer and larger runs are quicker.
 *
 * Runs of earlier versions have 2^17 ids and 2^21 bits: their bit i stands for the bits 2i and 2i + 1.
 */
const filterBits = 2 ** 22
const bitShift = 32 - Math.log2(filterBits)
const bitsPerId = 6
export const runsPerGroup = 32

export interface IdFilter {
  /** Adds to the run in memory, and to `bits`, its own filter, which is then written. */
  add(run: number, bits: Uint32Array, fingerprint: number): void
  /** `bits` as stored, of this version or an earlier one. */
  load(run: number, bits: Uint32Array): void
  /** Calls `visit` with each run that may hold the fingerprint until it returns true. Returns whether it did. */
  some(fingerprint: number, visit: (run: number) => boolean): boolean
  /** Forgets a run. The memory of 32 runs is freed with the last of them. */
  drop(run: number): void
}

export function newRunBits(): Uint32Array<ArrayBuffer> {
  return new Uint32Array(filterBits / 32)
}

interface Group {
  runs: number // one bit per run in the group
  width: number // bits of a lane: 8, 16, 32
  split: number // log2 of the lanes in a word
  words: Uint32Array
}

const widthMin = 8

function newGroup(width: number): Group {
  const split = Math.log2(runsPerGroup / width)
  return { runs: 0, width, split, words: new Uint32Array(filterBits >>> split) }
}

/** Of the lanes of a group with a run at this index. */
function widthOf(index: number): number {
  let width = widthMin
  while (index >= width) width *= 2
  return width
}

/** The offset of a bit's lane in its word. */
function shiftOf({ width, split }: Group, bit: number): number {
  return (bit & ((1 << split) - 1)) * width
}

/** The same with lanes of double width. */
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

/** Sets the lanes of all bits of a run, one word at a time, because a start does so with each run. */
function addRun({ words, width, split }: Group, mark: number, bits: Uint32Array): void {
  const lanes = 1 << split
  const mask = (1 << lanes) - 1
  const spread = Uint32Array.from({ length: 1 << lanes }, (_, laneBits) => {
    let word = 0
    for (let lane = 0; lane < lanes; lane++) if ((laneBits & (1 << lane)) !== 0) word |= 1 << (lane * width)
    return word << mark
  })
  let word = 0
  for (let index = 0; index < bits.length; index++) {
    const source = bits[index]!
    for (let shift = 0; shift < 32; shift += lanes) words[word++]! |= spread[(source >>> shift) & mask]!
  }
}

/** Doubles each bit. */
function doubled(bits: Uint32Array): Uint32Array {
  const twice = new Uint32Array(bits.length * 2)
  for (let index = 0; index < twice.length; index++) {
    let half = index % 2 === 0 ? bits[index >>> 1]! & 0xffff : bits[index >>> 1]! >>> 16
    half = (half | (half << 8)) & 0x00ff00ff
    half = (half | (half << 4)) & 0x0f0f0f0f
    half = (half | (half << 2)) & 0x33333333
    half = (half | (half << 1)) & 0x55555555
    twice[index] = half | (half << 1)
  }
  return twice
}

export function idFilter(): IdFilter {
  const groups = new Map<number, Group>()

  function groupOf(run: number): Group {
    const index = Math.floor(run / runsPerGroup)
    const mark = 1 << (run % runsPerGroup)
    let group = groups.get(index) ?? newGroup(widthOf(run % runsPerGroup))
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
      addRun(groupOf(run), run % runsPerGroup, bits.length * 32 === filterBits ? bits : doubled(bits))
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
      if (group === undefined) return
      group.runs &= ~(1 << (run % runsPerGroup)) // lookups begin with these, so its bits may stay
      if (group.runs === 0) groups.delete(index)
    },
  }
}

/** The distance between a fingerprint's bits, from its upper half, which does not decide where they start. */
function stepOf(fingerprint: number): number {
  const high = Math.floor(fingerprint / 2 ** 32)
  return Math.imul(high ^ (fingerprint >>> 7), 0x9e3779b1) | 1
}
