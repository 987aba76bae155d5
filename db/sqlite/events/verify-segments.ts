/** Checks that the index of every sealed segment leads to each row that a filter must find. */
import type { Database } from 'bun:sqlite'
import { readColumns, zonesBetween } from './block-table.ts'
import { member, members } from './members.ts'
import { segmentEvents, seqOf } from './place.ts'
import { hasBit, newBitmap } from './positions.ts'
import { postingReader } from './posting.ts'
import { readZones } from './seal.ts'
import type { Report, VerifiedOrg } from './verified-org.ts'

export function verifySegments(db: Database, org: VerifiedOrg, report: Report): void {
  const postings = postingReader(db)
  for (let segment = 0; segment < org.segments; segment++) {
    const first = segment * segmentEvents
    const where = `the index of arrivals ${first} to ${first + segmentEvents - 1}`
    const blocks = zonesBetween(db, org.num, first, first + segmentEvents)
    const row = db
      .query<{ zones: Uint8Array }, [number, number]>(
        'SELECT zones FROM event_segment WHERE org = ? AND segment = ?',
      )
      .get(org.num, segment)
    const listed = new Set(row === null ? [] : readZones(row.zones).map(({ place }) => place))
    for (const { place } of blocks)
      if (!listed.has(place)) report(where, `leaves out arrival ${seqOf(place)}`)
    for (const [index, { filter, name }] of members.entries()) {
      if (filter === null) continue
      for (const [code, positions] of positionsByCode(db, blocks, first, index)) {
        const bitmap = newBitmap()
        postings.add(bitmap, org.num, segment, index, code)
        const missing = positions.find((position) => !hasBit(bitmap, position))
        if (missing !== undefined) report(where, `does not lead to arrival ${first + missing} by its ${name}`)
      }
    }
  }
}

function positionsByCode(
  db: Database,
  blocks: { place: number }[],
  first: number,
  index: number,
): Map<number, number[]> {
  const found = new Map<number, number[]>()
  for (const { place } of blocks) {
    const block = readColumns(db, place)
    if (block === null) continue
    const types = block.column(member.type)
    block.column(index).forEach((code, row) => {
      if (types[row] === 0) return
      const positions = found.get(code)
      if (positions === undefined) found.set(code, [seqOf(place) - first + row])
      else positions.push(seqOf(place) - first + row)
    })
  }
  return found
}
