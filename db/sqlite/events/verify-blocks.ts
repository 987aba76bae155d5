/** Checks every block by itself, and recounts the rollups on the way. */
import type { Database } from 'bun:sqlite'
import { readWholeBlock, zonesBetween, type Zone } from './block-table.ts'
import { blockChecksum, extra, openBlock, unpackBlock, type BlockContent } from './block.ts'
import { joinText } from './event-text.ts'
import { isHash, member, members } from './members.ts'
import { segmentOf, seqMax, seqOf } from './place.ts'
import { rollupCounts, type RollupCounts } from './rollup-counts.ts'
import type { Report, VerifiedOrg } from './verified-org.ts'

export interface VerifiedBlocks {
  events: number
  whole: boolean // every block can be read, so that indexes can be compared with them
  rollups: RollupCounts // of the folded arrivals
}

export function verifyBlocks(db: Database, org: VerifiedOrg, report: Report): VerifiedBlocks {
  const rollups = rollupCounts()
  let events = 0
  let whole = true
  let nextSeq = 1
  for (const zone of zonesBetween(db, org.num, 0, seqMax)) {
    const first = seqOf(zone.place)
    const where = blockName(zone)
    if (first < nextSeq) report(where, 'overlaps the block before it')
    nextSeq = first + zone.events
    const content = readVerified(db, zone, (problem) => report(where, problem))
    if (content === null) {
      whole = false
      continue
    }
    const columns = { column: (index: number) => content.columns[index]! }
    rollups.add(columns, 0, Math.max(0, Math.min(content.events, org.foldedSeq + 1 - first)))
    events += verifyRows(org, content, zone, (problem) => report(where, problem))
  }
  return { events, whole, rollups }
}

export function blockName({ place, events }: Zone): string {
  return `arrivals ${seqOf(place)} to ${seqOf(place) + events - 1}`
}

/** The content of a block whose bytes are as they were written, or null. */
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
    report('the bytes of the block are not those that were written')
    return null
  }
  if (openBlock(blobs.columns).rows === zone.events) return unpackBlock(blobs)
  report(`the block has ${openBlock(blobs.columns).rows} events`)
  return null
}

/** Returns how many events there are, not counting removed ones. */
function verifyRows(
  org: VerifiedOrg,
  block: BlockContent,
  zone: Zone,
  report: (problem: string) => void,
): number {
  const first = seqOf(zone.place)
  if (segmentOf(first) !== segmentOf(first + block.events - 1)) report('crosses a segment')
  const times = block.columns[extra.at]!.subarray(0, block.events)
  if (times.some((at) => at < zone.minAt || at > zone.maxAt))
    report('times lie outside of what the block says')
  let events = 0
  for (let row = 0; row < block.events; row++) {
    if (block.columns[member.type]![row] === 0) continue
    events++
    if (!isJson(textOf(block, row))) report(`arrival ${first + row} is not JSON`)
    for (let index = 0; index <= extra.key; index++) {
      if (index >= members.length && index !== extra.key) continue
      const code = block.columns[index]![row]!
      if (code === 0 || isHash(code) || org.codes[index]!.has(code)) continue
      report(`arrival ${first + row}: the value of ${members[index]?.name ?? 'the key'} is not known`)
    }
  }
  return events
}

function textOf(block: BlockContent, row: number): string {
  const idAt = block.columns[extra.idAt]![row]!
  const sessionAt = block.columns[extra.sessionAt]![row]!
  return joinText({ text: block.texts[row]!, idAt, sessionAt }, block.ids[row]!, block.sessions[row]!)
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
