/** Verifies each block alone: checksum, columns, texts and ids. */
import { type Zone, firstPlace, readWholeBlock, storedLastSeq, zonesFrom } from '../blocks/block-table.ts'
import {
  type BlockContent,
  blockChecksum,
  extra,
  openBlock,
  placeOf,
  segmentOf,
  seqOf,
  termMembers,
  unpackBlock,
} from '../blocks/block.ts'
import { joinText } from '../../../rules/event-record.ts'
import { agentField, isHash, member, fieldAt } from '../blocks/fields.ts'
import type { Database } from '../../database.ts'

/** What the checks of `verify.ts` share: the organization, and how to report a fault. */
export interface VerifiedOrg {
  num: number
  segments: number
  /** The texts of the codes, by field. */
  terms: ReadonlyMap<number, string>[]
}

export type Report = (place: string, problem: string) => void

/**
 * A check that may take minutes. It yields between read transactions, because one would make the log grow meanwhile.
 * Data read before a yield may have changed after it.
 */
export type Check<T = void> = Generator<void, T>

export interface VerifiedIds {
  /** Checks that every id of a stored event is found. */
  verify(org: number, report: Report): Check
}

/** Blocks per read transaction: about half a second. */
const sliceBlocks = 256

/** Verifies what is stored when it begins. Returns the keys of unreadable blocks. */
export function* verifyBlocks(
  db: Database,
  org: VerifiedOrg,
  report: Report,
  blocksMax = sliceBlocks,
): Check<Set<number>> {
  const damaged = new Set<number>()
  const until = storedLastSeq(db, org.num)
  let lastPlace = -1
  let nextSeq = 1
  for (;;) {
    // A small block may have been merged meanwhile into one that begins before it.
    const holder = firstPlace(db, org.num, nextSeq)
    const from = holder < placeOf(org.num, nextSeq) ? Math.min(holder, lastPlace + 1) : lastPlace + 1
    const zones = zonesFrom(db, org.num, from, blocksMax)
    for (const zone of zones) {
      const first = seqOf(zone.place)
      if (first > until) return damaged
      const location = blockName(zone)
      const isMerged = zone.place <= lastPlace
      if (first < nextSeq && !isMerged) report(location, 'overlaps the block before it')
      const content = readVerified(db, zone, (problem) => report(location, problem))
      if (content === null) damaged.add(zone.place)
      else
        verifyRows(org, content, zone, isMerged ? nextSeq - first : 0, (problem) => report(location, problem))
      lastPlace = zone.place
      nextSeq = Math.max(nextSeq, first + zone.events) // a damaged block may claim any number
    }
    if (zones.length < blocksMax) return damaged
    yield
  }
}

export function blockName({ place, events }: Zone): string {
  return `arrivals ${seqOf(place)} to ${seqOf(place) + events - 1}`
}

/** The content of an undamaged block, or null. */
function readVerified(db: Database, zone: Zone, report: (problem: string) => void): BlockContent | null {
  const blobs = readWholeBlock(db, zone.place)
  const row = db
    .query<{ checksum: number }, [number]>('SELECT checksum FROM event_block WHERE place = ?')
    .get(zone.place)
  if (blobs === null || row === null) {
    report('the texts of the block are missing')
    return null
  }
  if (blockChecksum(blobs) !== row.checksum) {
    report('the bytes of the block differ from those written')
    return null
  }
  if (openBlock(blobs.columns).rows === zone.events) return unpackBlock(blobs)
  report(`the block has ${openBlock(blobs.columns).rows} events`)
  return null
}

function verifyRows(
  org: VerifiedOrg,
  block: BlockContent,
  zone: Zone,
  fromRow: number,
  report: (problem: string) => void,
): void {
  const first = seqOf(zone.place)
  if (segmentOf(first) !== segmentOf(first + block.events - 1)) report('crosses a segment')
  const times = block.columns[extra.at]!.subarray(0, block.events)
  if (times.some((atMs) => atMs < zone.minAt || atMs > zone.maxAt))
    report('times are outside the range that the block declares')
  const renamed = new Map<number, number>() // the rows of a renamed term are too many to name
  for (let row = fromRow; row < block.events; row++) {
    if (block.columns[member.type]![row] === 0) continue
    const event = parsed(textOf(block, row))
    if (event === undefined) report(`arrival ${first + row} is not JSON`)
    for (const index of termMembers) {
      const code = block.columns[index]![row]!
      if (code === 0 || isHash(code)) continue
      const term = org.terms[index]!.get(code)
      const path = pathOf(index, block.columns, row)
      const eventValue = path === null ? undefined : valueAt(event, path)
      if (term === undefined) report(`arrival ${first + row}: the value of ${fieldName(index)} is not known`)
      else if (typeof eventValue === 'string' && eventValue !== term)
        renamed.set(index, (renamed.get(index) ?? 0) + 1)
    }
  }
  for (const [index, rows] of renamed)
    report(`the value of ${fieldName(index)} differs from that of ${rows} events`)
}

/** Where the event's text repeats the value of a column; null when only the column has it. */
function pathOf(index: number, columns: readonly Float64Array[], row: number): readonly string[] | null {
  // The appliance judges by its own evidence, whatever the text of the event says.
  if (index === member.verdict && columns[member.observedBy]![row] !== 0) return null
  return fieldAt(index)?.path ?? null
}

/** The value at a path of the event's JSON; undefined if the event lacks it. */
function valueAt(event: unknown, path: readonly string[]): unknown {
  let value = event
  for (const name of path)
    value =
      typeof value === 'object' && value !== null ? (value as { [name: string]: unknown })[name] : undefined
  return value
}

function fieldName(number: number): string {
  return fieldAt(number)?.name ?? (number === agentField ? 'the agent' : 'the judgement')
}

function textOf(block: BlockContent, row: number): string {
  const idAt = block.columns[extra.idAt]![row]!
  const sessionAt = block.columns[extra.sessionAt]![row]!
  return joinText({ text: block.texts[row]!, idAt, sessionAt }, block.ids[row]!, block.sessions[row]!)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
