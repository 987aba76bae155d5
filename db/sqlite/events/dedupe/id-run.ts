/** An id run on disk: 2^18 fingerprints with the positions of their events, 8 bytes each. */
import type { Database } from 'bun:sqlite'

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
  for (let at = 0; at < words.length; at += 2) {
    if (words[at] !== low) continue
    const word = words[at + 1]!
    if (Math.floor(word / seqSpanMax) === middle && confirm(word % seqSpanMax)) return true
  }
  return false
}

/** Every entry of a chunk. */
export function* entriesOf(
  entries: Uint8Array,
  chunk: number,
): Generator<{ fingerprint: number; offset: number }> {
  const words = new Uint32Array(entries.buffer, entries.byteOffset, entries.byteLength / 4)
  for (let at = 0; at < words.length; at += 2) {
    const middle = Math.floor(words[at + 1]! / seqSpanMax)
    yield {
      fingerprint: chunk * chunkShift + middle * 2 ** 32 + words[at]!,
      offset: words[at + 1]! % seqSpanMax,
    }
  }
}

/** Looks a fingerprint up in one run: the seqs of events that may have it. */
export function runLookup(
  db: Database,
): (run: number, firstSeq: number, fingerprint: number, confirm: (seq: number) => boolean) => boolean {
  const read = db.prepare<{ entries: Uint8Array }, [number]>(
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
