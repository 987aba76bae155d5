/** Groups of id runs: merged, they cost a new id one cache line per group, and a known one a single row. */
import { chunkOf, chunksPerRun, findInChunk, idFilter, runsPerGroup } from './id-run.ts'
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
 * event_id_filter that held those of the runs. A start makes the parts that are not written from the merged chunks.
 */
const offsetBits = 21
const runBits = 5
const offsetMask = 2 ** offsetBits - 1
const runMask = runsPerGroup - 1

/*
 * The filter has 16 bits per id, six of them set, all in the line of 64 bytes that the upper 18 bits choose: one in a
 * thousand other ids passes. The lines of a chunk follow each other, so merging it fills 16 KiB in a row.
 */
const lineWords = 16
const chunkLines = 256
const filterWords = chunksPerRun * chunkLines * lineWords
const partsPerGroup = runsPerGroup
const partWords = filterWords / partsPerGroup
const partChunks = chunksPerRun / partsPerGroup

/** Visits an entry with the fingerprint; true ends the search. */
type Visit = (run: number, offset: number) => boolean

export interface IdGroups {
  /** Calls `visit` with each entry of a merged chunk that has the fingerprint, until it returns true. */
  some(fingerprint: number, visit: Visit): boolean
  /** Whether the entries of a run's chunk are in merged rows. */
  isMerged(run: number, chunk: number): boolean
  /** Inside a transaction: merges up to `chunks` more of a group. Returns whether all are merged. */
  merge(firstRun: number, chunks: number): boolean
  /** Whether a part of a filter is not written yet. */
  hasPart(): boolean
  /** Inside a transaction: writes such a part. False: there is none. */
  writePart(): boolean
  drop(firstRun: number): void
  /** Reads the state of the tables again. Groups without any of the runs are left out. */
  load(runs: ReadonlySet<number>): void
  /** The last run of the last group; -1 without groups. */
  lastRun(): number
}

interface Group extends GroupRow {
  filter: Uint32Array
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
  let groups: Group[] = []
  let lastRun = -1

  function groupAt(firstRun: number): Group {
    let group = groups.find((one) => one.firstRun === firstRun)
    if (group === undefined) {
      group = { firstRun, chunks: 0, parts: 0, filter: new Uint32Array(filterWords) }
      groups.push(group)
    }
    return group
  }

  const unwritten = () => groups.find((one) => one.chunks === chunksPerRun && one.parts < partsPerGroup)

