/** Makes gaps of events in their blocks: a row stays, so that arrivals keep their places, and what it said goes. */
import type { Database } from 'bun:sqlite'
import { deleteBlock, readWholeBlock, writeBlock, type Zone } from '../blocks/block-table.ts'
import { removedId } from '../dedupe/erased-id.ts'
import { extra, openBlock, unpackBlock, type BlockContent } from '../blocks/block.ts'
import type { Clause } from '../index/filter-codes.ts'
import { member } from '../blocks/fields.ts'
import { readBlock } from '../blocks/open-block.ts'
import { seqOf } from '../blocks/row-key.ts'
import type { RollupCounts } from '../rollups/counts.ts'
import { partsOf } from '../read/walk.ts'

/*
 * Segment indexes and zones are left as they are: they may name an event that is gone, and every reader looks at the
 * row itself before it believes them.
 */
export interface Rows {
  zone: Zone
  rows: number[]
}

/** The events that all clauses take, block by block in order of arrival, in blocks that reach past `afterSeq`. */
export function* matchingRows(
  db: Database,
  org: number,
  clauses: readonly Clause[],
  afterSeq = 0,
): Generator<Rows> {
  for (const part of partsOf(db, org, clauses, afterSeq)) {
    for (const zone of part.zones()) {
      if (seqOf(zone.place) + zone.events - 1 <= afterSeq) continue
      const block = readBlock(db, zone)
      if (block === null) continue
      const all = Array.from({ length: block.rows }, (_, row) => row)
      const rows = all.filter((row) => part.mayMatch(zone, row) && block.matches(row, clauses))
      if (rows.length > 0) yield { zone, rows }
    }
  }
}

/**
 * Adds these rows to `gone`: the rollups must have counted them. `idOf` says what stays of an id; with null nothing
 * does, and a block without events goes altogether.
 */
export function blankRows(
  db: Database,
  { zone: { place }, rows }: Rows,
  gone: RollupCounts,
  idOf: ((id: string) => string) | null,
): void {
  const whole = readWholeBlock(db, place)
  if (whole === null) throw new Error(`block ${place} is missing`)
  const content = unpackBlock(whole)
  const columns = openBlock(whole.columns)
  for (const row of rows) {
    gone.add(columns, row, row + 1)
    content.ids[row] = idOf === null ? removedId : idOf(content.ids[row]!)
    blank(content, row)
  }
  content.spilled = content.spilled.filter(([row]) => !rows.includes(row))
  const types = content.columns[member.type]!.subarray(0, content.events)
  if (idOf === null && types.every((type) => type === 0) && !content.ids.some((id) => id.startsWith('#'))) {
    deleteBlock(db, place)
  } else writeBlock(db, place, content)
}

function blank(content: BlockContent, row: number): void {
  const kept: readonly number[] = [extra.at, extra.received] // a block's times, and retention, stand on them
  content.columns.forEach((column, index) => {
    if (!kept.includes(index)) column[row] = 0
  })
  content.sessions[row] = '""'
  content.texts[row] = ''
}
