/** Stores sealed blocks in less room, some neighbours at a time, while nobody waits. */
import type { Database } from '../../database.ts'
import { blockChecksum, orgOf, packSealedColumns, placeOf, segmentEvents, segmentOf, seqOf } from './block.ts'
import { blocksOf, type BlockBody, groupBytes, isGroup, rowsFrom, splitAt, writeGroup } from './body-table.ts'
import type { Zone } from './block-table.ts'
import { columnsMark, packTextColumns } from './text-columns.ts'
import { openBodies, openIds, openSessions, packSealedNames } from './texts.ts'

/*
 * Blocks of a sealed segment are final until an event is deleted, and are stored for months: packing them takes longer
 * than writing them. Path columns are made first, because they read texts from frames more quickly.
 * `event_org.repacked` says before which segment all blocks are done. Blocks are packed one at a time, and written some
 * neighbours at a time, as one row (body-table.ts), in one transaction. So a kill at any moment leaves them in one form
 * or the other, and both are read. A block that was written anew without some events has a row of its own and frames
 * again, and lowers `repacked`.
 */
interface RepackWork {
  /** Some milliseconds of it; false when there is nothing to do. `inTransaction` runs what writes. */
  step(inTransaction: (write: () => void) => void): boolean
  /** A segment may have its path columns. */
  wake(): void
  /** Blocks were written anew, or a transaction was rolled back. */
  forget(): void
}

/** A block takes 2 to 4 ms, and a commit waits for one at most. */
const blocksPerStep = 1
/** Packing takes 10 ms for so many. Blocks of large events keep frames, which then cost little for each event. */
const charsMax = 1_024 * 1_024
/** A reader of one block reads all of its row. */
const groupMax = 6
const groupBytesMax = 64 * 1_024

interface Packed extends BlockBody {
  stored: Stored
  columns: Uint8Array
  isChanged: boolean
}

interface Current {
  org: number
  segment: number
  nextPlace: number
  endPlace: number
  /** Neighbours that are packed and not written. */
  packed: Packed[]
  /** Whether a row must end with the last of them. */
  isEnd: boolean
}

export function repackWork(db: Database): RepackWork {
  let mayBeDue = true
  let current: Current | null = null

  return {
    step(inTransaction) {
      if (!mayBeDue) return false
      const work = (current ??= nextSegment(db))
      if (work === null) return (mayBeDue = false)
      const { packed } = work
      const isFull = packed.length >= groupMax || groupBytes(packed) >= groupBytesMax
      if (packed.length > 0 && (isFull || work.isEnd)) {
        const row = packed.splice(0, bestLength(db, packed))
        inTransaction(() => replace(db, row))
        return true
      }
      if (packSome(db, work)) return true
      current = null
      inTransaction(() => moveOn(db, work))
      return true
    },
    wake() {
      mayBeDue = true
    },
    forget() {
      current = null
      mayBeDue = true
    },
  }
}

/** The next segment of the first organization with blocks that may have frames. */
function nextSegment(db: Database): Current | null {
  const due = db
    .query<{ org: number; segment: number }, []>(
      'SELECT num AS org, repacked AS segment FROM event_org WHERE repacked < shredded ORDER BY num LIMIT 1',
    )
    .get()
  if (due === null) return null
  const [first, end] = [due.segment, due.segment + 1].map((n) => placeOf(due.org, n * segmentEvents))
  return { ...due, nextPlace: first!, endPlace: end!, packed: [], isEnd: false }
}

/** Inside a transaction. There may be no blocks for many segments. */
function moveOn(db: Database, { org, segment, endPlace }: Current): void {
  const sql = 'SELECT min(place) AS place FROM event_block WHERE place >= ? AND place < ?'
  const next = db.query<{ place: number | null }, [number, number]>(sql).get(endPlace, placeOf(org + 1, 0))
  const later = next?.place == null ? Infinity : segmentOf(seqOf(next.place))
  const row = db
    .query<{ shredded: number }, [number]>('SELECT shredded FROM event_org WHERE num = ?')
    .get(org)
  db.query('UPDATE event_org SET repacked = ? WHERE num = ? AND repacked = ?').run(
    Math.min(later, row?.shredded ?? 0),
    org,
    segment,
  )
}

