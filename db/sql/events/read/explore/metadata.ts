/** Reads members of events' metadata from the bytes of their texts: parsing each event takes several times as long. */
import type { OpenBlock } from '../../blocks/block-table.ts'
import type { TextFrame } from '../../blocks/texts.ts'
import {
  closeBrace,
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
} from '../../paths/json-bytes.ts'

/*
 * The `"metadata":` that belongs to the event itself is its metadata. Where a text is not compact JSON without repeated
 * members, or the id or session was cut out of a member's value, the whole event is parsed.
 */

/** The values of the requested members of one event after the other, in ascending order of rows. */
interface MemberTexts {
  read(block: OpenBlock, row: number): void
  /** The code of a value, as JSON text; 0 when it is missing. */
  code(slot: number, dictionary: Dictionary): number
  /** The value as JSON text; null when it is missing. */
  json(slot: number): string | null
}

/** One slot per path. */
export function memberTexts(paths: readonly string[]): MemberTexts {
  const names = namesOf(paths)
  const fieldSpans: Found = {
    starts: paths.map(() => 0),
    ends: paths.map(() => 0),
    ranks: paths.map(() => Infinity),
    isCut: false,
  }
  let place: Place | null = null
  let parsed: (string | null)[] | null = null
  return {
    read(block, row) {
      place = placeOf(place, block, row)
      forget(fieldSpans)
      parsed = null
      if (readMetadata(place, names, fieldSpans) && !fieldSpans.isCut) return
      const { metadata } = JSON.parse(block.event(row).json) as { metadata?: unknown }
      parsed = paths.map((path) => JSON.stringify(memberOf(metadata, path)) ?? null)
    },
    code(slot, dictionary) {
      if (parsed !== null) {
        const bytes = Buffer.from(parsed[slot] ?? 'null')
        return dictionary.codeOf(bytes, 0, bytes.length)
      }
      if (fieldSpans.ranks[slot] === Infinity) return 0
      return dictionary.codeOf(place!.bytes, fieldSpans.starts[slot]!, fieldSpans.ends[slot]!)
    },
    json(slot) {
      if (parsed !== null) return parsed[slot] ?? null
      if (fieldSpans.ranks[slot] === Infinity) return null
      return place!.bytes.toString('utf8', fieldSpans.starts[slot]!, fieldSpans.ends[slot]!)
    },
  }
}

/** A row's text in a frame, and where the first metadata behind its start begins, of this row or a later one. */
interface Place extends TextFrame {
  block: OpenBlock
  row: number
  start: number
  end: number
  metadata: number
}

function placeOf(previousPlace: Place | null, block: OpenBlock, row: number): Place {
  let place = previousPlace
  if (place === null || place.block !== block || place.row > row) place = openAt(block, row)
  while (place.row < row) {
    if (place.end + 1 >= place.bytes.length) place = openAt(block, row)
    else moveTo(place, place.row + 1, place.end + 1)
  }
  return place
}

function openAt(block: OpenBlock, row: number): Place {
  const { firstRow, bytes } = block.frame(row)
  const place = { block, firstRow, bytes, row: firstRow, start: 0, end: 0, metadata: -1 }
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

function forget(fieldSpans: Found): void {
  fieldSpans.isCut = false
  for (let slot = 0; slot < fieldSpans.ranks.length; slot++) fieldSpans.ranks[slot] = Infinity
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
  const expandNames = (subpath: string, slot: number): Name[] => [
    { bytes: quoted(subpath), slot, rank: rank++, below: null },
    ...cuts(subpath).map(([first, later]) => ({
      bytes: quoted(first),
      slot,
      rank: -1,
      below: expandNames(later, slot),
    })),
  ]
  return paths.flatMap(expandNames)
}

const quoted = (name: string): Uint8Array => Buffer.from(`${JSON.stringify(name)}:`)

/** The same of a parsed value. */
function memberOf(value: unknown, path: string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const members = value as { [name: string]: unknown }
  if (Object.hasOwn(members, path)) return members[path]
  for (const [first, later] of cuts(path)) {
    const fieldValue = Object.hasOwn(members, first) ? memberOf(members[first], later) : undefined
    if (fieldValue !== undefined) return fieldValue
  }
  return undefined
}

/** False when the event has to be parsed. */
function readMetadata(place: Place, names: readonly Name[], fieldSpans: Found): boolean {
  const { bytes, start, end } = place
  if (place.metadata < start) place.metadata = metadataFrom(bytes, start)
  for (; place.metadata < end; place.metadata = metadataFrom(bytes, place.metadata)) {
    const value = place.metadata
    const isObject = bytes[value] === openBrace
    const endOffset = isObject ? readObject(bytes, value + 1, names, fieldSpans) : valueEnd(bytes, value)
    if (endOffset > 0 && endsEvent(bytes, endOffset)) return true
    forget(fieldSpans)
  }
  return !mayHideMetadata(bytes, start, end)
}

/** Reads an object from behind its brace, and returns its end; -1 when the event has to be parsed. */
function readObject(bytes: Buffer, from: number, names: readonly Name[], fieldSpans: Found): number {
  if (bytes[from] === closeBrace) return from + 1
  for (let offset = from; ;) {
    if (bytes[offset] !== quote) return -1
    const value = stringEnd(bytes, offset) + 1 // behind the colon
    const next = readMember(bytes, offset, value, names, fieldSpans)
    if (next < 0) return -1
    if (bytes[next] === closeBrace) return next + 1
    if (bytes[next] !== comma) return -1
    offset = next + 1
  }
}

/** Returns the end of the member's value; -1 when the event has to be parsed. */
function readMember(
  bytes: Buffer,
  offset: number,
  value: number,
  names: readonly Name[],
  fieldSpans: Found,
): number {
  let end = -1
  for (const name of names) {
    if (name.bytes.length !== value - offset || !isAt(bytes, offset, name.bytes)) continue
    if (name.below !== null) {
      if (bytes[value] !== openBrace) continue
      end = readObject(bytes, value + 1, name.below, fieldSpans)
      if (end < 0) return -1
    } else if (name.rank < fieldSpans.ranks[name.slot]!) {
      end = valueEnd(bytes, value)
      if (isCut(bytes, value, end)) fieldSpans.isCut = true
      fieldSpans.ranks[name.slot] = name.rank
      fieldSpans.starts[name.slot] = value
      fieldSpans.ends[name.slot] = end
    }
  }
  return end < 0 ? valueEnd(bytes, value) : end
}

/** The values of one path, by codes from 1 up. */
export interface Dictionary {
  /** 0 for a missing value; -1 for one without a code. */
  codeOf(bytes: Uint8Array, start: number, end: number): number
  texts: (string | null)[]
  numbers: (number | null)[]
}

const codesMax = 65_000
const dictionaryBytesMax = 2 * 1024 * 1024

export function makeDictionary(): Dictionary {
  const coder = makeCoder(codesMax, dictionaryBytesMax)
  const codes: number[] = [] // 0 for null and ''
  const texts: (string | null)[] = [null]
  const numbers: (number | null)[] = [null]
  return {
    texts,
    numbers,
    codeOf(bytes, start, end) {
      const code = coder.codeOf(bytes, start, end)
      if (code < codes.length) return code < 0 ? code : codes[code]!
      const json = coder.values[code]!.toString('utf8')
      const text = memberText(json)
      codes.push(text === null ? 0 : texts.length)
      if (text !== null) {
        texts.push(text)
        numbers.push(memberNumber(json))
      }
      return codes[code]!
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
