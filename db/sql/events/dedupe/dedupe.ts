/** Exact dedupe as a log-structured tree: memory table, filters, runs and groups of runs, then the stored id. */
import {
  type IdFilter,
  type RunSpan,
  chunkOf,
  chunksPerRun,
  idFilter,
  newRunBits,
  packEntry,
  runIds,
  runLookup,
  runsPerGroup,
} from './id-run.ts'
import { firstOfGroup, idGroups, readBits } from './id-group.ts'
import { idTable, type IdTable } from './id-table.ts'
import { placeOf, seqOf } from '../blocks/block.ts'
import type { Database } from '../../database.ts'
import type { KnownIds } from '../write/append.ts'
import type { Staging } from '../write/org-state.ts'

export interface Dedupe {
  /**
   * Whether the organization has an event of this fingerprint whose seq `confirm` accepts. `mayBeMerged`: what the
   * method of this name said.
   */
  isKnown(org: number, fingerprint: number, confirm: (seq: number) => boolean, mayBeMerged?: boolean): boolean
  /** False when no group has the fingerprint, until the next transaction. */
  mayBeMerged(fingerprint: number): boolean
  /** After a start, before this many lookups: loads some of the filters that they need. */
  prepare(lookups: number): void
  add(org: number, seq: number, fingerprint: number): void
  /** Inside the transaction that stores `events` new ones: writes its share of a run, and merges runs. */
  step(events: number): void
  /** Loads a part of the filters, or merges a few chunks in a transaction, when nobody waits. False: all is done. */
  spare(transact: (write: () => void) => void): boolean
  /** Inside a transaction: writes all ids in memory as runs, because the next ones are too far from them for one. */
  settle(): void
  /** Runs were deleted in a committed transaction. */
  drop(runs: readonly number[]): void
  /** Reads the state of the tables again. `unflushed` returns the ids after an organization's last run. */
  load(unflushed: (flushedSeq: ReadonlyMap<number, number>, add: Dedupe['add']) => void): void
}

/** A run is written while this share of the next one arrives. */
const freezePart = 0.25
/** The runs of a group are merged four times as fast as a run is written: two chunks of 1,024 per 1,000 events. */
const mergeFaster = 4
/** Neighbouring chunks share pages, so a commit merges several or none. */
const mergedAtOnce = 6
const mergedAtOnceMax = 32
/** Looking this many ids up in the rows of all groups takes as long as loading a part of their filters. */
const lookupsPerPart = 100

export function dedupe(db: Database, idsPerRun = runIds, part = freezePart): Dedupe {
  const written = writtenIds(db)
  let nextRun = 0
  let table = idTable(idsPerRun)
  let spare: IdTable | null = null // replaces the table while that is written
  let freezing: Freezing | null = null

  const add: Dedupe['add'] = (org, seq, fingerprint) => table.add(org, seq, fingerprint)

  /** Runs before it are complete. */
  const endRun = () => freezing?.run ?? nextRun

  function begin(): Freezing {
    const newFreezing = freeze(nextRun++, table)
    ;[table, spare] = [spare ?? idTable(idsPerRun), null]
    return newFreezing
  }

  function write(frozen: Freezing, chunks: number): void {
    if (!writeChunks(db, frozen, written.filter, chunks)) return
    written.finished(frozen.run, frozen.table.spans().values())
    frozen.table.clear()
    spare = frozen.table
    freezing = null
  }

  return {
    isKnown(org, fingerprint, confirm, mayBeMerged = true) {
      const base = placeOf(org, 0)
      const isMatch = (place: number) => place - seqOf(place) === base && confirm(seqOf(place))
      if (table.find(fingerprint, isMatch)) return true
      if (freezing !== null && freezing.table.find(fingerprint, isMatch)) return true
      return written.isKnown(org, fingerprint, confirm, mayBeMerged)
    },
    mayBeMerged: written.mayBeMerged,
    prepare(lookups) {
      for (let parts = Math.ceil(lookups / lookupsPerPart); parts > 0 && written.loadPart(); parts--);
    },
    add,
    step(events) {
      if (freezing === null && table.size() >= idsPerRun) freezing = begin()
      if (freezing !== null) write(freezing, Math.ceil((events * chunksPerRun) / (idsPerRun * part)))
      const chunks = (events * chunksPerRun * mergeFaster) / (idsPerRun * runsPerGroup * part)
      written.merge(chunks, endRun())
    },
    spare(transact) {
      if (written.loadPart()) return true
      if (!written.isMergeDue(endRun())) return false
      transact(() => written.merge(mergedAtOnce, endRun()))
      return true
    },
    settle() {
      if (freezing !== null) write(freezing, chunksPerRun)
      if (table.size() > 0) write(begin(), chunksPerRun)
    },
    drop: written.drop,
    load(unflushed) {
      freezing = null
      table.clear()
      const { lastRun, flushed } = written.load()
      nextRun = lastRun + 1
      unflushed(flushed, add)
    },
  }
}

