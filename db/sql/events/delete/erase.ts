/** Erases the events of a session or subject in bounded steps. A resend of an erased event counts as deduped. */
import { takeFromRollups } from '../rollups/fold.ts'
import { noteRewrite } from '../rollups/hours.ts'
import { type BlockContent, extra, openBlock, orgOf, seqOf, unpackBlock } from '../blocks/block.ts'
import { rollupCounts, type RollupCounts } from '../rollups/counts.ts'
import { type Zone, deleteBlock, readBlock, readWholeBlock, writeBlock } from '../blocks/block-table.ts'
import { removedId, type EraseMark } from '../dedupe/fingerprints.ts'
import { member } from '../blocks/fields.ts'
import { dropPaths } from '../paths/columns.ts'
import { deleteNetworksOf } from '../blocks/networks.ts'
import { noteFrames } from '../blocks/repack.ts'
import { partsOf } from '../index/walk.ts'
import type { Database } from '../../database.ts'
import type { EraseRange } from '../../../contract/store.ts'
import type { Clause } from '../blocks/clause.ts'
import type { StepBounds } from './expire.ts'
import type { OrgState } from '../write/org-state.ts'

/*
 * Deletes the texts, values and counts; of the id a keyed hash stays (dedupe/fingerprints.ts). Segment indexes keep
 * their hashes of sessions and subjects. Freed pages are overwritten (secure_delete). The log keeps older pages until
 * it is truncated, and backups are out of reach.
 */
interface Erased extends StepBounds, EraseRange {
  clauses: readonly Clause[]
}

/**
 * The organization's rollups must be folded. Works on whole blocks, so the last one may exceed the range. `next` is
 * null when it is complete.
 */
export function eraseEvents(
  db: Database,
  org: OrgState,
  { clauses, after: afterSeq, until, blocksMax, rollupRowsMax }: Erased,
  mark: EraseMark,
): { events: number; next: EraseRange | null } {
  const deletedCounts = rollupCounts()
  let events = 0
  let blocks = 0
  let next: EraseRange | null = null
  for (const match of matchingRows(db, org.num, clauses, afterSeq)) {
    const firstSeq = seqOf(match.zone.place)
    if (firstSeq > until) break
    if (blocks++ === blocksMax || deletedCounts.entries() >= rollupRowsMax) {
      next = { after: firstSeq - 1, until }
      break
    }
    blankRows(db, match, deletedCounts, (id) => mark(org.num, id))
    events += match.rows.length
  }
  takeFromRollups(db, org.num, deletedCounts)
  if (events > 0) noteRewrite(db, org.num)
  return { events, next }
}

/* Segment indexes and zones stay unchanged. They may name an erased event, so every reader checks the row itself. */
interface Rows {
  zone: Zone
  rows: number[]
}

/** The events that match all clauses, block by block in arrival order, in blocks that reach past `afterSeq`. */
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
      const allRows = Array.from({ length: block.rows }, (_, row) => row)
      const rows = allRows.filter((row) => part.mayMatch(zone, row) && block.matches(row, clauses))
      if (rows.length > 0) yield { zone, rows }
    }
  }
}

/**
 * Adds these rows to `gone`: the rollups must have counted them. `idOf` returns what replaces an id. With null nothing
 * does, and a block without events is deleted. Returns the replaced ids.
 */
export function blankRows(
  db: Database,
  { zone: { place }, rows }: Rows,
  deletedCounts: RollupCounts,
  idOf: ((id: string) => string) | null,
): string[] {
  const whole = readWholeBlock(db, place)
  if (whole === null) throw new Error(`block ${place} is missing`)
  dropPaths(db, place)
  noteFrames(db, place)
  const content = unpackBlock(whole)
  const columns = openBlock(whole.columns)
  const ids = rows.map((row) => content.ids[row]!)
  for (const row of rows) {
    deletedCounts.add(columns, row, row + 1)
    content.ids[row] = idOf === null ? removedId : idOf(content.ids[row]!)
    blank(content, row)
  }
  content.spilled = content.spilled.filter(([row]) => !rows.includes(row))
  deleteNetworksOf(
    db,
    orgOf(place),
    rows.map((row) => seqOf(place) + row),
  )
  const types = content.columns[member.type]!.subarray(0, content.events)
  if (idOf === null && types.every((type) => type === 0) && !content.ids.some((id) => id.startsWith('#'))) {
    deleteBlock(db, place)
  } else writeBlock(db, place, content)
  return ids
}

function blank(content: BlockContent, row: number): void {
  const untouched: readonly number[] = [extra.at, extra.received] // a block's times and retention depend on them
  content.columns.forEach((column, index) => {
    if (!untouched.includes(index)) column[row] = 0
  })
  content.sessions[row] = '""'
  content.texts[row] = ''
}
