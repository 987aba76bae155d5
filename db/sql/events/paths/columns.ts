/** Path columns in `event_path`: members of the metadata by position in a sealed segment, written and read. */
import type { Database, SqlValue } from '../../database.ts'
import { orgOf, segmentEvents, segmentOf, seqOf } from '../blocks/block.ts'
import { openSample, packSample, type SampledEvents } from './session-sample.ts'
import { inText, noHour, type Shredded, type ShreddedPath, shredder, type Shredder } from './shred.ts'

/*
 * Explore reads members of the metadata from these columns, because reading the texts takes twenty times as long. They
 * can be made again from the events. A segment's rows are written together:
 *   path ''         what is here: u32 length and JSON of `Contents`, then the hour of each position, packed
 *   JSON of a path  u16 width, u16 1 if a value is only in its event's text, the code of each position, then the
 *                   values as JSON, a NUL after each; code n is the n-th value, 0 is missing, and the highest number
 *                   of the width is `inText`; packed
 *   sessions        the sample of sessions (session-sample.ts)
 * Packed is zstd. Positions without an event have no hour and the code 0. What deletes an event of a segment deletes
 * the segment's rows, so that no value outlasts its event, and lowers `event_org.shredded`.
 */
interface Contents {
  /** The first hour, from which others are counted; null: they span too much, or events of the segment expired. */
  baseHour: number | null
  /** Paths without a column: their values are in the events. */
  without: string[]
  /** Whether there are paths that are not named here. */
  hasMore: boolean
}

/** Of all columns of a segment: 16 per event. The smallest ones are stored. */
const segmentBytesMax = 16 * segmentEvents
/** Hours of a segment are distances of two bytes from its first one. */
export const hourSpan = 0x1_0000
/** The distance of positions without an event. */
export const noOffset = 0xffff

function packPath({ values, positions, codes, entries }: ShreddedPath): Uint8Array {
  const knownValues = values!.values
  const width = knownValues.length < 0xff ? 1 : 2
  const dense = width === 1 ? new Uint8Array(segmentEvents) : new Uint16Array(segmentEvents)
  let hasLong = 0
  for (let index = 0; index < entries; index++) {
    if (codes[index] === inText) hasLong = 1
    dense[positions[index]!] = codes[index] === inText ? (width === 1 ? 0xff : inText) : codes[index]! + 1
  }
  const nul = Buffer.alloc(1)
  const head = new Uint8Array(Uint16Array.of(width, hasLong).buffer)
  const bytes = new Uint8Array(dense.buffer)
  return zstd(Buffer.concat([head, bytes, ...knownValues.flatMap((value) => [value, nul])]))
}

const zstd = (bytes: Uint8Array): Uint8Array =>
  Bun.zstdCompressSync(bytes as Uint8Array<ArrayBuffer>, { level: 3 })

function packHours(hours: Int32Array): Pick<Contents, 'baseHour'> & { packed: Uint8Array } {
  const knownHours = hours.filter((hour) => hour !== noHour)
  const base = knownHours.reduce((low, hour) => Math.min(low, hour), Infinity)
  const last = knownHours.reduce((high, hour) => Math.max(high, hour), -Infinity)
  if (last - base >= noOffset) return { baseHour: null, packed: new Uint8Array(0) }
  const offsets = Uint16Array.from(hours, (hour) => (hour === noHour ? noOffset : hour - base))
  return { baseHour: knownHours.length === 0 ? 0 : base, packed: zstd(new Uint8Array(offsets.buffer)) }
}

const keyOf = (path: string): string => JSON.stringify(path) // without NUL, which not every engine stores
/** Not in quotes, as paths are. */
const sampleKey = 'sessions'

