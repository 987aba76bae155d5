/** Reads the metadata of a segment's events into columns, one per path, in steps of a few milliseconds. */
import type { Database } from '../../database.ts'
import { type OpenBlock, readAhead, readBlock, zonesBetween } from '../blocks/block-table.ts'
import { extra, segmentEvents, seqOf } from '../blocks/block.ts'
import { member } from '../blocks/fields.ts'
import { textsAhead } from '../blocks/read-ahead.ts'
import { type SampledEvents, sampler } from './session-sample.ts'
import {
  closeBrace,
  type Coder,
  comma,
  cuts,
  endsEvent,
  isAt,
  isCut,
  makeCoder,
  mayHideMetadata,
  metadataFrom,
  openBrace,
  quote,
  stringEnd,
  valueEnd,
} from './json-bytes.ts'
import { hourMs } from '../../../contract/units.ts'

/** The values of one path in a segment. Events without the member have no entry. */
export interface ShreddedPath {
  path: string
  /** Null: not in a column. The event of some position has the path twice, or there are too many values. */
  values: Coder | null
  /** Positions in the segment, ascending, and the code of each one's value; `inText` for a long one. */
  positions: Uint16Array
  codes: Uint16Array
  entries: number
}

export interface Shredded {
  /** By position: the hour of the event; `noHour` for none. */
  hours: Int32Array
  paths: ShreddedPath[]
  /** Whether there are further paths. */
  hasMore: boolean
  /** Null: there is no room for it. */
  sample: SampledEvents | null
}

export const noHour = -(2 ** 31)
/** The code of a value that only the event's text has. */
export const inText = 0xffff

/** Paths of a segment. Senders may use values as names, so that every event has new ones. */
const pathsMax = 256
/** What Explore accepts of a path, or more: others are never asked for. */
const partsMax = 8
const pathCharsMax = 400
/** Of one path. A column of random values would be as large as their texts, and is rarely asked for. */
const valuesMax = 65_000
const valueBytesMax = 512 * 1024
/** Longer values are read from their events, as long as they are few. */
const longBytes = 256
const longMax = 1_024

/** A block of 256 events takes 0.3 ms. */
const blocksPerStep = 16

export interface Shredder {
  /** Reads some blocks; false when all are read. */
  step(): boolean
  /** Null: the first events of the segment have expired. */
  result(): Shredded | null
}

export function shredder(db: Database, org: number, segment: number): Shredder {
  const first = segment * segmentEvents
  const zones = zonesBetween(db, org, first, first + segmentEvents)
  const hours = new Int32Array(segmentEvents).fill(noHour)
  const paths = segmentPaths()
  const sample = sampler(db, org)
  const begins = zones[0] === undefined ? Infinity : seqOf(zones[0].place)
  const isCutOff = begins > Math.max(1, first)
  let next = isCutOff ? zones.length : 0
  return {
    step() {
      const stepZones = zones.slice(next, next + blocksPerStep)
      next += stepZones.length
      const texts = textsAhead(db, stepZones, ({ place }) => place)[Symbol.iterator]()
      try {
        for (const zone of readAhead(db, stepZones)) {
          texts.next()
          const block = readBlock(db, zone)
          if (block === null) continue
          shredBlock(block, seqOf(zone.place) - first, hours, paths)
          sample.add(block)
        }
      } finally {
        texts.return?.()
      }
      return next < zones.length
    },
    result: () =>
      isCutOff ? null : { hours, paths: paths.all(), hasMore: paths.hasMore(), sample: sample.result() },
  }
}

function shredBlock(block: OpenBlock, start: number, hours: Int32Array, paths: SegmentPaths): void {
  const times = block.codes(extra.at)
  const types = block.codes(member.type)
  for (let row = 0; row < block.rows;) {
    const { bytes, firstRow } = block.frame(row)
    let metadata = metadataFrom(bytes, 0)
    let from = 0
    for (row = firstRow; row < block.rows && from < bytes.length; row++) {
      const end = bytes.indexOf(0, from)
      if (types[row] !== 0) {
        hours[start + row] = Math.floor(times[row]! / hourMs)
        if (metadata < from) metadata = metadataFrom(bytes, from)
        if (!paths.read(start + row, bytes, from, end, metadata)) {
          const parsed = JSON.parse(block.event(row).json) as { metadata?: unknown }
          paths.readParsed(start + row, parsed.metadata)
        }
      }
      from = end + 1
    }
  }
}