/** Packs some blocks; false when the segment has no more and all are written. */
function packSome(db: Database, work: Current): boolean {
  const rowsMax = Math.min(blocksPerStep, groupMax - work.packed.length)
  const rows = rowsFrom(db, work.nextPlace, work.endPlace, rowsMax)
  work.isEnd = rows.length < rowsMax
  for (const row of rows) {
    if (isGroup(row)) {
      work.isEnd = work.packed.length > 0
      if (work.isEnd) return true
      work.nextPlace = blocksOf(row).at(-1)?.place ?? row.place
    } else {
      const block = pack(db, row)
      // A damaged block stays as it is, so that `verify` names it.
      if (block === null) {
        work.isEnd = work.packed.length > 0
        if (work.isEnd) return true
      } else work.packed.push(block)
      work.nextPlace = row.place
    }
    work.nextPlace++
  }
  return rows.length > 0 || work.packed.length > 0
}

/** As the block was read. */
interface Stored extends Zone {
  checksum: number
  columns: Uint8Array
}

/** Null: damaged. */
function pack(db: Database, body: BlockBody): Packed | null {
  const stored = db
    .query<Stored, [number]>(
      `SELECT place, events, min_at AS minAt, max_at AS maxAt, checksum, columns FROM event_block
       WHERE place = ?`,
    )
    .get(body.place)
  const { place, ids, bodies } = body
  if (stored === null) return null
  const { events, checksum, columns } = stored
  if (blockChecksum({ columns, ids, bodies }) !== checksum) return null
  const dense = smaller(packSealedColumns(columns), columns)
  const isPacked = bodies[0] === columnsMark
  const opened = isPacked ? null : openBodies(bodies, events)
  const texts = opened === null ? [] : Array.from({ length: events }, (_, row) => opened.text(row))
  const chars = texts.reduce((sum, { length }) => sum + length, 0)
  const packed = opened === null || chars > charsMax ? null : packTextColumns(texts, opened.spilled())
  const names = packSealedNames(openIds(ids, events), openSessions(ids, events))
  const repackedBlock = { place, columns: dense, ids: smaller(names, ids), bodies: smaller(packed, bodies) }
  const isChanged =
    repackedBlock.columns !== columns || repackedBlock.ids !== ids || repackedBlock.bodies !== bodies
  return { ...repackedBlock, stored, isChanged }
}

const smaller = (packed: Uint8Array | null, original: Uint8Array): Uint8Array =>
  packed !== null && packed.length < original.length ? packed : original

/** How many of the blocks fill the pages of one row best. */
function bestLength(db: Database, blocks: readonly Packed[]): number {
  const roomOf = (length: number): number => {
    const firstBlocks = blocks.slice(0, length)
    const bytes = firstBlocks.reduce((sum, { ids, bodies }) => sum + ids.length + bodies.length, 0)
    return db.dialect.roomOf(groupBytes(firstBlocks)) / bytes
  }
  let best = 1
  for (let length = 2; length <= blocks.length; length++) {
    if (groupBytes(blocks.slice(0, length)) > groupBytesMax) break
    if (roomOf(length) < roomOf(best)) best = length
  }
  return best
}

/** Inside a transaction. */
function replace(db: Database, blocks: readonly Packed[]): void {
  if (blocks.length === 1 && !blocks[0]!.isChanged) return
  const checksums = db.query<{ checksum: number }, [number]>(
    'SELECT checksum FROM event_block WHERE place = ?',
  )
  // Whatever writes a block calls `forget`, which drops what was packed of it.
  if (blocks.some(({ place, stored }) => checksums.get(place)?.checksum !== stored.checksum)) return
  // Updates would leave each row on the page that it filled before. Inserted, it shares one with its neighbours.
  for (const table of ['event_body', 'event_block'])
    for (const { place } of blocks) db.query(`DELETE FROM ${table} WHERE place = ?`).run(place)
  writeGroup(db, blocks)
  for (const { place, ids, bodies, columns, stored } of blocks)
    db.query(
      'INSERT INTO event_block (place, events, min_at, max_at, checksum, columns) VALUES (?, ?, ?, ?, ?, ?)',
    ).run(place, stored.events, stored.minAt, stored.maxAt, blockChecksum({ columns, ids, bodies }), columns)
}

/** In the transaction that writes the block at `place` anew. */
export function noteFrames(db: Database, place: number): void {
  splitAt(db, place)
  db.query('UPDATE event_org SET repacked = ?1 WHERE num = ?2 AND repacked > ?1').run(
    segmentOf(seqOf(place)),
    orgOf(place),
  )
}
