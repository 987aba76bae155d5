/** The segment index: posting lists of each value in a sealed segment, the sets they store, and Bloom filters. */
import { members } from '../blocks/fields.ts'
import { segmentEvents } from '../blocks/block.ts'
import type { Database, SqlValue } from '../../database.ts'

/*
 * A value with at least `ownRowMin` positions in the segment has a row in event_posting, with a stored set. The others
 * of a field share rows of event_posting_rest, each with the codes from `first_code` up: u32 count, count * u32 code
 * (ascending), count * u32 end, then the lists; end counts from the first list's start.
 */
const ownRowMin = 256
const restBytesMax = 1_900 // per shared row: what the engines store within a page

/** Writes the index of one field. `codes[position]` is its code, of `events` positions. */
export function writePostings(
  db: Database,
  listKey: { org: number; segment: number; member: number },
  codes: Uint32Array,
  events: number,
): void {
  const positionsByCode = new Map<number, number[]>()
  for (let position = 0; position < events; position++) {
    const positions = positionsByCode.get(codes[position]!)
    if (positions === undefined) positionsByCode.set(codes[position]!, [position])
    else positions.push(position)
  }
  if (filteredFields.includes(listKey.member))
    writeFilter(db, listKey, positionsByCode.keys(), positionsByCode.size)
  const ownRows: SqlValue[][] = []
  const rare: [code: number, positions: number[]][] = []
  for (const entry of positionsByCode) {
    if (entry[1].length < ownRowMin) rare.push(entry)
    else ownRows.push([listKey.org, listKey.member, entry[0], listKey.segment, packSet(entry[1])])
  }
  db.runEach(
    `INSERT INTO event_posting (org, member, code, segment, positions) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (org, member, code, segment) DO UPDATE SET positions = excluded.positions`,
    ownRows,
  )
  writeRest(
    db,
    listKey,
    rare.sort(([a], [b]) => a - b),
  )
}

function writeRest(
  db: Database,
  listKey: { org: number; segment: number; member: number },
  rare: [code: number, positions: number[]][],
): void {
  const rows: SqlValue[][] = []
  const add = (until: number) =>
    rows.push([
      listKey.org,
      listKey.segment,
      listKey.member,
      rare[from]![0],
      packRest(rare.slice(from, until), lists),
    ])
  let from = 0
  let bytes = 4
  let lists: Uint8Array[] = []
  rare.forEach(([, positions], index) => {
    const list = packList(positions)
    if (bytes + list.length + 8 > restBytesMax) {
      add(index)
      from = index
      bytes = 4
      lists = []
    }
    bytes += list.length + 8
    lists.push(list)
  })
  if (lists.length > 0) add(rare.length)
  db.runEach(
    `INSERT INTO event_posting_rest (org, segment, member, first_code, entries) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (org, segment, member, first_code) DO UPDATE SET entries = excluded.entries`,
    rows,
  )
}

function packRest(entries: [code: number, positions: number[]][], lists: Uint8Array[]): Uint8Array {
  const head = new Uint32Array(1 + entries.length * 2)
  head[0] = entries.length
  let end = 0
  entries.forEach(([code], index) => {
    end += lists[index]!.length
    head[1 + index] = code
    head[1 + entries.length + index] = end
  })
  return Buffer.concat([new Uint8Array(head.buffer), ...lists])
}

/** The codes of a field in a sealed segment. */
export function codesInSegment(
  db: Database,
  listKey: { org: number; segment: number; member: number },
): number[] {
  const ownRows = db
    .query<{ code: number }, [number, number, number]>(
      'SELECT code FROM event_posting WHERE org = ? AND member = ? AND segment = ?',
    )
    .all(listKey.org, listKey.member, listKey.segment)
  const restRows = db
    .query<{ entries: Uint8Array }, [number, number, number]>(
      'SELECT entries FROM event_posting_rest WHERE org = ? AND segment = ? AND member = ?',
    )
    .all(listKey.org, listKey.segment, listKey.member)
  return [...ownRows.map(({ code }) => code), ...restRows.flatMap(({ entries }) => codesOfRest(entries))]
}

function codesOfRest(entries: Uint8Array): number[] {
  const view = new DataView(entries.buffer, entries.byteOffset, entries.byteLength)
  return Array.from({ length: view.getUint32(0, true) }, (_, index) => view.getUint32(4 + index * 4, true))
}

export interface PostingReader {
  /** Adds the positions of a value in a segment to a bitmap. Returns whether there were any. */
  add(bitmap: Bitmap, org: number, segment: number, member: number, code: number): boolean
  /** Reads the lists of values in some segments before `add` asks for them, if the field has no filters. */
  ahead(org: number, segments: readonly number[], values: readonly [member: number, code: number][]): void
}

interface Lists {
  own: Uint8Array | null
  shared: Uint8Array | null
}

