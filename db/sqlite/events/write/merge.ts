/** Merges the small blocks that single-event posts leave, a few at a time, in the transaction of the next commit. */
import type { Database } from 'bun:sqlite'
import {
  type BlockContent,
  blockEventsMax,
  columnCount,
  endsSegment,
  seqOf,
  unpackBlock,
} from '../blocks/block.ts'
import { deleteBlock, readWholeBlock, writeBlock } from '../blocks/block-table.ts'
import { type OrgState, type SmallBlock, smallBlockEvents } from './org-state.ts'

/** Small blocks that may wait; a page over them opens each one. */
const smallBlocksMax = 64

/** Records a block that was just written and merges blocks when it pays. Returns whether any block changed. */
export function mergeAfter(db: Database, org: OrgState, written: SmallBlock): boolean {
  const isSmall = written.events < smallBlockEvents
  let merged = false
  if (isSmall) org.small.push(written)
  if (!isSmall || endsSegment(seqOf(written.place) + written.events - 1)) {
    while (org.small.length > 1) merged = mergeFirst(db, org) || merged
    org.small = []
  }
  const events = org.small.reduce((sum, block) => sum + block.events, 0)
  if (events >= blockEventsMax || org.small.length >= smallBlocksMax) merged = mergeFirst(db, org) || merged
  return merged
}

/** Merges as many blocks as fit into one, at least two. */
function mergeFirst(db: Database, org: OrgState): boolean {
  let count = 0
  let events = 0
  while (count < org.small.length && events + org.small[count]!.events <= blockEventsMax) {
    events += org.small[count++]!.events
  }
  const blocks = org.small.splice(0, count)
  const place = blocks[0]!.place
  const content = concat(blocks.map((block) => wholeBlock(db, block.place)))
  for (const block of blocks.slice(1)) deleteBlock(db, block.place)
  writeBlock(db, place, content)
  if (content.events < smallBlockEvents) org.small.unshift({ place, events: content.events })
  return true
}

function wholeBlock(db: Database, place: number): BlockContent {
  const whole = readWholeBlock(db, place)
  if (whole === null) throw new Error(`block ${place} is missing`)
  return unpackBlock(whole)
}

function concat(blocks: BlockContent[]): BlockContent {
  const events = blocks.reduce((sum, block) => sum + block.events, 0)
  const columns = Array.from({ length: columnCount }, () => new Float64Array(events))
  const all: BlockContent = { events, columns, ids: [], texts: [], sessions: [], spilled: [] }
  let row = 0
  for (const block of blocks) {
    block.columns.forEach((column, index) => columns[index]!.set(column.subarray(0, block.events), row))
    all.ids.push(...block.ids)
    all.texts.push(...block.texts)
    all.sessions.push(...block.sessions)
    for (const [at, member, text] of block.spilled) all.spilled.push([at + row, member, text])
    row += block.events
  }
  return all
}
