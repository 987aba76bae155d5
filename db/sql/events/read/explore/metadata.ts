/** Reads members of events' metadata from the bytes of their texts: parsing each event takes several times as long. */
import type { OpenBlock } from '../../blocks/block-table.ts'
import type { TextFrame } from '../../blocks/texts.ts'

/*
 * Stored texts are compact JSON without repeated members, as JSON.stringify writes them, without the values of `id` and
 * `sessionId` (../../blocks/texts.ts). The `"metadata":` that belongs to the event itself is its metadata. Where a text
 * is anything else, or a member's value was cut out, the whole event is parsed. A NUL ends each text, so no loop passes
 * its end.
 */

/** The values of the requested members of one event after the other, in ascending order of rows. */
export interface MemberTexts {
  read(block: OpenBlock, row: number): void
  /** The code of a value, as JSON text; 0 when it is missing. */
  code(slot: number, dictionary: Dictionary): number
  /** The value as JSON text; null when it is missing. */
  json(slot: number): string | null
}

/** One slot per path. */
export function memberTexts(paths: readonly string[]): MemberTexts {
  const names = namesOf(paths)
  const found: Found = {
    starts: paths.map(() => 0),
    ends: paths.map(() => 0),
    ranks: paths.map(() => Infinity),
    isCut: false,
  }
  let at: Place | null = null
  let parsed: (string | null)[] | null = null
  return {
    read(block, row) {
      at = placeOf(at, block, row)
      forget(found)
      parsed = null
      if (readMetadata(at, names, found) && !found.isCut) return
      const { metadata } = JSON.parse(block.event(row).json) as { metadata?: unknown }
      parsed = paths.map((path) => JSON.stringify(memberOf(metadata, path)) ?? null)
    },
    code(slot, dictionary) {
      if (parsed !== null) {
        const bytes = Buffer.from(parsed[slot] ?? 'null')
        return dictionary.codeOf(bytes, 0, bytes.length)
      }
      if (found.ranks[slot] === Infinity) return 0
      return dictionary.codeOf(at!.bytes, found.starts[slot]!, found.ends[slot]!)
    },
    json(slot) {
      if (parsed !== null) return parsed[slot] ?? null
      if (found.ranks[slot] === Infinity) return null
      return at!.bytes.toString('utf8', found.starts[slot]!, found.ends[slot]!)
    },
  }
}

/** A row's text in a frame, and the first name of metadata behind its start, of this row or a later one. */
interface Place extends TextFrame {
  block: OpenBlock
  row: number
  start: number
  end: number
  hit: number
}

function placeOf(before: Place | null, block: OpenBlock, row: number): Place {
  let place = before
  if (place === null || place.block !== block || place.row > row) place = openAt(block, row)
  while (place.row < row) {
    if (place.end + 1 >= place.bytes.length) place = openAt(block, row)
    else moveTo(place, place.row + 1, place.end + 1)
  }
  return place
}

function openAt(block: OpenBlock, row: number): Place {
  const { firstRow, bytes } = block.frame(row)
  const place = { block, firstRow, bytes, row: firstRow, start: 0, end: 0, hit: -1 }
  moveTo(place, firstRow, 0)
  while (place.row < row) moveTo(place, place.row + 1, place.end + 1)
  return place
}

function moveTo(place: Place, row: number, start: number): void {
  place.row = row
  place.start = start
  place.end = place.bytes.indexOf(0, start)
}

interface Found {
  starts: number[] // of the values, by slot
  ends: number[]
  ranks: number[] // of the names that were found: the lowest wins; Infinity: none
  isCut: boolean
}

function forget(found: Found): void {
  found.isCut = false
  for (let slot = 0; slot < found.ranks.length; slot++) found.ranks[slot] = Infinity
}

/** The name of a requested member, with its quotes and colon, or of one that may contain it. */
interface Name {
  bytes: Uint8Array
  slot: number
  rank: number
  below: Name[] | null
}

