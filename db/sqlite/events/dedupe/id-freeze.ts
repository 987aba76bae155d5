/** A full memory table on its way to disk as an id run, some chunks with each commit. */
import type { Database } from 'bun:sqlite'
import { newRunBits, type IdFilter } from './id-filter.ts'
import { chunksPerRun, packEntry } from './id-run.ts'
import type { IdTable } from './id-table.ts'
import { placeOf, seqOf } from '../blocks/row-key.ts'

export interface Freezing {
  run: number
  table: IdTable
  nextChunk: number
  bits: Uint32Array<ArrayBuffer>
}

export function freeze(run: number, table: IdTable): Freezing {
  return { run, table, nextChunk: 0, bits: newRunBits() }
}

function orgOf(place: number): number {
  return (place - seqOf(place)) / placeOf(1, 0)
}

/** Writes the next chunk, inside a transaction. */
export function writeChunk(db: Database, frozen: Freezing, filter: IdFilter): void {
  const { run, table, nextChunk, bits } = frozen
  const spans = table.spans()
  const entries: number[] = []
  table.chunk(nextChunk, (fingerprint, place) => {
    entries.push(fingerprint, seqOf(place) - spans.get(orgOf(place))!.firstSeq)
    filter.add(run, bits, fingerprint)
  })
  const words = new Uint32Array(entries.length)
  for (let at = 0; at < entries.length; at += 2) packEntry(words, at / 2, entries[at]!, entries[at + 1]!)
  db.query('INSERT OR REPLACE INTO event_id_chunk (chunk, entries) VALUES (?, ?)').run(
    run * chunksPerRun + nextChunk,
    new Uint8Array(words.buffer),
  )
  frozen.nextChunk++
}

/** Writes what makes the run count: its spans and its filter. */
export function finishRun(db: Database, { run, table, bits }: Freezing): void {
  const insert = db.query('INSERT INTO event_id_run (run, org, first_seq, last_seq) VALUES (?, ?, ?, ?)')
  for (const { org, firstSeq, lastSeq } of table.spans().values()) insert.run(run, org, firstSeq, lastSeq)
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