/** A member of the metadata, or of an object in it. */
interface Name {
  bytes: Uint8Array // with its quotes and colon
  path: Path | null // null: nobody can ask for it
  below: Names | null
}

interface Names {
  prefix: string
  codes: Coder // of the names in quotes
  all: Name[] // by code
}

interface Path extends ShreddedPath {
  last: number // the position of its last entry
  long: number
}

type SegmentPaths = ReturnType<typeof segmentPaths>

function segmentPaths() {
  const paths = pathTable()
  const names = namesBelow('')
  const eventValues = foundValues()

  /** Adds the members of an event; false when it has to be parsed. `metadata`: where the next metadata begins. */
  function read(position: number, bytes: Buffer, start: number, end: number, metadata: number): boolean {
    for (let offset = metadata; offset < end; offset = metadataFrom(bytes, offset)) {
      eventValues.clear()
      const isObject = bytes[offset] === openBrace
      const endOffset = isObject
        ? readObject({ paths, found: eventValues, bytes }, names, offset + 1)
        : valueEnd(bytes, offset)
      if (endOffset < 0) return false
      if (!endsEvent(bytes, endOffset)) continue
      eventValues.each((path, from, until) => addValue(path, position, bytes, from, until))
      return true
    }
    return !mayHideMetadata(bytes, start, end)
  }

  /** The same for an event that was parsed. */
  function readParsed(position: number, value: unknown, prefix = ''): void {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return
    for (const [name, fieldValue] of Object.entries(value)) {
      const path = paths.of(prefix + name)
      const json = Buffer.from(JSON.stringify(fieldValue))
      if (path !== null) addValue(path, position, json, 0, json.length)
      if (mayBeAsked(prefix + name)) readParsed(position, fieldValue, `${prefix}${name}.`)
    }
  }

  return { read, readParsed, all: paths.all, hasMore: paths.hasMore }
}

function pathTable() {
  const byPath = new Map<string, Path>()
  const beginnings = new Set<string>() // of paths, each up to a dot or whole
  let hasMore = false

  /**
   * The value of a name that is not followed, and everything below it, is not in the columns: other paths may mean it
   * too, "a.b" as the member "b" of "a". No path is added afterwards, because earlier events may have it.
   */
  function leaveOut(path: string): void {
    hasMore = true
    if (!beginnings.has(path)) return
    for (const knownPath of byPath.values())
      if (knownPath.path === path || knownPath.path.startsWith(`${path}.`)) drop(knownPath)
  }

  return {
    leaveOut,
    of(path: string): Path | null {
      const existingPath = byPath.get(path)
      if (existingPath !== undefined) return existingPath
      if (!mayBeAsked(path)) return null
      if (hasMore || byPath.size >= pathsMax) {
        leaveOut(path)
        return null
      }
      const addedPath = newPath(path)
      byPath.set(path, addedPath)
      beginnings.add(path)
      for (const [first] of cuts(path)) beginnings.add(first)
      return addedPath
    },
    all: () => [...byPath.values()],
    hasMore: () => hasMore,
  }
}

interface Reading {
  paths: ReturnType<typeof pathTable>
  found: ReturnType<typeof foundValues>
  bytes: Buffer
}