/** The ids on disk: in runs, and in the groups into which runs are merged. */
function writtenIds(db: Database) {
  const lookup = runLookup(db)
  const filter = idFilter()
  const groups = idGroups(db)
  const filtered = new Set<number>() // runs that are in the filter: those of no merged group
  let firstSeqs = new Map<number, Map<number, number>>() // org -> run -> first seq
  let mergeDue = 0 // chunks

  const isKnown: Dedupe['isKnown'] = (org, fingerprint, confirm, mayBeMerged) => {
    const runs = firstSeqs.get(org)
    if (runs === undefined) return false
    const inRun = (run: number, offset: number) => {
      const firstSeq = runs.get(run)
      return firstSeq !== undefined && confirm(firstSeq + offset)
    }
    if (mayBeMerged && groups.some(fingerprint, inRun)) return true
    return filter.some(fingerprint, (run) => {
      const firstSeq = runs.get(run)
      if (firstSeq === undefined || groups.isMerged(run, chunkOf(fingerprint))) return false
      return lookup(run, firstSeq, fingerprint, confirm)
    })
  }

  function forget(run: number): void {
    filter.drop(run)
    filtered.delete(run)
  }

  return {
    filter,
    mayBeMerged: groups.mayHold,
    loadPart: groups.loadPart,
    isKnown,
    finished(run: number, spans: Iterable<RunSpan>): void {
      filtered.add(run)
      for (const span of spans) addSpan(firstSeqs, run, span)
    },
    isMergeDue: (endRun: number) => groups.hasPart() || groupBefore(endRun, filtered) !== null,
    /** Inside a transaction: merges a share of the oldest group whose runs are all before `endRun`. */
    merge(chunks: number, endRun: number): void {
      if (groups.writePart()) return
      const firstRun = groupBefore(endRun, filtered)
      if (firstRun === null) return
      mergeDue += chunks
      if (mergeDue < mergedAtOnce) return
      const now = Math.min(mergedAtOnceMax, Math.floor(mergeDue))
      mergeDue = 0
      if (!groups.merge(firstRun, now)) return
      for (let run = firstRun; run < firstRun + runsPerGroup; run++) forget(run)
    },
    drop(runs: readonly number[]): void {
      for (const run of runs) {
        forget(run)
        groups.drop(run)
      }
      firstSeqs = readRuns(db).firstSeqs
    },
    /** `lastRun`: -1 when there is none. */
    load(): { lastRun: number; flushed: ReadonlyMap<number, number> } {
      const runs = readRuns(db)
      firstSeqs = runs.firstSeqs
      groups.load(runs.all)
      // The last one first, because it decides how wide the lanes are.
      const unmerged = [...runs.all].reverse().filter((run) => !groups.isMerged(run, chunksPerRun - 1))
      for (const run of unmerged) if (!filtered.has(run)) filter.load(run, readBits(db, run))
      for (const run of unmerged) filtered.add(run)
      return { lastRun: Math.max(groups.lastRun(), ...runs.all), flushed: runs.flushed }
    },
  }
}

/** The first run of the oldest group of these runs, if all of its runs are before another. */
function groupBefore(endRun: number, runs: ReadonlySet<number>): number | null {
  const firstRun = firstOfGroup(Math.min(...runs))
  return firstRun + runsPerGroup <= endRun ? firstRun : null // without runs it is infinite
}

