/** Groups of id runs: merged, they cost a new id one cache line per group, and a known one a single row. */
import { chunkOf, chunksPerRun, findInChunk, idFilter, runsPerGroup } from './id-run.ts'
import {
  addToPart,
  groupFilters,
  partChunks,
  partMayHold,
  partsPerGroup,
  partWords,
  type ChunkFilter,
  type GroupFilters,
} from './group-filters.ts'
import type { Database } from '../../database.ts'

/*
 * Runs 32 g to 32 g + 31 are a group. When all of them are written, their chunks are merged where they are: the rows of
 * chunk c hold the same entries before and after, but then each holds those of all runs with the same next five bits.
 * So an id is looked up in one row, not in 32, and one filter of the group replaces the 32 of its runs.
 *
 *   row of event_id_chunk     before                  after
 *   (first + i) * 1024 + c    chunk c of run first+i  all entries of chunk c whose bits 38 to 42 are i
 *
 * A merged entry is two u32, little-endian:
 *   the fingerprint's lower 32 bits
 *   its bits 32 to 37, in 5 bits the run within the group, in 21 bits the distance as before
 *
 * event_id_group says how many chunks are merged. When all are, the filter is written, in 32 parts, into the rows of
 * event_id_filter that held those of the runs. After a start the parts are loaded one after the other, those that are
 * not written from the merged chunks. Until a part is loaded, its ids are looked up in the rows.
 */
const offsetBits = 21
const runBits = 5
const offsetMask = 2 ** offsetBits - 1
const runMask = runsPerGroup - 1

/** Visits an entry with the fingerprint; true ends the search. */
type Visit = (run: number, offset: number) => boolean

interface IdGroups {
  /** Calls `visit` with each entry of a merged chunk that has the fingerprint, until it returns true. */
  some(fingerprint: number, visit: Visit): boolean
  /** False when no merged chunk has the fingerprint. */
  mayHold(fingerprint: number): boolean
  /** Whether the entries of a run's chunk are in merged rows. */
  isMerged(run: number, chunk: number): boolean
  /** Inside a transaction: merges up to `chunks` more of a group. Returns whether all are merged. */
  merge(firstRun: number, chunks: number): boolean
  /** Whether a part of a filter is not written yet. */
  hasPart(): boolean
  /** Inside a transaction: writes such a part. False: there is none. */
  writePart(): boolean
  /** Loads a part of the filters, or frees that of groups that were dropped. False: nothing is left to do. */
  loadPart(): boolean
  drop(firstRun: number): void
  /** Reads the state of the tables again, but no filter. Groups without any of the runs are left out. */
  load(runs: ReadonlySet<number>): void
  /** The last run of the last group; -1 without groups. */
  lastRun(): number
}

interface GroupRow {
  firstRun: number
  chunks: number
  parts: number
}

export function firstOfGroup(run: number): number {
  return run - (run % runsPerGroup)
}

export function groupRows(db: Database): GroupRow[] {
  return db
    .query<GroupRow, []>('SELECT first_run AS firstRun, chunks, parts FROM event_id_group ORDER BY first_run')
    .all()
}

export function idGroups(db: Database): IdGroups {
  const lookup = groupLookup(db)
  let groups: GroupRow[] = []
  let lastRun = -1
  const filters = loadedFilters(db, () => groups)

  function groupAt(firstRun: number): GroupRow {
    let group = groups.find((candidate) => candidate.firstRun === firstRun)
    if (group === undefined) {
      group = { firstRun, chunks: 0, parts: 0 }
      groups.push(group)
    }
    return group
  }

  const unwritten = () =>
    groups.find((candidate) => candidate.chunks === chunksPerRun && candidate.parts < partsPerGroup)

  function isMerged(run: number, chunk: number): boolean {
    const firstRun = firstOfGroup(run)
    return groups.some((group) => group.firstRun === firstRun && chunk < group.chunks)
  }

  return {
    some(fingerprint, visit) {
      const chunk = chunkOf(fingerprint)
      // Of a rolled back transaction a filter knows too much.
      const inRows = (firstRun: number) => isMerged(firstRun, chunk) && lookup(firstRun, fingerprint, visit)
      if (filters.isLoaded(Math.floor(chunk / partChunks))) return filters.some(fingerprint, inRows)
      return groups.some(({ firstRun }) => inRows(firstRun))
    },
    mayHold: (fingerprint) => groups.length > 0 && filters.mayHold(fingerprint),
    isMerged,
    merge(firstRun, chunks) {
      const group = groupAt(firstRun)
      const end = Math.min(chunksPerRun, group.chunks + chunks)
      while (group.chunks < end) mergeChunk(db, group, filters.chunk(firstRun, group.chunks))
      writeRow(db, group)
      return end === chunksPerRun
    },
    hasPart: () => unwritten() !== undefined,
    writePart() {
      const group = unwritten()
      if (group === undefined) return false
      const { firstRun, parts } = group
      db.query('INSERT OR REPLACE INTO event_id_filter (run, bits) VALUES (?, ?)').run(
        firstRun + parts,
        new Uint8Array(filters.stored(firstRun, parts).buffer),
      )
      group.parts++
      writeRow(db, group)
      return true
    },
    loadPart: filters.loadNext,
    drop(firstRun) {
      groups = groups.filter((group) => group.firstRun !== firstRun)
      filters.dropped()
    },
    load(runs) {
      const rows = groupRows(db)
      const usedGroups = new Set(Array.from(runs, firstOfGroup))
      lastRun = Math.max(-1, ...rows.map(({ firstRun }) => firstRun + runsPerGroup - 1))
      groups = rows.filter(({ firstRun }) => usedGroups.has(firstRun))
    },
    lastRun: () => lastRun,
  }
}

