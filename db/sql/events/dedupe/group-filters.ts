/** The Bloom filters of all merged groups in memory, where an id's lines of all groups follow each other. */
import { chunksPerRun, runsPerGroup } from './id-run.ts'

/*
 * The filter of a group has 16 bits per id, six of them set, all in the line of 64 bytes that the upper 18 bits choose:
 * one in a thousand other ids passes. On disk a filter is 32 parts, each the lines of 32 chunks. In memory a part holds
 * those of all groups, word by word: word w of the line of each group, then word w + 1 of each. So a new id reads three
 * places of memory, however many groups there are. With twelve groups it costs 0.3 µs, and 0.1 with one; lines in
 * twelve places, read one id at a time, cost 1.9 µs more than one line.
 */
const lineWords = 16
const chunkLines = 256
const chunkWords = chunkLines * lineWords
export const partsPerGroup = runsPerGroup
export const partChunks = chunksPerRun / partsPerGroup
const partLines = partChunks * chunkLines
export const partWords = partLines * lineWords

/** One part of every group's filter. Lane i holds the words of the group that begins with `firstRuns[i]`. */
interface Part {
  firstRuns: number[]
  words: Uint32Array
}

export interface GroupFilters {
  isLoaded(part: number): boolean
  /** Whether any group may hold the fingerprint. True when its part is not loaded. */
  mayHold(fingerprint: number): boolean
  /** Calls `visit` with the first run of each group that may hold the fingerprint until it returns true. */
  some(fingerprint: number, visit: (firstRun: number) => boolean): boolean
  /** Loads a part of all groups, each as it is stored. */
  load(part: number, filters: ReadonlyMap<number, Uint32Array>): void
  /** The filter of a chunk, to which merging adds; null when its part is not loaded. */
  chunk(firstRun: number, chunk: number): ChunkFilter | null
  /** A loaded part of a group's filter, as it is stored. */
  stored(firstRun: number, part: number): Uint32Array<ArrayBuffer>
  /** Frees the words of other groups in one part. False: no part has any. */
  shrink(isUsed: (firstRun: number) => boolean): boolean
}

export type ChunkFilter = (high: number, low: number) => void

export function groupFilters(): GroupFilters {
  const parts: (Part | null)[] = Array.from({ length: partsPerGroup }, () => null)

  function partAt(index: number): Part {
    const part = parts[index]
    if (!part) throw new Error(`part ${index} of the filters of id groups is not loaded`)
    return part
  }

  return {
    isLoaded: (part) => parts[part] !== null,
    mayHold(fingerprint) {
      const high = Math.floor(fingerprint / 2 ** 32)
      const part = parts[partOf(high)]
      if (!part) return true
      return laneThatHolds(part.words, part.firstRuns.length, high, fingerprint >>> 0, 0) >= 0
    },
    some(fingerprint, visit) {
      const high = Math.floor(fingerprint / 2 ** 32)
      const { words, firstRuns } = partAt(partOf(high))
      for (let lane = -1; ;) {
        lane = laneThatHolds(words, firstRuns.length, high, fingerprint >>> 0, lane + 1)
        if (lane < 0) return false
        if (visit(firstRuns[lane]!)) return true
      }
    },
    load(index, filters) {
      parts[index] = woven([...filters.keys()], (run) => [filters.get(run)!, 0, 1])
    },
    chunk(firstRun, chunk) {
      const index = Math.floor(chunk / partChunks)
      if (parts[index] === null) return null
      const { words, firstRuns } = (parts[index] = withLane(partAt(index), firstRun))
      const lanes = firstRuns.length
      const lane = firstRuns.indexOf(firstRun)
      return (high, low) => addTo(words, lane, lanes, high, low)
    },
    stored(firstRun, index) {
      const part = partAt(index)
      const lanes = part.firstRuns.length
      const filter = new Uint32Array(partWords)
      const lane = part.firstRuns.indexOf(firstRun)
      if (lane >= 0) copyLane([part.words, lane, lanes], [filter, 0, 1], 0, partWords)
      return filter
    },
    shrink(isUsed) {
      const index = parts.findIndex((part) => part?.firstRuns.some((run) => !isUsed(run)))
      if (index < 0) return false
      const part = partAt(index)
      parts[index] = woven(part.firstRuns.filter(isUsed), laneOf(part))
      return true
    },
  }
}

