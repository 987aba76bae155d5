/** Members of events' metadata as codes: from the path columns of sealed segments, otherwise from the texts. */
import type { Database } from '../../../database.ts'
import type { OpenBlock, Zone } from '../../blocks/block-table.ts'
import { segmentEvents, segmentOf, seqOf } from '../../blocks/block.ts'
import { type PathColumn, segmentPaths, type SegmentPaths } from '../../paths/columns.ts'
import { type Dictionary, makeDictionary, memberNumber, memberText, memberTexts } from './metadata.ts'

/** The requested members of one event after the other, in one slot per path. */
export interface Members {
  /** The hours of a sealed segment's positions; null when its events have to be read for any of the members. */
  openSegment(segment: number): SegmentPaths['hours']
  /** A position of the open segment. */
  readAt(position: number): void
  /** The values of the open segment. */
  column(slot: number): CodedColumn
  /** Whether the block can only be read with its texts. */
  needsTexts(zone: Zone): boolean
  open(block: OpenBlock, zone: Zone): void
  /** Whether the columns of the open block say that no event has any of the members. */
  isMissing(): boolean
  /** Rows of a block in ascending order. */
  read(row: number): void
  /** The code of the value, which is the same for equal JSON texts; 0: missing; -1: no code. */
  code(slot: number): number
  /** The value as text; null when it is missing, null or ''. */
  text(slot: number): string | null
  /** The value as a whole number from 0 up; null for anything else. */
  number(slot: number): number | null
}

/** The values of a member in a segment by codes of their own. */
export interface CodedColumn {
  /** By position. */
  codes: Uint16Array
  /** One more than the highest code. */
  size: number
  /** As those of `Members`, of a code. */
  text(code: number): string | null
  number(code: number): number | null
}

/** A column, and its codes as those of the path's dictionary. */
interface Slot {
  column: PathColumn
  codes: Int32Array // `unknown` until one is read
}
const unknown = -2

interface OpenSegment {
  number: number
  hours: SegmentPaths['hours']
  slots: (Slot | null)[]
}

export function readMembers(db: Database, org: number, paths: readonly string[]): Members {
  const dictionaries = paths.map(() => makeDictionary())
  const texts = memberTexts(paths)
  const codes = paths.map(() => 0)
  const values = paths.map((): Buffer | null => null) // of those without a code that are in columns
  let opened: OpenSegment | null = null
  let block: OpenBlock | null = null
  let slots: OpenSegment['slots'] = []
  let start = 0

  function segmentAt(segment: number): OpenSegment {
    if (opened?.number !== segment) opened = openSlots(db, org, segment, paths)
    return opened
  }

  /** Of the zone's segment. Only zones of sealed segments lack a checksum. */
  function slotsOf({ place, checksum }: Zone): OpenSegment['slots'] {
    return checksum === undefined ? segmentAt(segmentOf(seqOf(place))).slots : paths.map(() => null)
  }

  /** False when the value is in the text. */
  function readSlot(slot: number, position: number): boolean {
    const from = slots[slot]
    if (from == null) return false
    const code = from.column.codes[position]!
    if (code === from.column.inText) return false
    codes[slot] = codeOf(dictionaries[slot]!, from, code)
    values[slot] = from.column.values[code]!
    return true
  }

  const jsonOf = (slot: number) => values[slot]?.toString('utf8') ?? texts.json(slot)
  return {
    openSegment(segment) {
      const segmentData = segmentAt(segment)
      slots = segmentData.slots
      return slots.every((slot) => slot?.column.inText === -1) ? segmentData.hours : null
    },
    readAt(position) {
      for (let slot = 0; slot < codes.length; slot++) readSlot(slot, position)
    },
    column: (slot) => codedColumn(dictionaries[slot]!, slots[slot]!),
    needsTexts: (zone) => slotsOf(zone).some((slot) => slot === null || slot.column.inText >= 0),
    open(next, zone) {
      block = next
      slots = slotsOf(zone)
      start = seqOf(zone.place) % segmentEvents
    },
    isMissing: () => slots.every((slot) => slot?.column.inText === -1 && slot.column.values.length === 1),
    read(row) {
      let isRead = false
      for (let slot = 0; slot < codes.length; slot++) {
        if (readSlot(slot, start + row)) continue
        if (!isRead) texts.read(block!, row)
        isRead = true
        codes[slot] = texts.code(slot, dictionaries[slot]!)
        values[slot] = null
      }
    },
    code: (slot) => codes[slot]!,
    text: (slot) => (codes[slot]! < 0 ? memberText(jsonOf(slot)) : dictionaries[slot]!.texts[codes[slot]!]!),
    number(slot) {
      const code = codes[slot]!
      return code < 0 ? memberNumber(jsonOf(slot)) : dictionaries[slot]!.numbers[code]!
    },
  }
}

/** The code in the dictionary of one in a column. */
function codeOf(dictionary: Dictionary, { column, codes }: Slot, code: number): number {
  if (codes[code] === unknown) codes[code] = codeIn(dictionary, column.values[code]!)
  return codes[code]!
}

function codedColumn(dictionary: Dictionary, slot: Slot): CodedColumn {
  const { codes, values } = slot.column
  const valueOf = <T>(code: number, dictionaryValues: readonly T[], read: (json: string | null) => T): T => {
    const dictionaryCode = codeOf(dictionary, slot, code)
    return dictionaryCode < 0
      ? read(values[code]?.toString('utf8') ?? null)
      : dictionaryValues[dictionaryCode]!
  }
  return {
    codes: codes instanceof Uint16Array ? codes : new Uint16Array(codes),
    size: values.length,
    text: (code) => valueOf(code, dictionary.texts, memberText),
    number: (code) => valueOf(code, dictionary.numbers, memberNumber),
  }
}

export const tokenPaths = ['tokens', 'tokens.input', 'tokens.output']

/** The members of `tokenPaths` begin at `slot`: a number, or an object of two. */
export function tokensOf(members: Members, slot: number): number | null {
  const whole = members.number(slot)
  if (whole !== null) return whole
  const input = members.number(slot + 1)
  const output = members.number(slot + 2)
  return input === null && output === null ? null : (input ?? 0) + (output ?? 0)
}

function codeIn(dictionary: Dictionary, value: Buffer | null): number {
  return value === null ? 0 : dictionary.codeOf(value, 0, value.length)
}

function openSlots(db: Database, org: number, segment: number, paths: readonly string[]): OpenSegment {
  const storedPaths = segmentPaths(db, org, segment)
  const slots = paths.map((path): Slot | null => {
    const column = storedPaths?.column(path) ?? null
    return column && { column, codes: new Int32Array(column.values.length).fill(unknown) }
  })
  return { number: segment, hours: storedPaths?.hours ?? null, slots }
}