/** Inside a transaction. */
function writeSegment(
  db: Database,
  org: number,
  segment: number,
  { hours, paths, hasMore, sample }: Shredded,
): void {
  const packed = paths
    .filter(({ values }) => values !== null)
    .map((shreddedPath) => ({ path: shreddedPath.path, packed: packPath(shreddedPath) }))
    .sort((a, b) => a.packed.length - b.packed.length)
  let bytes = 0
  const stored = packed.filter((packedPath) => (bytes += packedPath.packed.length) <= segmentBytesMax)
  const names = new Set(stored.map(({ path }) => path))
  const omittedPaths = paths.map(({ path }) => path).filter((path) => !names.has(path))
  const { baseHour, packed: packedHours } = packHours(hours)
  writeRows(db, org, segment, [
    ['', contentsOf({ baseHour, without: omittedPaths, hasMore }, packedHours)],
    ...stored.map((packedPath): [string, Uint8Array] => [keyOf(packedPath.path), packedPath.packed]),
    ...(sample === null ? [] : [[sampleKey, packSample(sample)] as [string, Uint8Array]]),
  ])
}

function writeRows(db: Database, org: number, segment: number, rows: [string, Uint8Array][]): void {
  db.query('DELETE FROM event_path WHERE org = ? AND segment = ?').run(org, segment)
  db.runEach(
    'INSERT INTO event_path (org, segment, path, packed) VALUES (?, ?, ?, ?)',
    rows.map(([path, packed]): SqlValue[] => [org, segment, path, packed]),
  )
}

function contentsOf(contents: Contents, hours: Uint8Array): Uint8Array {
  const json = Buffer.from(JSON.stringify(contents))
  return Buffer.concat([new Uint8Array(Uint32Array.of(json.length).buffer), json, hours])
}

/** In the transaction that deletes events of the block at `place`. */
export function dropPaths(db: Database, place: number): void {
  const org = orgOf(place)
  const segment = segmentOf(seqOf(place))
  const { changes } = db.query('DELETE FROM event_path WHERE org = ? AND segment = ?').run(org, segment)
  if (changes === 0) return
  db.query('UPDATE event_org SET shredded = ?1 WHERE num = ?2 AND shredded > ?1').run(segment, org)
}

/** In the transaction of retention: everything before an arrival is deleted. */
export function dropPathsBefore(db: Database, org: number, firstKept: number): void {
  const segment = segmentOf(firstKept)
  db.query('DELETE FROM event_path WHERE org = ? AND segment < ?').run(org, segment)
  if (firstKept % segmentEvents === 0) return
  // The rest of the segment is read from its events until it expires too.
  const rows = db.query<{ n: number }, [number, number]>(
    'SELECT count(*) AS n FROM event_path WHERE org = ? AND segment = ?',
  )
  if (rows.get(org, segment)!.n > 1) writeCut(db, org, segment)
}

function writeCut(db: Database, org: number, segment: number): void {
  const contents: Contents = { baseHour: null, without: [], hasMore: true }
  writeRows(db, org, segment, [['', contentsOf(contents, new Uint8Array(0))]])
}

/** Makes the missing columns of one segment after the other. */
interface PathWork {
  /** Some milliseconds of it; false when there is nothing to do. `inTransaction` runs what writes. */
  step(inTransaction: (write: () => void) => void): boolean
  /** Makes those of an organization's next segment, inside a transaction. */
  finishOne(org: number): void
  /** A segment may have been sealed. */
  wake(): void
  /** Events were deleted, or a transaction was rolled back. */
  forget(): void
}

interface Due {
  org: number
  segment: number
}

export function pathWork(db: Database): PathWork {
  let current: { due: Due; shredding: Shredder } | null = null
  let mayBeDue = true

  function step(inTransaction: (write: () => void) => void, org?: number): boolean {
    if (current === null) {
      const behind = firstBehind(db, org)
      if (behind === null) return false
      const segment = firstMissing(db, behind)
      if (segment === null) {
        inTransaction(() => moveOn(db, behind.org, behind.segments))
        return true
      }
      const due = { org: behind.org, segment }
      current = { due, shredding: shredder(db, due.org, segment) }
    }
    if (current.shredding.step()) return true
    const { due, shredding } = current
    current = null
    inTransaction(() => {
      const shredded = shredding.result()
      if (shredded === null) writeCut(db, due.org, due.segment)
      else writeSegment(db, due.org, due.segment, shredded)
      moveOn(db, due.org, due.segment + 1)
    })
    return true
  }

  return {
    step(inTransaction) {
      mayBeDue &&= step(inTransaction)
      return mayBeDue
    },
    finishOne(org) {
      current = null
      while (step((write) => write(), org) && current !== null);
    },
    wake() {
      mayBeDue = true
    },
    forget() {
      current = null
      mayBeDue = true
    },
  }
}

