/** Merges small blocks, which single posts leave, into larger ones. */
import { deleteBlocks, readWholeBlocks, writeBlock, type BlockSpan } from '../blocks/block-table.ts'
import { blockEventsMax, columnCount, unpackBlock, type BlockContent } from '../blocks/block.ts'
import type { Database } from '../../database.ts'

/** Blocks below this many events are merged with their neighbours. */
export const smallBlockEvents = 128

/** Small blocks that may wait; a page over them opens each one. */
export const smallBlocksMax = 64

/**
 * Merges as many blocks as fit into one, at least two. `small` are consecutive blocks of one segment. What remains of
 * them is there afterwards, with the merged one when it is small too.
 */
export function mergeFirst(db: Database, small: BlockSpan[]): boolean {
  let count = 0
  let events = 0
  while (count < small.length && events + small[count]!.events <= blockEventsMax) {
    events += small[count++]!.events
  }
  const blocks = small.splice(0, count)
  const place = blocks[0]!.place
  const last = blocks.at(-1)!.place
  const whole = readWholeBlocks(db, place, last)
  if (whole.length !== blocks.length) throw new Error(`a block from ${place} to ${last} is missing`)
  const content = concat(whole.map(unpackBlock))
  deleteBlocks(db, place + 1, last)
  writeBlock(db, place, content)
  if (content.events < smallBlockEvents) small.unshift({ place, events: content.events })
  return true
}

function concat(blocks: BlockContent[]): BlockContent {
  const events = blocks.reduce((sum, block) => sum + block.events, 0)
  const columns = Array.from({ length: columnCount }, () => new Float64Array(events))
  const content: BlockContent = { events, columns, ids: [], texts: [], sessions: [], spilled: [] }
  let row = 0
  for (const block of blocks) {
    block.columns.forEach((column, index) => columns[index]!.set(column.subarray(0, block.events), row))
    content.ids.push(...block.ids)
    content.texts.push(...block.texts)
    content.sessions.push(...block.sessions)
    for (const [spilledRow, member, text] of block.spilled)
      content.spilled.push([spilledRow + row, member, text])
    row += block.events
  }
  return content
}
