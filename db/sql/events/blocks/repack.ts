/** Stores the texts of sealed blocks as columns, a few blocks at a time, while nobody waits. */
import type { Database } from '../../database.ts'
import { blockChecksum, orgOf, placeOf, segmentEvents, segmentOf, seqOf } from './block.ts'
import { columnsMark, packTextColumns } from './text-columns.ts'
import { openBodies, openIds, openSessions, packSealedNames } from './texts.ts'

/*
 * Blocks of a sealed segment are final until an event is deleted, and are stored for months: packing them takes longer
 * than writing them. Path columns are made first, because they read texts from frames more quickly.
 * `event_org.repacked` says before which segment all blocks are done. Each block is replaced in one transaction, so a
 * kill at any moment leaves it in one form or the other, and both are read. A block that was written anew without some
 * events has frames again, and lowers `repacked`.
 */
export interface RepackWork {
  /** Some milliseconds of it; false when there is nothing to do. `inTransaction` runs what writes. */
  step(inTransaction: (write: () => void) => void): boolean
  /** A segment may have its path columns. */
  wake(): void
  /** Blocks were written anew, or a transaction was rolled back. */
  forget(): void
}

/** A block takes 2 to 3 ms, and a commit waits for these at most. */
const blocksPerStep = 2
const charsPerStep = 512 * 1_024
/** Packing takes 10 ms for so many. Blocks of large events keep frames, which then cost little for each event. */
const charsMax = 1_024 * 1_024

export function repackWork(db: Database): RepackWork {
  let mayBeDue = true
  let current: { org: number; nextPlace: number } | null = null

  /** Repacks some blocks of an organization. Returns where the next ones begin, null when it has no more. */
  function repackSome({ org, repacked, shredded }: Due): typeof current {
    const from = current?.nextPlace ?? placeOf(org, repacked * segmentEvents)
    const blocks = blocksFrom(db, from, placeOf(org, shredded * segmentEvents))
    let chars = 0
    let done = 0
    while (done < blocks.length && chars < charsPerStep) chars += repack(db, blocks[done++]!)
    const last = blocks[done - 1]
    const isDone = last === undefined || (done === blocks.length && done < blocksPerStep)
    const segment = isDone ? shredded : segmentOf(seqOf(last.place))
    if (segment > repacked) db.query('UPDATE event_org SET repacked = ? WHERE num = ?').run(segment, org)
    return isDone ? null : { org, nextPlace: last.place + 1 }
  }

  return {
    step(inTransaction) {
      if (!mayBeDue) return false
      const due = nextDue(db, current?.org) ?? nextDue(db)
      if (due === null) return (mayBeDue = false)
      if (due.org !== current?.org) current = null
      let next = current
      inTransaction(() => {
        next = repackSome(due)
      })
      current = next
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

interface Due {
  org: number
  repacked: number
  shredded: number
}

/** One organization, or the first of all, with blocks that may have frames. */
function nextDue(db: Database, only?: number): Due | null {
  const sql = `SELECT num AS org, repacked, shredded FROM event_org
    WHERE repacked < shredded ${only === undefined ? '' : 'AND num = ?'} ORDER BY num LIMIT 1`
  return db.query<Due, number[]>(sql).get(...(only === undefined ? [] : [only]))
}

interface Block {
  place: number
  events: number
  checksum: number
  columns: Uint8Array
  ids: Uint8Array
  bodies: Uint8Array
}

function blocksFrom(db: Database, first: number, end: number): Block[] {
  return db
    .query<Block, [number, number]>(
      `SELECT place, events, checksum, columns, ids, bodies FROM event_block JOIN event_body USING (place)
       WHERE place >= ? AND place < ? ORDER BY place LIMIT ${blocksPerStep}`,
    )
    .all(first, end)
}

/** Returns how much text it read. */
function repack(db: Database, block: Block): number {
  const { place, events, checksum, columns, ids, bodies } = block
  if (bodies[0] === columnsMark) return 0
  // A damaged block stays as it is, so that `verify` names it.
  if (blockChecksum(block) !== checksum) return 0
  const opened = openBodies(bodies, events)
  const texts = Array.from({ length: events }, (_, row) => opened.text(row))
  const chars = texts.reduce((sum, { length }) => sum + length, 0)
  const packed = smaller(chars > charsMax ? null : packTextColumns(texts, opened.spilled()), bodies)
  const names = smaller(packSealedNames(openIds(ids, events), openSessions(ids, events)), ids)
  if (packed === bodies && names === ids) return chars
  // An update would leave the row on the page that it filled before. Inserted, it shares one with its neighbours.
  db.query('DELETE FROM event_body WHERE place = ?').run(place)
  db.query('INSERT INTO event_body (place, ids, bodies) VALUES (?, ?, ?)').run(place, names, packed)
  db.query('UPDATE event_block SET checksum = ? WHERE place = ?').run(
    blockChecksum({ columns, ids: names, bodies: packed }),
    place,
  )
  return chars
}

const smaller = (packed: Uint8Array | null, than: Uint8Array): Uint8Array =>
  packed !== null && packed.length < than.length ? packed : than

/** In the transaction that writes the block at `place` anew. */
export function noteFrames(db: Database, place: number): void {
  db.query('UPDATE event_org SET repacked = ?1 WHERE num = ?2 AND repacked > ?1').run(
    segmentOf(seqOf(place)),
    orgOf(place),
  )
}
