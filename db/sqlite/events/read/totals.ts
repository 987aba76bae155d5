/** An organization's totals: events by type, bytes, and the arrival from which on they fit a size. */
import { readColumns } from '../blocks/block-table.ts'
import { placeOf, seqOf } from '../blocks/block.ts'
import { isSliceOver, type Sliced } from '../../threads/slices.ts'
import { countUnfolded } from '../rollups/fold.ts'
import { member, termTexts } from '../blocks/fields.ts'
import type { Database } from 'bun:sqlite'

/** Whether an organization has events, and how many of each type: folded totals and unfolded arrivals. */
export function* readOverview(
  db: Database,
  org: number,
): Sliced<{ total: number; byType: { [type: string]: number } }> {
  const counts = new Map<number, number>()
  const totals = db.query<{ type: number; events: number }, [number]>(
    'SELECT type, events FROM event_type_total WHERE org = ?',
  )
  for (const { type, events } of totals.all(org)) counts.set(type, events)
  const unfolded = yield* countUnfolded(db, org, [])
  for (const { type, events } of unfolded.groups()) counts.set(type, (counts.get(type) ?? 0) + events)
  const names = termTexts(db, org, member.type)
  const byType = [...counts].map(([type, count]): [string, number] => [names.get(type) ?? '', count])
  return {
    total: byType.reduce((sum, [, count]) => sum + count, 0),
    byType: Object.fromEntries(byType.sort(([a], [b]) => (a < b ? -1 : 1))),
  }
}

interface Block {
  place: number
  bytes: number
}

/** Blocks measured at a time: about 5 ms. */
const chunkBlocks = 2_048

/** Visits the blocks of an organization, newest first, until `visit` stops it. */
function* eachSize(db: Database, org: number, visit: (block: Block) => boolean): Sliced<void> {
  const blocks = db.query<Block, [number, number]>(
    `SELECT place, length(columns) + length(ids) + length(bodies) AS bytes
     FROM event_block JOIN event_body USING (place) WHERE place >= ? AND place < ?
     ORDER BY place DESC LIMIT ${chunkBlocks}`,
  )
  for (let until = placeOf(org + 1, 0); ;) {
    const chunk = blocks.all(placeOf(org, 0), until)
    for (const block of chunk) if (visit(block)) return
    const last = chunk.at(-1)
    if (last === undefined) return
    until = last.place
    if (isSliceOver()) yield
  }
}

export function* eventBytes(db: Database, org: number): Sliced<number> {
  let sum = 0
  yield* eachSize(db, org, ({ bytes }) => {
    sum += bytes
    return false
  })
  return sum
}

/** The arrival number just after the newest block that no longer fits, or null when all fit. */
export function* cutoffForBytes(db: Database, org: number, bytesMax: number): Sliced<number | null> {
  let sum = 0
  let beyond: number | null = null
  yield* eachSize(db, org, ({ place, bytes }) => {
    sum += bytes
    if (sum > bytesMax) beyond = place
    return beyond !== null
  })
  const columns = beyond === null ? null : readColumns(db, beyond)
  return columns === null || beyond === null ? null : seqOf(beyond) + columns.rows
}
