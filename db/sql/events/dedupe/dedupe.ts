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
import { placeOf, seqOf } from '../blocks/block.ts'
import type { Database } from '../../database.ts'
import type { KnownIds } from '../write/append.ts'
import type { Staging } from '../write/org-state.ts'

export interface Dedupe {
  /** Whether the organization has an event of this fingerprint whose seq `confirm` accepts. */
  isKnown(org: number, fingerprint: number, confirm: (seq: number) => boolean): boolean
  add(org: number, seq: number, fingerprint: number): void
  /** Inside the transaction that stores `events` new ones: writes its share of a run, and merges runs. */
  step(events: number): void
  /** Merges a few chunks in a transaction, when nobody waits. False: nothing is left to merge. */
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
    const begun = freeze(nextRun++, table)
    ;[table, spare] = [spare ?? idTable(idsPerRun), null]
    return begun
  }

  function write(frozen: Freezing, chunks: number): void {
    if (!writeChunks(db, frozen, written.filter, chunks)) return
    written.finished(frozen.run, frozen.table.spans().values())
    frozen.table.clear()
    spare = frozen.table
    freezing = null
  }

  return {
    isKnown(org, fingerprint, confirm) {
      const base = placeOf(org, 0)
      const here = (place: number) => place - seqOf(place) === base && confirm(seqOf(place))
      if (table.find(fingerprint, here)) return true
      if (freezing !== null && freezing.table.find(fingerprint, here)) return true
      return written.isKnown(org, fingerprint, confirm)
    },
    add,
    step(events) {
      if (freezing === null && table.size() >= idsPerRun) freezing = begin()
      if (freezing !== null) write(freezing, Math.ceil((events * chunksPerRun) / (idsPerRun * part)))
      const chunks = (events * chunksPerRun * mergeFaster) / (idsPerRun * runsPerGroup * part)
      written.merge(chunks, endRun())
    },
    spare(transact) {
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

  function forget(run: number): void {
    filter.drop(run)
    filtered.delete(run)
  }

  return {
    filter,
    isKnown(org: number, fingerprint: number, confirm: (seq: number) => boolean): boolean {
      const runs = firstSeqs.get(org)
      if (runs === undefined) return false
      const inRun = (run: number, offset: number) => {
        const firstSeq = runs.get(run)
        return firstSeq !== undefined && confirm(firstSeq + offset)
      }
      if (groups.some(fingerprint, inRun)) return true
      return filter.some(fingerprint, (run) => {
        const firstSeq = runs.get(run)
        if (firstSeq === undefined || groups.isMerged(run, chunkOf(fingerprint))) return false
        return lookup(run, firstSeq, fingerprint, confirm)
      })
    },
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
      for (const run of runs.all) {
        if (groups.isMerged(run, chunksPerRun - 1)) continue
        if (!filtered.has(run)) filter.load(run, readBits(db, run))
        filtered.add(run)
      }
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
  const all = new Set<number>()
  for (const span of readSpans(db)) {
    all.add(span.run)
    addSpan(firstSeqs, span.run, span)
    flushed.set(span.org, Math.max(span.lastSeq, flushed.get(span.org) ?? 0))
  }
  return { firstSeqs, flushed, all }
}

/** The ids as batches are staged: those in staged blocks too. `storedHas` reads a stored id. */
export function knownIds(
  known: Dedupe,
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

  return {
    has(state, text) {
      org = state
      id = text
      print = fingerprint(org.num, id)
      return known.isKnown(org.num, print, confirm)
    },
    add: ({ num }, seq) => known.add(num, seq, print),
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
  for (let at = 0; at < entries.length; at += 2) packEntry(words, at / 2, entries[at]!, entries[at + 1]!)
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

/** The memory table of dedupe: the position of every event that is not in an id run yet, by fingerprint. */
const empty = -1
const fingerprintSpan = 2 ** 53

interface IdTable {
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
  let last: RunSpan | undefined // usually also the span of the next one
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
