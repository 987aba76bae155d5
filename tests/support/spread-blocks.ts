/** Moves the blocks of an organization apart, one to each segment, so that a test has many segments of few events. */
import { placeOf, segmentEvents } from '../../db/sql/events/blocks/block.ts'
import { sealer, type Sealable } from '../../db/sql/events/index/seal.ts'
import { inTransaction, type Database } from '../../db/sql/database.ts'

/** Returns the last arrival number. The counts of the organization no longer fit its blocks. */
export function spreadBlocks(db: Database, org: number): number {
  const blocks = db
    .query<{ place: number }, [number, number]>(
      'SELECT place FROM event_block WHERE place >= ? AND place < ? ORDER BY place DESC',
    )
    .all(placeOf(org, 0), placeOf(org + 1, 0))
  const end = blocks.length * segmentEvents - 1
  inTransaction(db, () => {
    blocks.forEach(({ place }, index) => {
      const to = placeOf(org, (blocks.length - 1 - index) * segmentEvents + 1)
      for (const table of ['event_block', 'event_body'])
        db.query(`UPDATE ${table} SET place = ? WHERE place = ?`).run(to, place)
    })
    db.query('UPDATE event_org SET last_seq = ? WHERE num = ?').run(end, org)
    sealer<Sealable>(db).finish({ num: org, storedSeq: end, segments: 0 })
  })
  return end
}