/** A lane and the number of lanes. */
type Lane = [words: Uint32Array, lane: number, lanes: number]

const laneOf =
  ({ words, firstRuns }: Part) =>
  (firstRun: number): Lane => [words, firstRuns.indexOf(firstRun), firstRuns.length]

/** Copies a few words of each lane before the next ones, so that the target stays in the processor's cache. */
const wordsAtOnce = 512

function woven(firstRuns: number[], from: (firstRun: number) => Lane | null): Part {
  const lanes = firstRuns.length
  const words = new Uint32Array(partWords * lanes)
  const sources = firstRuns.map(from)
  for (let word = 0; word < partWords; word += wordsAtOnce)
    sources.forEach((source, lane) => {
      if (source !== null) copyLane(source, [words, lane, lanes], word, word + wordsAtOnce)
    })
  return { firstRuns, words }
}

function withLane(part: Part, firstRun: number): Part {
  const { firstRuns } = part
  if (firstRuns.includes(firstRun)) return part
  const readLane = laneOf(part)
  return woven([...firstRuns, firstRun], (run) => (run === firstRun ? null : readLane(run)))
}

function copyLane(
  [from, laneFrom, lanesFrom]: Lane,
  [to, laneTo, lanesTo]: Lane,
  first: number,
  end: number,
): void {
  for (let word = first; word < end; word++) to[word * lanesTo + laneTo] = from[word * lanesFrom + laneFrom]!
}

/** `high`: the fingerprint without its lower 32 bits. */
function partOf(high: number): number {
  return high >>> 16
}

/** The first word of an id's line within a part of one lane. */
function lineIn(high: number): number {
  return ((high >>> 3) & (partLines - 1)) * lineWords
}

/** Adds to a part as it is stored. */
export function addToPart(part: Uint32Array, high: number, low: number): void {
  addTo(part, 0, 1, high, low)
}

/** Whether a part as it is stored may hold a fingerprint. */
export function partMayHold(part: Uint32Array, fingerprint: number): boolean {
  return laneThatHolds(part, 1, Math.floor(fingerprint / 2 ** 32), fingerprint >>> 0, 0) === 0
}

/** The second half of the places of an id's bits. */
function mixed(low: number): number {
  return Math.imul(low ^ (low >>> 16), 0x9e3779b1)
}

function addTo(words: Uint32Array, lane: number, lanes: number, high: number, low: number): void {
  const line = lineIn(high)
  for (let half = low, times = 0; times < 2; half = mixed(low), times++) {
    words[(line + (half & 15)) * lanes + lane]! |= 1 << ((half >>> 4) & 31)
    words[(line + ((half >>> 9) & 15)) * lanes + lane]! |= 1 << ((half >>> 13) & 31)
    words[(line + ((half >>> 18) & 15)) * lanes + lane]! |= 1 << ((half >>> 22) & 31)
  }
}

/**
 * The first lane from one on that may hold an id, or -1. Three bits at a time, because one in thirty passes three: the
 * processor predicts that none does.
 */
function laneThatHolds(words: Uint32Array, lanes: number, high: number, low: number, from: number): number {
  const line = lineIn(high)
  const a = (line + (low & 15)) * lanes
  const b = (line + ((low >>> 9) & 15)) * lanes
  const c = (line + ((low >>> 18) & 15)) * lanes
  for (let lane = from; lane < lanes; lane++) {
    const first =
      (words[a + lane]! >>> ((low >>> 4) & 31)) &
      (words[b + lane]! >>> ((low >>> 13) & 31)) &
      (words[c + lane]! >>> ((low >>> 22) & 31))
    if ((first & 1) === 0) continue
    const mixedLow = mixed(low)
    const second =
      (words[(line + (mixedLow & 15)) * lanes + lane]! >>> ((mixedLow >>> 4) & 31)) &
      (words[(line + ((mixedLow >>> 9) & 15)) * lanes + lane]! >>> ((mixedLow >>> 13) & 31)) &
      (words[(line + ((mixedLow >>> 18) & 15)) * lanes + lane]! >>> ((mixedLow >>> 22) & 31))
    if ((second & 1) === 1) return lane
  }
  return -1
}
