/** A full memory table on its way to disk as an id run, some chunks with each commit. */
import type { Database } from 'bun:sqlite'
import { newRunBits, type IdFilter } from './id-filter.ts'
import { chunkOf, chunksPerRun, packEntry } from './id-run.ts'
import type { IdTable } from './id-table.ts'
import { placeOf, seqOf } from './place.ts'

/** The arrivals of one organization in the run; they follow each other without a gap. */
export interface FrozenSpan {
  org: number
  firstSeq: number
  lastSeq: number
}

export interface Freezing {
  run: number
  spans: Map<number, FrozenSpan> // by organization
  starts: Uint32Array // of each chunk in the two arrays below
  fingerprints: Float64Array
  places: Float64Array
  nextChunk: number
  bits: Uint32Array<ArrayBuffer>
}

/** Sorts the entries of a table by chunk; the table is not needed any more. */
export function freeze(table: IdTable, run: number): Freezing {
  const starts = new Uint32Array(chunksPerRun + 1)
  table.each((fingerprint) => starts[chunkOf(fingerprint) + 1]!++)
  for (let chunk = 0; chunk < chunksPerRun; chunk++) starts[chunk + 1]! += starts[chunk]!
  const next = starts.slice()
  const fingerprints = new Float64Array(table.size())
  const places = new Float64Array(table.size())
  table.each((fingerprint, place) => {
    const to = next[chunkOf(fingerprint)]!++
    fingerprints[to] = fingerprint
    places[to] = place
  })
  return {
    run,
    spans: spansIn(places),
    starts,
    fingerprints,
    places,
    nextChunk: 0,
    bits: newRunBits(),
  }
}

/** Whether any entry of the fingerprint has a place that `confirm` takes: until the run is written, only this knows. */
export function findFrozen(
  { starts, fingerprints, places }: Freezing,
  fingerprint: number,
  confirm: (place: number) => boolean,
): boolean {
  const chunk = chunkOf(fingerprint)
  for (let at = starts[chunk]!; at < starts[chunk + 1]!; at++) {
    if (fingerprints[at] === fingerprint && confirm(places[at]!)) return true
  }
  return false
}

function spansIn(places: Float64Array): Map<number, FrozenSpan> {
  const spans = new Map<number, FrozenSpan>()
  for (const place of places) {
    const seq = seqOf(place)
    const org = orgOf(place)
    const span = spans.get(org)
    if (span === undefined) spans.set(org, { org, firstSeq: seq, lastSeq: seq })
    else if (seq < span.firstSeq) span.firstSeq = seq
    else if (seq > span.lastSeq) span.lastSeq = seq
  }
  return spans
}

function orgOf(place: number): number {
  return (place - seqOf(place)) / placeOf(1, 0)
}

/** Writes the next chunk, inside a transaction. */
export function writeChunk(db: Database, frozen: Freezing, filter: IdFilter): void {
  const from = frozen.starts[frozen.nextChunk]!
  const to = frozen.starts[frozen.nextChunk + 1]!
  const words = new Uint32Array((to - from) * 2)
  for (let at = from; at < to; at++) {
    const fingerprint = frozen.fingerprints[at]!
    const place = frozen.places[at]!
    packEntry(words, at - from, fingerprint, seqOf(place) - frozen.spans.get(orgOf(place))!.firstSeq)
    filter.add(frozen.run, frozen.bits, fingerprint)
  }
  db.query('INSERT OR REPLACE INTO event_id_chunk (chunk, entries) VALUES (?, ?)').run(
    frozen.run * chunksPerRun + frozen.nextChunk,
    new Uint8Array(words.buffer),
  )
  frozen.nextChunk++
}

/** Writes what makes the run count: its spans and its filter. */
export function finishRun(db: Database, { run, spans, bits }: Freezing): void {
  const insert = db.query('INSERT INTO event_id_run (run, org, first_seq, last_seq) VALUES (?, ?, ?, ?)')
  for (const { org, firstSeq, lastSeq } of spans.values()) insert.run(run, org, firstSeq, lastSeq)
  db.query('INSERT OR REPLACE INTO event_id_filter (run, bits) VALUES (?, ?)').run(
    run,
    new Uint8Array(bits.buffer),
  )
}

export function readBits(db: Database, run: number): Uint32Array {
  const row = db
    .query<{ bits: Uint8Array }, [number]>('SELECT bits FROM event_id_filter WHERE run = ?')
    .get(run)
  if (row === null) throw new Error(`the filter of id run ${run} is missing`)
  return new Uint32Array(row.bits.buffer, row.bits.byteOffset, row.bits.byteLength / 4)
}