  return {
    some(fingerprint, visit) {
      const high = Math.floor(fingerprint / 2 ** 32)
      const low = fingerprint >>> 0
      const line = lineOf(high)
      const chunk = chunkOf(fingerprint)
      for (const { firstRun, chunks, filter } of groups)
        if (chunk < chunks && mayHold(filter, line, low) && lookup(firstRun, fingerprint, visit)) return true
      return false
    },
    isMerged(run, chunk) {
      const firstRun = firstOfGroup(run)
      return groups.some((group) => group.firstRun === firstRun && chunk < group.chunks)
    },
    merge(firstRun, chunks) {
      const group = groupAt(firstRun)
      const end = Math.min(chunksPerRun, group.chunks + chunks)
      while (group.chunks < end) mergeChunk(db, group)
      writeRow(db, group)
      return end === chunksPerRun
    },
    hasPart: () => unwritten() !== undefined,
    writePart() {
      const group = unwritten()
      if (group === undefined) return false
      const { firstRun, parts, filter } = group
      const part = filter.subarray(parts * partWords, (parts + 1) * partWords)
      db.query('INSERT OR REPLACE INTO event_id_filter (run, bits) VALUES (?, ?)').run(
        firstRun + parts,
        new Uint8Array(part.buffer, part.byteOffset, part.byteLength),
      )
      group.parts++
      writeRow(db, group)
      return true
    },
    drop(firstRun) {
      groups = groups.filter((group) => group.firstRun !== firstRun)
    },
    load(runs) {
      const rows = groupRows(db)
      const used = new Set(Array.from(runs, firstOfGroup))
      lastRun = Math.max(-1, ...rows.map(({ firstRun }) => firstRun + runsPerGroup - 1))
      // A filter in memory stays: of a transaction that was rolled back it knows too much, which is harmless.
      const known = new Map(groups.map((group) => [group.firstRun, group.filter]))
      groups = rows
        .filter(({ firstRun }) => used.has(firstRun))
        .map((row) => ({ ...row, filter: known.get(row.firstRun) ?? readFilter(db, row) }))
    },
    lastRun: () => lastRun,
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
function mergeChunk(db: Database, group: Group): void {
  const { firstRun, chunks: chunk, filter } = group
  const rows = readRows(db, firstRun, chunk)
  const sizes = new Uint32Array(runsPerGroup)
  for (const row of rows)
    for (let at = 1; row !== null && at < row.length; at += 2) sizes[row[at]! >>> 27]! += 2
  const merged = Array.from(sizes, (size) => new Uint32Array(size))
  sizes.fill(0)
  rows.forEach((row, run) => {
    for (let at = 0; row !== null && at < row.length; at += 2) {
      const low = row[at]!
      const word = row[at + 1]!
      const middle = word >>> offsetBits
      const to = middle >>> 6
      const into = merged[to]!
      into[sizes[to]!] = low
      into[sizes[to]! + 1] =
        ((middle & 63) << (runBits + offsetBits)) | (run << offsetBits) | (word & offsetMask)
      sizes[to]! += 2
      addTo(filter, lineOf(chunk * 2 ** 11 + middle), low)
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
  for (let at = 0; at < words.length; at += 2) {
    if (words[at] !== low) continue
    const word = words[at + 1]!
    const run = firstRun + ((word >>> offsetBits) & runMask)
    if (word >>> (runBits + offsetBits) === middle && visit(run, word & offsetMask)) return true
  }
  return false
}

/** `high`: the fingerprint without its lower 32 bits. */
function lineOf(high: number): number {
  return (high >>> 3) * lineWords
}

/** The second half of the places of an id's bits. */
function mixed(low: number): number {
  return Math.imul(low ^ (low >>> 16), 0x9e3779b1)
}

function addTo(filter: Uint32Array, line: number, low: number): void {
  const more = mixed(low)
  filter[line + (low & 15)]! |= 1 << ((low >>> 4) & 31)
  filter[line + ((low >>> 9) & 15)]! |= 1 << ((low >>> 13) & 31)
  filter[line + ((low >>> 18) & 15)]! |= 1 << ((low >>> 22) & 31)
  filter[line + (more & 15)]! |= 1 << ((more >>> 4) & 31)
  filter[line + ((more >>> 9) & 15)]! |= 1 << ((more >>> 13) & 31)
  filter[line + ((more >>> 18) & 15)]! |= 1 << ((more >>> 22) & 31)
}

/** Three bits at a time, because one in thirty passes three: the processor predicts that none does. */
function mayHold(filter: Uint32Array, line: number, low: number): boolean {
  const first =
    (filter[line + (low & 15)]! >>> ((low >>> 4) & 31)) &
    (filter[line + ((low >>> 9) & 15)]! >>> ((low >>> 13) & 31)) &
    (filter[line + ((low >>> 18) & 15)]! >>> ((low >>> 22) & 31))
  if ((first & 1) === 0) return false
  const more = mixed(low)
  const second =
    (filter[line + (more & 15)]! >>> ((more >>> 4) & 31)) &
    (filter[line + ((more >>> 9) & 15)]! >>> ((more >>> 13) & 31)) &
    (filter[line + ((more >>> 18) & 15)]! >>> ((more >>> 22) & 31))
  return (second & 1) === 1
}

function readFilter(db: Database, { firstRun, chunks, parts }: GroupRow): Uint32Array {
  const filter = new Uint32Array(filterWords)
  for (let part = 0; part < parts; part++)
    filter.set(readBits(db, firstRun + part).subarray(0, partWords), part * partWords)
  for (let chunk = parts * partChunks; chunk < chunks; chunk++)
    readRows(db, firstRun, chunk).forEach((row, next) => {
      for (let at = 0; row !== null && at < row.length; at += 2) {
        const middle = (next << 6) | (row[at + 1]! >>> (runBits + offsetBits))
        addTo(filter, lineOf(chunk * 2 ** 11 + middle), row[at]!)
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
  let of = ''
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
    return mayHold(bits, lineOf(Math.floor(fingerprint / 2 ** 32)) - part * partWords, fingerprint >>> 0)
  }

  return (run) => {
    const firstRun = firstOfGroup(run)
    const group = groupRows(db).find((row) => row.firstRun === firstRun) ?? { firstRun, chunks: 0, parts: 0 }
    const state = `${firstRun} ${group.chunks} ${group.parts}`
    if (state !== of || group.chunks === 0) [of, rows, parts] = [state, new Map(), new Map()]
    const filter = group.chunks === chunksPerRun ? null : idFilter()
    filter?.load(run, readBits(db, run))
    return (fingerprint, offset) => {
      const isIt: Visit = (of, at) => of === run && at === offset
      if (chunkOf(fingerprint) < group.chunks) {
        const entries = entriesAt(mergedRow(firstRun, fingerprint))
        return passes(group, fingerprint) && findMerged(entries, firstRun, fingerprint, isIt)
      }
      if (filter?.some(fingerprint, () => true) !== true) return false
      return findInChunk(
        entriesAt(run * chunksPerRun + chunkOf(fingerprint)),
        fingerprint,
        (at) => at === offset,
      )
    }
  }
}