interface LoadedFilters extends Omit<GroupFilters, 'load' | 'shrink'> {
  /** Loads a part, or frees the memory of dropped groups in one. False: nothing is left to do. */
  loadNext(): boolean
  dropped(): void
}

/** The filters of groups, part after part. Their memory stays as it is while groups are read again. */
function loadedFilters(db: Database, groups: () => readonly GroupRow[]): LoadedFilters {
  const filters = groupFilters()
  const isUsed = (firstRun: number) => groups().some((group) => group.firstRun === firstRun)
  let isComplete = false
  let hasDropped = false

  /** Returns whether any group has it. */
  function load(part: number): boolean {
    const merged = groups().filter(({ chunks }) => chunks > part * partChunks)
    filters.load(part, new Map(merged.map((group) => [group.firstRun, readPart(db, group, part)])))
    return merged.length > 0
  }

  return {
    ...filters,
    stored(firstRun, part) {
      if (!filters.isLoaded(part)) load(part)
      return filters.stored(firstRun, part)
    },
    loadNext() {
      for (let part = 0; part < partsPerGroup && !isComplete; part++)
        if (!filters.isLoaded(part) && load(part)) return true
      isComplete = true
      hasDropped &&= filters.shrink(isUsed)
      return hasDropped
    },
    dropped() {
      hasDropped = true
    },
  }
}

function writeRow(db: Database, { firstRun, chunks, parts }: GroupRow): void {
  db.query('INSERT OR REPLACE INTO event_id_group (first_run, chunks, parts) VALUES (?, ?, ?)').run(
    firstRun,
    chunks,
    parts,
  )
}

/** Merges the next chunk of all runs. A run whose events have expired has none. */
function mergeChunk(db: Database, group: GroupRow, filter: ChunkFilter | null): void {
  const { firstRun, chunks: chunk } = group
  const rows = readRows(db, firstRun, chunk)
  const sizes = new Uint32Array(runsPerGroup)
  for (const row of rows)
    for (let index = 1; row !== null && index < row.length; index += 2) sizes[row[index]! >>> 27]! += 2
  const merged = Array.from(sizes, (size) => new Uint32Array(size))
  sizes.fill(0)
  rows.forEach((row, run) => {
    for (let index = 0; row !== null && index < row.length; index += 2) {
      const low = row[index]!
      const word = row[index + 1]!
      const middle = word >>> offsetBits
      const to = middle >>> 6
      const target = merged[to]!
      target[sizes[to]!] = low
      target[sizes[to]! + 1] =
        ((middle & 63) << (runBits + offsetBits)) | (run << offsetBits) | (word & offsetMask)
      sizes[to]! += 2
      filter?.(chunk * 2 ** 11 + middle, low)
    }
  })
  const write = db.query('INSERT OR REPLACE INTO event_id_chunk (chunk, entries) VALUES (?, ?)')
  merged.forEach((words, index) => {
    if (words.length > 0 || rows[index] !== null)
      write.run((firstRun + index) * chunksPerRun + chunk, new Uint8Array(words.buffer))
  })
  group.chunks++
}

/** The rows of a chunk, by run or merged. */
function readRows(db: Database, firstRun: number, chunk: number): (Uint32Array | null)[] {
  const read = db.query<{ entries: Uint8Array }, [number]>(
    'SELECT entries FROM event_id_chunk WHERE chunk = ?',
  )
  return Array.from({ length: runsPerGroup }, (_, index) => {
    const entries = read.get((firstRun + index) * chunksPerRun + chunk)?.entries
    return entries === undefined ? null : wordsOf(entries)
  })
}

function wordsOf({ buffer, byteOffset, byteLength }: Uint8Array): Uint32Array {
  return new Uint32Array(buffer, byteOffset, byteLength / 4)
}