/** For one snapshot: it caches the filters that it read. */
export function postingReader(db: Database): PostingReader {
  const listQuery = db.query<{ positions: Uint8Array }, [number, number, number, number]>(
    'SELECT positions FROM event_posting WHERE org = ? AND member = ? AND code = ? AND segment = ?',
  )
  const restQuery = db.query<{ entries: Uint8Array }, [number, number, number, number]>(
    `SELECT entries FROM event_posting_rest
     WHERE org = ? AND segment = ? AND member = ? AND first_code <= ? ORDER BY first_code DESC LIMIT 1`,
  )
  const filter = db.query<{ bits: Uint8Array }, [number, number, number]>(
    'SELECT bits FROM event_posting_filter WHERE org = ? AND member = ? AND segment = ?',
  )
  const segmentsQuery = db.query<Lists & { segment: number }, [number, number, number, string]>(
    `SELECT w.value AS segment,
       (SELECT positions FROM event_posting
        WHERE org = ?1 AND member = ?2 AND code = ?3 AND segment = w.value) AS own,
       (SELECT entries FROM event_posting_rest WHERE org = ?1 AND segment = w.value AND member = ?2
        AND first_code <= ?3 ORDER BY first_code DESC LIMIT 1) AS shared
     FROM ${db.dialect.numbersOf('?4')} AS w`,
  )
  let last: { member: number; segment: number; bits: Uint8Array | null } | null = null
  const cachedLists = new Map<string, Lists>()
  const nameOf = (segment: number, member: number, code: number) => `${segment} ${member} ${code}`

  function passes(org: number, segment: number, member: number, code: number): boolean {
    if (last?.member !== member || last.segment !== segment)
      last = { member, segment, bits: filter.get(org, member, segment)?.bits ?? null }
    return last.bits === null || mayHold(last.bits, code)
  }

  return {
    add(bitmap, org, segment, member, code) {
      if (filteredFields.includes(member) && !passes(org, segment, member, code)) return false
      const lists = cachedLists.get(nameOf(segment, member, code))
      const set =
        lists === undefined ? (listQuery.get(org, member, code, segment)?.positions ?? null) : lists.own
      if (set !== null) {
        addSet(bitmap, set)
        return true
      }
      const shared = lists === undefined ? restQuery.get(org, segment, member, code)?.entries : lists.shared
      const list = shared ? findInRest(shared, code) : null
      if (list !== null) addList(bitmap, list)
      return list !== null
    },
    ahead(org, segments, values) {
      cachedLists.clear()
      for (const [member, code] of values) {
        if (segments.length < 2 || filteredFields.includes(member)) continue
        for (const { segment, ...lists } of segmentsQuery.all(org, member, code, JSON.stringify(segments)))
          cachedLists.set(nameOf(segment, member, code), lists)
      }
    },
  }
}

function findInRest(entries: Uint8Array, code: number): Uint8Array | null {
  const view = new DataView(entries.buffer, entries.byteOffset, entries.byteLength)
  const count = view.getUint32(0, true)
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >>> 1
    if (view.getUint32(4 + middle * 4, true) < code) low = middle + 1
    else high = middle
  }
  if (low === count || view.getUint32(4 + low * 4, true) !== code) return null
  const ends = 4 + count * 4
  const lists = ends + count * 4
  const start = low === 0 ? 0 : view.getUint32(ends + (low - 1) * 4, true)
  return entries.subarray(lists + start, lists + view.getUint32(ends + low * 4, true))
}

/*
 * A Bloom filter of the codes of one field in one segment, 10 to 20 bits per code and 5 probes: at most 1 % false hits.
 * Its length is a power of two, because a page of sessions probes it thousands of times. Only fields that are always
 * hashed have one: most values of other fields are in most segments, while a session is in one or two. A segment
 * without a filter (of an earlier schema) may hold anything. Erasure does not change filters, because a hit promises
 * nothing.
 */
const bitsPerCode = 10
const bytesMin = 8
const probes = 5

export const filteredFields = members.flatMap(({ termsMax, number }) => (termsMax === 0 ? [number] : []))

export function filterOf(codes: Iterable<number>, count: number): Uint8Array<ArrayBuffer> {
  let bytes = bytesMin
  while (bytes * 8 < Math.min(count, segmentEvents) * bitsPerCode) bytes *= 2
  const bits = new Uint8Array(bytes)
  for (const code of codes) {
    for (let probe = 0, bit = start(code); probe < probes; probe++, bit = (bit + step(code)) | 0) {
      const bitIndex = bit & (bytes * 8 - 1)
      bits[bitIndex >>> 3]! |= 1 << (bitIndex & 7)
    }
  }
  return bits
}

export function mayHold(bits: Uint8Array, code: number): boolean {
  const mask = bits.length * 8 - 1
  const distance = step(code)
  for (let probe = 0, bit = start(code); probe < probes; probe++, bit = (bit + distance) | 0) {
    const bitIndex = bit & mask
    if ((bits[bitIndex >>> 3]! & (1 << (bitIndex & 7))) === 0) return false
  }
  return true
}