/** The whole rest of a path may be one name, which wins, or end at any dot, the last one first. */
function namesOf(paths: readonly string[]): Name[] {
  let rank = 0
  const of = (rest: string, slot: number): Name[] => [
    { bytes: quoted(rest), slot, rank: rank++, below: null },
    ...cuts(rest).map(([first, later]) => ({
      ...{ bytes: quoted(first), slot, rank: -1, below: of(later, slot) },
    })),
  ]
  return paths.flatMap(of)
}

const quoted = (name: string): Uint8Array => Buffer.from(`${JSON.stringify(name)}:`)

/** A path cut at each of its dots, the last one first. */
function cuts(path: string): [first: string, later: string][] {
  const parts = path.split('.')
  return parts
    .map((_, at): [string, string] => [parts.slice(0, at).join('.'), parts.slice(at).join('.')])
    .slice(1)
    .reverse()
}

/** The same of a parsed value. */
function memberOf(value: unknown, path: string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const members = value as { [name: string]: unknown }
  if (Object.hasOwn(members, path)) return members[path]
  for (const [first, later] of cuts(path)) {
    const found = Object.hasOwn(members, first) ? memberOf(members[first], later) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

const [quote, backslash, comma, openBrace, closeBrace] = [34, 92, 44, 123, 125]
const [openBracket, closeBracket] = [91, 93]
const ofMetadata = Buffer.from('"metadata":')

/** False when the event has to be parsed. */
function readMetadata(place: Place, names: readonly Name[], found: Found): boolean {
  const { bytes, start, end } = place
  if (place.hit < start) place.hit = hitFrom(bytes, start)
  for (; place.hit < end; place.hit = hitFrom(bytes, place.hit + ofMetadata.length)) {
    if (bytes[place.hit - 1] === backslash) continue // inside a string
    const value = place.hit + ofMetadata.length
    const isObject = bytes[value] === openBrace
    const after = isObject ? readObject(bytes, value + 1, names, found) : valueEnd(bytes, value)
    if (after > 0 && endsEvent(bytes, after)) return true
    forget(found)
  }
  // Without such a name there is no metadata, unless the name is written in another way.
  const text = bytes.toString('latin1', start, end)
  return !text.includes('metadata"') && !text.includes('\\u')
}

function hitFrom(bytes: Buffer, from: number): number {
  const hit = bytes.indexOf(ofMetadata, from)
  return hit < 0 ? Infinity : hit
}

/** Reads an object from behind its brace, and returns its end; -1 when the event has to be parsed. */
function readObject(bytes: Buffer, from: number, names: readonly Name[], found: Found): number {
  if (bytes[from] === closeBrace) return from + 1
  for (let at = from; ;) {
    if (bytes[at] !== quote) return -1
    const value = stringEnd(bytes, at) + 1 // behind the colon
    const next = readMember(bytes, at, value, names, found)
    if (next < 0) return -1
    if (bytes[next] === closeBrace) return next + 1
    if (bytes[next] !== comma) return -1
    at = next + 1
  }
}

/** Returns the end of the member's value; -1 when the event has to be parsed. */
function readMember(bytes: Buffer, at: number, value: number, names: readonly Name[], found: Found): number {
  let end = -1
  for (const name of names) {
    if (name.bytes.length !== value - at || !isAt(bytes, at, name.bytes)) continue
    if (name.below !== null) {
      if (bytes[value] !== openBrace) continue
      end = readObject(bytes, value + 1, name.below, found)
      if (end < 0) return -1
    } else if (name.rank < found.ranks[name.slot]!) {
      end = valueEnd(bytes, value)
      if (end === value) found.isCut = true
      found.ranks[name.slot] = name.rank
      found.starts[name.slot] = value
      found.ends[name.slot] = end
    }
  }
  return end < 0 ? valueEnd(bytes, value) : end
}

function isAt(bytes: Buffer, at: number, name: Uint8Array): boolean {
  for (let index = 0; index < name.length; index++) if (bytes[at + index] !== name[index]) return false
  return true
}

/** Whether the rest of the text is further members of the event itself and its end. */
function endsEvent(bytes: Buffer, from: number): boolean {
  let depth = 1
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === quote) at = stringEnd(bytes, at) - 1
    else if (byte === openBrace || byte === openBracket) depth++
    else if (byte === closeBrace || byte === closeBracket) {
      if (--depth === 0) return bytes[at + 1] === 0
    } else if (byte === 0) return false
  }
  return false
}