/** Looks a fingerprint up in a merged group. */
export function groupLookup(db: Database): (firstRun: number, fingerprint: number, visit: Visit) => boolean {
  const read = db.query<{ entries: Uint8Array }, [number]>(
    'SELECT entries FROM event_id_chunk WHERE chunk = ?',
  )
  return (firstRun, fingerprint, visit) => {
    const row = read.get(mergedRow(firstRun, fingerprint))
    return row !== null && findMerged(row.entries, firstRun, fingerprint, visit)
  }
}

/** The row of event_id_chunk that holds a fingerprint of a merged group. */
function mergedRow(firstRun: number, fingerprint: number): number {
  const next = (Math.floor(fingerprint / 2 ** 32) >>> 6) & runMask
  return (firstRun + next) * chunksPerRun + chunkOf(fingerprint)
}

function findMerged(entries: Uint8Array, firstRun: number, fingerprint: number, visit: Visit): boolean {
  const words = wordsOf(entries)
  const low = fingerprint >>> 0
  const middle = Math.floor(fingerprint / 2 ** 32) & 63
  for (let index = 0; index < words.length; index += 2) {
    if (words[index] !== low) continue
    const word = words[index + 1]!
    const run = firstRun + ((word >>> offsetBits) & runMask)
    if (word >>> (runBits + offsetBits) === middle && visit(run, word & offsetMask)) return true
  }
  return false
}

/** A part of a group's filter, from its row, or from the merged chunks when it is not written yet. */
function readPart(db: Database, { firstRun, chunks, parts }: GroupRow, part: number): Uint32Array {
  if (part < parts) return readBits(db, firstRun + part)
  const filter = new Uint32Array(partWords)
  const end = Math.min(chunks, (part + 1) * partChunks)
  for (let chunk = part * partChunks; chunk < end; chunk++)
    readRows(db, firstRun, chunk).forEach((row, next) => {
      for (let index = 0; row !== null && index < row.length; index += 2) {
        const middle = (next << 6) | (row[index + 1]! >>> (runBits + offsetBits))
        addToPart(filter, chunk * 2 ** 11 + middle, row[index]!)
      }
    })
  return filter
}

/** The filter of a run, or a part of that of its group. */
export function readBits(db: Database, run: number): Uint32Array {
  const row = db
    .query<{ bits: Uint8Array }, [number]>('SELECT bits FROM event_id_filter WHERE run = ?')
    .get(run)
  if (row === null) throw new Error(`the filter of id run ${run} is missing`)
  return wordsOf(row.bits)
}

/**
 * For `verify`: whether dedupe finds an entry of a run, filter first. Rows of a merged group stay in memory for its
 * other runs, 70 MB at most.
 */
export function runChecks(db: Database): (run: number) => (fingerprint: number, offset: number) => boolean {
  let loadedState = ''
  let rows = new Map<number, Uint8Array>()
  let parts = new Map<number, Uint32Array>()
  const read = db.query<{ entries: Uint8Array }, [number]>(
    'SELECT entries FROM event_id_chunk WHERE chunk = ?',
  )

  function entriesAt(row: number): Uint8Array {
    let entries = rows.get(row)
    if (entries === undefined) rows.set(row, (entries = read.get(row)?.entries ?? new Uint8Array()))
    return entries
  }

  function passes(group: GroupRow, fingerprint: number): boolean {
    const part = Math.floor(chunkOf(fingerprint) / partChunks)
    if (part >= group.parts) return true // a start makes it from the chunks
    let bits = parts.get(part)
    if (bits === undefined) parts.set(part, (bits = readBits(db, group.firstRun + part)))
    return partMayHold(bits, fingerprint)
  }

  return (run) => {
    const firstRun = firstOfGroup(run)
    const group = groupRows(db).find((row) => row.firstRun === firstRun) ?? { firstRun, chunks: 0, parts: 0 }
    const state = `${firstRun} ${group.chunks} ${group.parts}`
    if (state !== loadedState || group.chunks === 0)
      [loadedState, rows, parts] = [state, new Map(), new Map()]
    const filter = group.chunks === chunksPerRun ? null : idFilter()
    filter?.load(run, readBits(db, run))
    return (fingerprint, offset) => {
      const isIt: Visit = (candidateRun, candidateOffset) =>
        candidateRun === run && candidateOffset === offset
      if (chunkOf(fingerprint) < group.chunks) {
        const entries = entriesAt(mergedRow(firstRun, fingerprint))
        return passes(group, fingerprint) && findMerged(entries, firstRun, fingerprint, isIt)
      }
      if (filter?.some(fingerprint, () => true) !== true) return false
      return findInChunk(
        entriesAt(run * chunksPerRun + chunkOf(fingerprint)),
        fingerprint,
        (candidateOffset) => candidateOffset === offset,
      )
    }
  }
}
