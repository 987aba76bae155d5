/** The memory table of dedupe: the position of every event that is not in an id run yet, by fingerprint. */
import { chunkOf, chunksPerRun, type RunSpan } from './id-run.ts'
import { placeOf, seqOf } from '../blocks/block.ts'

const empty = -1
const fingerprintSpan = 2 ** 53

export interface IdTable {
  size(): number
  add(org: number, seq: number, fingerprint: number): void
  /** Whether `confirm` accepts the position of any entry with the fingerprint. */
  find(fingerprint: number, confirm: (place: number) => boolean): boolean
  /** The arrivals per organization in the table, each a range without a gap. */
  spans(): ReadonlyMap<number, RunSpan>
  /** Every entry for one chunk of the later run. */
  chunk(chunk: number, visit: (fingerprint: number, place: number) => void): void
  /** Empties the table and shrinks it to its first size. */
  clear(): void
}

/**
 * Open addressing over typed arrays: much faster and smaller than a Map. Equal keys may repeat. Slots follow the upper
 * bits of a fingerprint, as chunks do, so that a table is written as a run without sorting, which blocked every append
 * for 90 ms.
 */
export function idTable(entriesExpected: number): IdTable {
  let slots = chunksPerRun
  while (slots < entriesExpected * 2) slots *= 2
  const slotsMin = slots
  let keys = new Float64Array(slots).fill(empty)
  let places = new Float64Array(slots)
  let size = 0
  let width = fingerprintSpan / slots // fingerprints per slot
  const spans = spansByOrg()

  function put(fingerprint: number, place: number): void {
    const mask = slots - 1
    let slot = Math.floor(fingerprint / width)
    while (keys[slot] !== empty) slot = (slot + 1) & mask
    keys[slot] = fingerprint
    places[slot] = place
  }

  function setSlots(count: number): void {
    slots = count
    width = fingerprintSpan / slots
    keys = new Float64Array(slots).fill(empty)
    places = new Float64Array(slots)
  }

  function grow(): void {
    const oldKeys = keys
    const oldPlaces = places
    setSlots(slots * 2)
    for (let slot = 0; slot < oldKeys.length; slot++) {
      if (oldKeys[slot] !== empty) put(oldKeys[slot]!, oldPlaces[slot]!)
    }
  }

  return {
    size: () => size,
    spans: spans.all,
    add(org, seq, fingerprint) {
      if (size * 5 > slots * 3) grow()
      put(fingerprint, placeOf(org, seq))
      size++
      spans.note(org, seq)
    },
    find(fingerprint, confirm) {
      const mask = slots - 1
      for (let slot = Math.floor(fingerprint / width); keys[slot] !== empty; slot = (slot + 1) & mask) {
        if (keys[slot] === fingerprint && confirm(places[slot]!)) return true
      }
      return false
    },
    chunk(chunk, visit) {
      const mask = slots - 1
      const perChunk = slots / chunksPerRun
      const first = chunk * perChunk
      // An entry whose slot was taken is in a later slot, but never after an empty one.
      for (let slot = first; slot < first + perChunk || keys[slot & mask] !== empty; slot++) {
        const key = keys[slot & mask]!
        if (key !== empty && chunkOf(key) === chunk) visit(key, places[slot & mask]!)
      }
    },
    clear() {
      if (slots > slotsMin) setSlots(slotsMin)
      else keys.fill(empty)
      size = 0
      spans.clear()
    },
  }
}

function spansByOrg() {
  let spans = new Map<number, RunSpan>()
  let last: RunSpan | undefined // usually also the span of the next one
  return {
    all: () => spans,
    note(org: number, seq: number): void {
      if (last?.org !== org) last = spans.get(org)
      if (last === undefined) spans.set(org, (last = { org, firstSeq: seq, lastSeq: seq }))
      else if (seq < last.firstSeq) last.firstSeq = seq
      else if (seq > last.lastSeq) last.lastSeq = seq
    },
    clear(): void {
      spans = new Map()
      last = undefined
    },
  }
}
