/** Exact dedupe as a log-structured tree: memory table, Bloom filter, sorted runs, the id itself to confirm. */
import type { Database } from 'bun:sqlite'
import { idFilter } from './id-filter.ts'
import { finishRun, freeze, readBits, writeChunk, type Freezing } from './id-freeze.ts'
import { chunksPerRun, runIds, runLookup, type RunSpan } from './id-run.ts'
import { idTable, type IdTable } from './id-table.ts'
import { placeOf, seqOf } from '../blocks/row-key.ts'

export interface Dedupe {
  /** Whether the organization has an event of this fingerprint whose seq `confirm` takes. */
  isKnown(org: number, fingerprint: number, confirm: (seq: number) => boolean): boolean
  add(org: number, seq: number, fingerprint: number): void
  /** Inside the transaction that stores `events` new ones: writes its share of a run. */
  step(events: number): void
  /** Runs were taken from the tables, in a transaction that is committed. */
  drop(runs: readonly number[]): void
  /** Reads the state of the tables anew; `unflushed` gives the ids past an organization's last run. */
  load(unflushed: (flushedSeq: ReadonlyMap<number, number>, add: Dedupe['add']) => void): void
}

/** A run is written while this part of the next one arrives. */
const freezePart = 0.25

export function dedupe(db: Database, idsPerRun = runIds, part = freezePart): Dedupe {
  const lookup = runLookup(db)
  const filter = idFilter()
  const filtered = new Set<number>() // runs that are in the filter
  let firstSeqs = new Map<number, Map<number, number>>() // org -> run -> first seq
  let nextRun = 0
  let table = idTable(idsPerRun)
  let spare: IdTable | null = null // takes the table's place while that is written
  let freezing: Freezing | null = null

  const add: Dedupe['add'] = (org, seq, fingerprint) => table.add(org, seq, fingerprint)

  return {
    isKnown(org, fingerprint, confirm) {
      const base = placeOf(org, 0)
      const here = (place: number) => place - seqOf(place) === base && confirm(seqOf(place))
      if (table.find(fingerprint, here)) return true
      if (freezing !== null && freezing.table.find(fingerprint, here)) return true
      const runs = firstSeqs.get(org)
      if (runs === undefined) return false
      return filter.some(fingerprint, (run) => {
        const firstSeq = runs.get(run)
        return firstSeq !== undefined && lookup(run, firstSeq, fingerprint, confirm)
      })
    },
    add,
    step(events) {
      if (freezing === null && table.size() >= idsPerRun) {
        freezing = freeze(nextRun++, table)
        table = spare ?? idTable(idsPerRun)
        spare = null
      }
      if (freezing === null) return
      const chunks = Math.ceil((events * chunksPerRun) / (idsPerRun * part))
      const last = Math.min(chunksPerRun, freezing.nextChunk + chunks)
      while (freezing.nextChunk < last) writeChunk(db, freezing, filter)
      if (last < chunksPerRun) return
      finishRun(db, freezing)
      filtered.add(freezing.run)
      for (const span of freezing.table.spans().values()) addSpan(firstSeqs, freezing.run, span)
      spare = freezing.table
      spare.clear()
      freezing = null
    },
    drop(runs) {
      for (const run of runs) {
        filter.drop(run)
        filtered.delete(run)
      }
      firstSeqs = new Map()
      for (const span of readSpans(db)) addSpan(firstSeqs, span.run, span)
    },
    load(unflushed) {
      firstSeqs = new Map()
      freezing = null
      table.clear()
      nextRun = 0
      const flushed = new Map<number, number>()
      for (const span of readSpans(db)) {
        addSpan(firstSeqs, span.run, span)
        flushed.set(span.org, Math.max(span.lastSeq, flushed.get(span.org) ?? 0))
        nextRun = Math.max(nextRun, span.run + 1)
        if (filtered.has(span.run)) continue
        filter.load(span.run, readBits(db, span.run))
        filtered.add(span.run)
      }
      unflushed(flushed, add)
    },
  }
}

function addSpan(firstSeqs: Map<number, Map<number, number>>, run: number, { org, firstSeq }: RunSpan): void {
  const runs = firstSeqs.get(org) ?? new Map<number, number>()
  firstSeqs.set(org, runs.set(run, firstSeq))
}

function readSpans(db: Database): (RunSpan & { run: number })[] {
  return db
    .query<RunSpan & { run: number }, []>(
      'SELECT run, org, first_seq AS firstSeq, last_seq AS lastSeq FROM event_id_run ORDER BY run',
    )
    .all()
}