/**
 * Codes are hashes already. Two odd factors make two more of each, and the probes start at one and advance by the
 * other.
 */
function start(code: number): number {
  const mixed = Math.imul(code, 0x9e3779b1)
  return mixed ^ (mixed >>> 15)
}

function step(code: number): number {
  const mixed = Math.imul(code, 0x85ebca6b)
  return (mixed ^ (mixed >>> 13)) | 1
}

export function writeFilter(
  db: Database,
  filterKey: { org: number; member: number; segment: number },
  codes: Iterable<number>,
  count: number,
): void {
  db.query(
    `INSERT INTO event_posting_filter (org, member, segment, bits) VALUES (?, ?, ?, ?)
     ON CONFLICT (org, member, segment) DO UPDATE SET bits = excluded.bits`,
  ).run(filterKey.org, filterKey.member, filterKey.segment, filterOf(codes, count))
}

/*
 * A set has positions from 0 to 65,535: a bitmap in memory, a list or a bitmap on disk. A list is the first position
 * and then the distances, as varints (7 bits per byte, lowest first; high bit: more). A stored set is one tag byte and
 * its bytes: 0 list, 1 bitmap, 2 zstd of a list, 3 zstd of a bitmap.
 */
export type Bitmap = Uint32Array<ArrayBuffer>

const bitmapBytes = segmentEvents / 8
const listMax = 8_192 // beyond it a bitmap is about as small, and faster
const squeezeBytesMin = 256

export function newBitmap(): Bitmap {
  return new Uint32Array(segmentEvents / 32)
}

export function setBit(bitmap: Bitmap, position: number): void {
  bitmap[position >>> 5]! |= 1 << (position & 31)
}

export function bitsIn(bitmap: Bitmap): number {
  let bits = 0
  for (let word of bitmap) for (; word !== 0; word &= word - 1) bits++
  return bits
}

export function hasBit(bitmap: Bitmap, position: number): boolean {
  return (bitmap[position >>> 5]! & (1 << (position & 31))) !== 0
}

/** Whether any of `count` positions from `first` on is in the set. */
export function anyBit(bitmap: Bitmap, first: number, count: number): boolean {
  const last = first + count - 1
  const lastWord = last >>> 5
  for (let word = first >>> 5; word <= lastWord; word++) {
    let bits = bitmap[word]!
    if (bits === 0) continue
    if (word === first >>> 5) bits &= -1 << (first & 31)
    if (word === lastWord) bits &= -1 >>> (31 - (last & 31))
    if (bits !== 0) return true
  }
  return false
}

/** `positions` ascend. */
export function packList(positions: number[]): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(positions.length * 3)
  let offset = 0
  let previousPosition = 0
  for (const position of positions) {
    let distance = position - previousPosition
    previousPosition = position
    for (; distance > 127; distance >>>= 7) out[offset++] = (distance & 127) | 128
    out[offset++] = distance
  }
  return out.slice(0, offset)
}

export function addList(bitmap: Bitmap, list: Uint8Array): void {
  let position = 0
  for (let index = 0; index < list.length;) {
    let distance = 0
    for (let shift = 0; ; shift += 7) {
      const byte = list[index++]
      if (byte === undefined) throw new Error('a list of the segment index ends amid a number')
      distance |= (byte & 127) << shift
      if (byte < 128) break
    }
    position += distance
    setBit(bitmap, position)
  }
}

export function packSet(positions: number[]): Uint8Array<ArrayBuffer> {
  const isList = positions.length <= listMax
  const plain = isList ? packList(positions) : bitmapOf(positions)
  const squeezed = plain.length < squeezeBytesMin ? plain : Bun.zstdCompressSync(plain, { level: 1 })
  const smaller = squeezed.length < plain.length
  const out = new Uint8Array(1 + (smaller ? squeezed : plain).length)
  out[0] = (isList ? 0 : 1) + (smaller ? 2 : 0)
  out.set(smaller ? squeezed : plain, 1)
  return out
}

function bitmapOf(positions: number[]): Uint8Array<ArrayBuffer> {
  const bitmap = newBitmap()
  for (const position of positions) setBit(bitmap, position)
  return new Uint8Array(bitmap.buffer)
}

/** Adds a stored set to a bitmap. */
export function addSet(bitmap: Bitmap, stored: Uint8Array): void {
  const tag = stored[0]!
  const body = stored.slice(1)
  const plain = tag < 2 ? body : Bun.zstdDecompressSync(body)
  if (tag % 2 === 0) return addList(bitmap, plain)
  if (plain.byteLength !== bitmapBytes) throw new Error('a bitmap of the segment index has the wrong size')
  const words = new Uint32Array(plain.buffer, plain.byteOffset, bitmap.length)
  for (let word = 0; word < words.length; word++) bitmap[word]! |= words[word]!
}