interface Behind {
  org: number
  shredded: number
  segments: number
}

/** One organization, or the first of all, some of whose sealed segments may lack columns. */
function firstBehind(db: Database, only?: number): Behind | null {
  const sql = `SELECT num AS org, shredded, segments FROM event_org
    WHERE shredded < segments ${only === undefined ? '' : 'AND num = ?'} ORDER BY num LIMIT 1`
  return db.query<Behind, number[]>(sql).get(...(only === undefined ? [] : [only]))
}

function firstMissing(db: Database, { org, shredded, segments }: Behind): number | null {
  const missing = db.query<{ segment: number }, [number, number, number]>(
    `SELECT segment FROM event_segment AS sealed WHERE org = ? AND segment >= ? AND segment < ? AND NOT EXISTS (
       SELECT 1 FROM event_path AS path
       WHERE path.org = sealed.org AND path.segment = sealed.segment AND path.path = '')
     ORDER BY segment LIMIT 1`,
  )
  return missing.get(org, shredded, segments)?.segment ?? null
}

function moveOn(db: Database, org: number, segment: number): void {
  db.query('UPDATE event_org SET shredded = ? WHERE num = ?').run(segment, org)
}

/** The columns of a sealed segment, for readers. */
export interface SegmentPaths {
  /** The first hour, and the hours behind it by position; null: the blocks have to be read. */
  hours: { base: number; offsets: Uint16Array } | null
  /** Null: the values are in the texts. */
  column(path: string): PathColumn | null
}

export interface PathColumn {
  /** By position. 0: missing. */
  codes: Uint8Array | Uint16Array
  /** JSON texts by code. Of 0: null. */
  values: (Buffer | null)[]
  /** The code of values that only the texts have; -1: there are none. */
  inText: number
}

const rowOf = 'SELECT packed FROM event_path WHERE org = ? AND segment = ? AND path = ?'

/** Null: its blocks have to be read. */
export function segmentSample(db: Database, org: number, segment: number): SampledEvents | null {
  const row = db.query<{ packed: Uint8Array }, [number, number, string]>(rowOf).get(org, segment, sampleKey)
  return row && openSample(row.packed)
}

/** Of one snapshot. */
export function segmentPaths(db: Database, org: number, segment: number): SegmentPaths | null {
  const query = db.query<{ packed: Uint8Array }, [number, number, string]>(rowOf)
  const head = query.get(org, segment, '')?.packed
  if (head === undefined) return null
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength)
  const end = 4 + bytes.readUInt32LE(0)
  const { baseHour, without: omittedPaths, hasMore } = JSON.parse(bytes.toString('utf8', 4, end)) as Contents
  return {
    hours: baseHour === null ? null : { base: baseHour, offsets: wide(inflated(bytes.subarray(end)), 0) },
    column(path) {
      const packed = query.get(org, segment, keyOf(path))?.packed
      if (packed !== undefined) return openColumn(inflated(packed))
      return hasMore || omittedPaths.includes(path) ? null : missing
    },
  }
}

const missing: PathColumn = { codes: new Uint8Array(segmentEvents), values: [null], inText: -1 }

const inflated = (packed: Uint8Array): Uint8Array => Bun.zstdDecompressSync(packed as Uint8Array<ArrayBuffer>)

const wide = (bytes: Uint8Array, from: number): Uint16Array =>
  new Uint16Array(bytes.buffer, bytes.byteOffset + from, segmentEvents)

const headBytes = 4

function openColumn(raw: Uint8Array): PathColumn {
  const [width, hasLong] = new Uint16Array(raw.buffer, raw.byteOffset, 2)
  const codes = width === 1 ? raw.subarray(headBytes, headBytes + segmentEvents) : wide(raw, headBytes)
  const values: (Buffer | null)[] = [null]
  const texts = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  for (let from = headBytes + segmentEvents * width!; from < texts.length;) {
    const end = texts.indexOf(0, from)
    values.push(texts.subarray(from, end))
    from = end + 1
  }
  return { codes, values, inText: hasLong === 0 ? -1 : width === 1 ? 0xff : inText }
}