/** The end of the string whose opening quote is at `from`. */
function stringEnd(bytes: Buffer, from: number): number {
  for (let at = from + 1; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === quote) return at + 1
    if (byte === backslash) at++
    else if (byte === 0) return at
  }
  return bytes.length
}

/** The end of the value at `from`, which may be empty. */
function valueEnd(bytes: Buffer, from: number): number {
  if (bytes[from] === quote) return stringEnd(bytes, from)
  let depth = 0
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte === quote) at = stringEnd(bytes, at) - 1
    else if (byte === openBrace || byte === openBracket) depth++
    else if (byte === closeBrace || byte === closeBracket) {
      if (depth === 0) return at
      if (--depth === 0) return at + 1
    } else if (byte === 0 || (byte === comma && depth === 0)) return at
  }
  return bytes.length
}

/** The values of one path, by codes from 1 up. */
export interface Dictionary {
  /** -1 when it is full, and for values that were made to share their hash with many others. */
  codeOf(bytes: Buffer, start: number, end: number): number
  texts: (string | null)[]
  numbers: (number | null)[]
  /** Bytes of memory, roughly. */
  size(): number
}

/** Codes fit two bytes, beside one for rows that were not read. */
const codesMax = 65_000
const dictionaryBytesMax = 2 * 1024 * 1024
const entryBytes = 160
/** Senders choose values, so finding one must not mean comparing it with thousands. By chance two are rare. */
const sameHashMax = 8

/** Values are found by their bytes, because making a string takes longer than finding it. */
export function makeDictionary(): Dictionary {
  const byHash = new Map<number, { bytes: Buffer; code: number }[]>()
  const texts: (string | null)[] = [null]
  const numbers: (number | null)[] = [null]
  let size = 0
  return {
    texts,
    numbers,
    size: () => size,
    codeOf(bytes, start, end) {
      const length = end - start
      let hash = length
      for (let at = start; at < end; at++) hash = (Math.imul(hash, 31) + bytes[at]!) | 0
      const known = byHash.get(hash)
      if (known !== undefined)
        for (const one of known)
          if (one.bytes.length === length && isAt(bytes, start, one.bytes)) return one.code
      if (known !== undefined && known.length >= sameHashMax) return -1
      if (texts.length > codesMax || size + length > dictionaryBytesMax) return -1
      const json = bytes.toString('utf8', start, end)
      const text = memberText(json)
      const code = text === null ? 0 : texts.length
      if (code > 0) {
        texts.push(text)
        numbers.push(memberNumber(json))
      }
      size += 3 * length + entryBytes
      const one = { bytes: Buffer.from(bytes.subarray(start, end)), code }
      if (known === undefined) byHash.set(hash, [one])
      else known.push(one)
      return code
    },
  }
}

/** Up to here doubles have every digit, so that 1 and 1.0 are one value. */
const exactDigits = 15

export function memberText(json: string | null): string | null {
  if (json === null || json === 'null' || json === '""') return null
  const first = json.charCodeAt(0)
  if (first === quote) return json.includes('\\') ? (JSON.parse(json) as string) : json.slice(1, -1)
  const isNumber = first === 45 || (first >= 48 && first <= 57)
  return isNumber && json.length <= exactDigits ? String(Number(json)) : json
}

export function memberNumber(json: string | null): number | null {
  const first = json?.charCodeAt(0) ?? 0
  const value = first >= 48 && first <= 57 ? Number(json) : -1
  return Number.isSafeInteger(value) && value >= 0 ? value : null
}