/** The runs in the tables: where each begins, by organization, and which arrivals of each organization have one. */
function readRuns(db: Database) {
  const firstSeqs = new Map<number, Map<number, number>>()
  const flushed = new Map<number, number>()
  const runs = new Set<number>()
  for (const span of readSpans(db)) {
    runs.add(span.run)
    addSpan(firstSeqs, span.run, span)
    flushed.set(span.org, Math.max(span.lastSeq, flushed.get(span.org) ?? 0))
  }
  return { firstSeqs, flushed, all: runs }
}

/** The ids as batches are staged: those in staged blocks too. `storedHas` reads a stored id. */
export function knownIds(
  dedupeState: Dedupe,
  fingerprint: (org: number, id: string) => number,
  storedHas: (org: number, seq: number, id: string) => boolean,
): KnownIds {
  // One closure for all events, which reads these variables.
  let org: Staging
  let id = ''
  let print = 0
  const confirm = (seq: number) => {
    const first = org.staged[0]?.firstSeq ?? Infinity
    return seq < first ? storedHas(org.num, seq, id) : stagedId(org, seq) === id
  }
  let prints = new Float64Array(1_024)
  let merged = new Uint8Array(1_024)

  return {
    prepare({ num }, ids) {
      dedupeState.prepare(ids.length)
      if (prints.length < ids.length)
        [prints, merged] = [new Float64Array(ids.length), new Uint8Array(ids.length)]
      for (let index = 0; index < ids.length; index++) prints[index] = fingerprint(num, ids[index]!)
      // In a loop of its own, in which the processor waits for the memory of several ids at once.
      for (let index = 0; index < ids.length; index++)
        merged[index] = dedupeState.mayBeMerged(prints[index]!) ? 1 : 0
    },
    has(state, text, index) {
      org = state
      id = text
      print = prints[index]!
      return dedupeState.isKnown(org.num, print, confirm, merged[index] === 1)
    },
    add: ({ num }, seq) => dedupeState.add(num, seq, print),
  }
}

/** The id of an event that is not committed yet. */
function stagedId(org: Staging, seq: number): string | null {
  const block = org.staged.findLast(({ firstSeq }) => firstSeq <= seq)
  return block?.content.ids[seq - block.firstSeq] ?? null
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

/** A full memory table that is being written as an id run, some chunks per commit. */
interface Freezing {
  run: number
  table: IdTable
  nextChunk: number
  bits: Uint32Array<ArrayBuffer>
}

function freeze(run: number, table: IdTable): Freezing {
  return { run, table, nextChunk: 0, bits: newRunBits() }
}

function orgOf(place: number): number {
  return (place - seqOf(place)) / placeOf(1, 0)
}

/** Inside a transaction. Returns whether the run is complete. */
function writeChunks(db: Database, frozen: Freezing, filter: IdFilter, chunks: number): boolean {
  const last = Math.min(chunksPerRun, frozen.nextChunk + chunks)
  while (frozen.nextChunk < last) writeChunk(db, frozen, filter)
  if (last < chunksPerRun) return false
  finishRun(db, frozen)
  return true
}

/** Writes the next chunk, inside a transaction. */
function writeChunk(db: Database, frozen: Freezing, filter: IdFilter): void {
  const { run, table, nextChunk, bits } = frozen
  const spans = table.spans()
  const entries: number[] = []
  table.chunk(nextChunk, (fingerprint, place) => {
    entries.push(fingerprint, seqOf(place) - spans.get(orgOf(place))!.firstSeq)
    filter.add(run, bits, fingerprint)
  })
  const words = new Uint32Array(entries.length)
  for (let index = 0; index < entries.length; index += 2)
    packEntry(words, index / 2, entries[index]!, entries[index + 1]!)
  db.query('INSERT OR REPLACE INTO event_id_chunk (chunk, entries) VALUES (?, ?)').run(
    run * chunksPerRun + nextChunk,
    new Uint8Array(words.buffer),
  )
  frozen.nextChunk++
}

/** Writes the spans and the filter, which make the run valid. */
function finishRun(db: Database, { run, table, bits }: Freezing): void {
  const insert = db.query('INSERT INTO event_id_run (run, org, first_seq, last_seq) VALUES (?, ?, ?, ?)')
  for (const { org, firstSeq, lastSeq } of table.spans().values()) insert.run(run, org, firstSeq, lastSeq)
  db.query('INSERT OR REPLACE INTO event_id_filter (run, bits) VALUES (?, ?)').run(
    run,
    new Uint8Array(bits.buffer),
  )
}
