/** How many bytes the events of an organization take, and from which arrival on they fit into a number of them. */
import type { Database } from 'bun:sqlite'
import { readColumns } from './block-table.ts'
import { extra } from './block.ts'
import { placeOf } from './place.ts'

const bytesOf = 'length(columns) + length(ids) + length(bodies)'
const from = 'event_block JOIN event_body USING (place) WHERE place >= ? AND place < ?'

export function eventBytes(db: Database, org: number): number {
  const row = db
    .query<{ bytes: number | null }, [number, number]>(`SELECT sum(${bytesOf}) AS bytes FROM ${from}`)
    .get(placeOf(org, 0), placeOf(org + 1, 0))
  return row?.bytes ?? 0
}

/** Just past the last arrival of the newest block that no longer fits, or null when all do. */
export function cutoffForBytes(db: Database, org: number, bytesMax: number): number | null {
  const blocks = db.query<{ place: number; bytes: number }, [number, number]>(
    `SELECT place, ${bytesOf} AS bytes FROM ${from} ORDER BY place DESC`,
  )
  let bytes = 0
  for (const block of blocks.iterate(placeOf(org, 0), placeOf(org + 1, 0))) {
    bytes += block.bytes
    if (bytes <= bytesMax) continue
    const columns = readColumns(db, block.place)
    return columns === null ? null : columns.column(extra.received).reduce((a, b) => Math.max(a, b), 0) + 1
  }
  return null
}
