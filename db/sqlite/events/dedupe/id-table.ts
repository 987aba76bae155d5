/** The memory table of dedupe: the position of every event that is in no id run yet, by fingerprint. */
import { chunkOf, chunksPerRun, type RunSpan } from './id-run.ts'
import { placeOf } from '../blocks/row-key.ts'

const empty = -1
const fingerprintSpan = 2 ** 53

export interface IdTable {
  size(): number
  add(org: number, seq: number, fingerprint: number): void
  /** Whether any entry of the fingerprint has a place that `confirm` takes. */
  find(fingerprint: number, confirm: (place: number) => boolean): boolean
  /** The arrivals of each organization that has any here; they follow each other without a gap. */
  spans(): ReadonlyMap<number, RunSpan>
  /** Every entry that belongs to a chunk of the run that the table will be. */
  chunk(chunk: number, visit: (fingerprint: number, place: number) => void): void
  /** Empties the table; one that has grown is as small as at first. */
  clear(): void
}

/**
 * Open addressing over typed arrays: much faster and smaller than a Map. Equal keys may repeat. Slots go by the upper
 * bits of a fingerprint, as chunks do, so that a table is written as a run without being sorted: that took 90 ms, for
 * which every append had to wait.
 */
export function idTable(entriesExpected: number): IdTable {
  let slots = chunksPerRun
  while (slots < entriesExpected * 2) slots *= 2
  const slotsMin = slots
  let keys = new Float64Array(slots).fill(empty)
  let places = new Float64Array(slots)
  let size = 0
  let width = fingerprintSpan / slots // of the fingerprints that begin at one slot
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
      // What found its slot taken stands further on, but never beyond an empty one.
      for (let at = first; at < first + perChunk || keys[at & mask] !== empty; at++) {
        const key = keys[at & mask]!
        if (key !== empty && chunkOf(key) === chunk) visit(key, places[at & mask]!)
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
  let all = new Map<number, RunSpan>()
  let last: RunSpan | undefined // mostly that of the next one too
  return {
    all: () => all,
    note(org: number, seq: number): void {
      if (last?.org !== org) last = all.get(org)
      if (last === undefined) all.set(org, (last = { org, firstSeq: seq, lastSeq: seq }))
      else if (seq < last.firstSeq) last.firstSeq = seq
      else if (seq > last.lastSeq) last.lastSeq = seq
    },
    clear(): void {
      all = new Map()
      last = undefined
    },
  }
}