/** Reads an object from behind its brace, and returns its end; -1 when the event has to be parsed. */
function readObject(reading: Reading, among: Names, from: number): number {
  const { paths, found: eventValues, bytes } = reading
  if (bytes[from] === closeBrace) return from + 1
  let expected = 0
  for (let offset = from; ;) {
    if (bytes[offset] !== quote) return -1
    const code = nameAt(paths, among, bytes, offset, expected)
    const name = among.all[code]
    expected = code + 1
    const value = name === undefined ? stringEnd(bytes, offset) + 1 : offset + name.bytes.length
    const isBelow = name?.below != null && bytes[value] === openBrace
    const end = isBelow ? readObject(reading, name.below!, value + 1) : valueEnd(bytes, value)
    if (end < 0 || isCut(bytes, value, end)) return -1
    if (name?.path != null) eventValues.add(name.path, value, end)
    if (bytes[end] === closeBrace) return end + 1
    if (bytes[end] !== comma) return -1
    offset = end + 1
  }
}

/**
 * The code of the name at `offset` among its neighbours, which are mostly in the same order as in the event before; -1
 * for one that is not followed.
 */
function nameAt(
  paths: Reading['paths'],
  among: Names,
  bytes: Buffer,
  offset: number,
  expected: number,
): number {
  const next = among.all[expected]
  if (next !== undefined && isAt(bytes, offset, next.bytes)) return expected
  const end = stringEnd(bytes, offset)
  const code = among.codes.codeOf(bytes, offset, end)
  if (code >= 0 && code < among.all.length) return code
  const text = bytes.toString('utf8', offset, end)
  const name = JSON.parse(text) as string
  const isPlain = JSON.stringify(name) === text // as readers look for it
  if (code < 0) {
    if (isPlain) paths.leaveOut(among.prefix + name)
    return code
  }
  const path = isPlain ? paths.of(among.prefix + name) : null
  const childNames = path === null ? null : namesBelow(`${path.path}.`)
  among.all.push({ bytes: Buffer.from(`${text}:`), path, below: childNames })
  return code
}

const mayBeAsked = (path: string): boolean =>
  path.length <= pathCharsMax && path.split('.').length <= partsMax

function namesBelow(prefix: string): Names {
  return { prefix, codes: makeCoder(pathsMax, pathsMax * pathCharsMax), all: [] }
}

function newPath(path: string): Path {
  return {
    path,
    values: makeCoder(valuesMax, valueBytesMax),
    last: -1,
    long: 0,
    entries: 0,
    positions: new Uint16Array(64),
    codes: new Uint16Array(64),
  }
}

/** What was read of an event before it is known to be its own metadata. */
function foundValues() {
  const [paths, starts, ends]: [Path[], number[], number[]] = [[], [], []]
  let count = 0
  return {
    clear: () => void (count = 0),
    add(path: Path, start: number, end: number): void {
      paths[count] = path
      starts[count] = start
      ends[count++] = end
    },
    each(visit: (path: Path, start: number, end: number) => void): void {
      for (let index = 0; index < count; index++) visit(paths[index]!, starts[index]!, ends[index]!)
    },
  }
}

const emptyString = Buffer.from('""')
const nullBytes = Buffer.from('null')

function addValue(path: Path, position: number, bytes: Uint8Array, start: number, end: number): void {
  if (path.values === null) return
  const isTwice = path.last === position // "a.b", and "b" of "a": readers choose
  path.last = position
  const length = end - start
  // Missing, as null and '' are.
  if (!isTwice && length === 2 && isAt(bytes, start, emptyString)) return
  if (!isTwice && length === 4 && isAt(bytes, start, nullBytes)) return
  const isLong = length > longBytes && path.long < longMax
  if (isLong) path.long++
  const code = isLong ? inText : path.values.codeOf(bytes, start, end)
  if (isTwice || code < 0) drop(path)
  else addEntry(path, position, code)
}

const emptyCodes = new Uint16Array(0)

function drop(path: Path): void {
  Object.assign(path, { values: null, entries: 0, positions: emptyCodes, codes: emptyCodes })
}

function addEntry(path: Path, position: number, code: number): void {
  if (path.entries === path.positions.length) {
    path.positions = larger(path.positions)
    path.codes = larger(path.codes)
  }
  path.positions[path.entries] = position
  path.codes[path.entries++] = code
}

function larger(values: Uint16Array): Uint16Array {
  const copy = new Uint16Array(values.length * 2)
  copy.set(values)
  return copy
}
