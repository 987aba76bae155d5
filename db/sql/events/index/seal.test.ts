/** A segment whose blocks were seen while they were written is sealed from memory, and any other from its blocks. */
import { expect, test } from 'bun:test'
import { openDatabase } from '../../../sqlite/file/connection.ts'
import { migrate, migrations } from '../../../sqlite/migrations/migrations.ts'
import { emptyBlock, blockEventsMax, placeOf, segmentEvents, type BlockContent } from '../blocks/block.ts'
import { writeBlock } from '../blocks/block-table.ts'
import { member } from '../blocks/fields.ts'
import { sealer, type Sealable } from './seal.ts'
import type { Database } from '../../database.ts'

const org: Sealable = { num: 1, storedSeq: 0, segments: 0 }

function blockOf(events: number, code: number): BlockContent {
  const block = { ...emptyBlock(), events }
  block.columns[member.type]!.fill(1, 0, events)
  block.columns[member.vendor]!.fill(code, 0, events)
  for (let row = 0; row < events; row++) {
    block.ids.push(`"${code}-${row}"`)
    block.texts.push('{}')
    block.sessions.push('"s"')
  }
  return block
}

/** Writes blocks until two segments are full, with a vendor for 5,000 events, and seals them. */
function sealTwo(isSeen: (firstSeq: number) => boolean, onSeal: (db: Database, firstSeq: number) => void) {
  const db = openDatabase(':memory:', { strict: true })
  migrate(db, migrations, 0)
  db.run("INSERT INTO event_org (org_id, last_seq, folded_seq, segments) VALUES ('a', 0, 0, 0)")
  const ownOrg = { ...org }
  const seal = sealer<Sealable>(db)
  for (let seq = 1; seq < 2 * segmentEvents;) {
    const end = Math.min(seq + blockEventsMax, (Math.floor(seq / segmentEvents) + 1) * segmentEvents)
    const block = blockOf(end - seq, 1 + Math.floor(seq / 5_000))
    writeBlock(db, placeOf(ownOrg.num, seq), block)
    if (isSeen(seq)) seal.note(ownOrg, seq, block)
    ownOrg.storedSeq = end - 1
    onSeal(db, seq)
    seal.step(ownOrg, 8) // far less than a segment needs, so both are sealed at the end
    seq = end
  }
  seal.finish(ownOrg)
  expect(ownOrg.segments).toBe(2)
  const tables = ['event_posting', 'event_posting_rest', 'event_posting_filter', 'event_segment']
  const index = tables.map((table) => db.query(`SELECT * FROM ${table}`).all())
  db.close()
  return index
}

test('the index is the same from memory, from blocks, and with a gap in memory', () => {
  const fromBlocks = sealTwo(
    () => false,
    () => {},
  )
  for (const rows of fromBlocks) expect(rows.length).toBeGreaterThan(1)
  const fromMemory = sealTwo(
    () => true,
    // Nothing is read: the columns of what was written are damaged before they would be.
    (db) => void db.run("UPDATE event_block SET columns = x'00'"),
  )
  expect(fromMemory).toEqual(fromBlocks)
  const withGap = sealTwo(
    (seq) => seq !== 1 + 3 * blockEventsMax,
    (db, seq) => {
      if (seq >= segmentEvents)
        db.query("UPDATE event_block SET columns = x'00' WHERE place = ?").run(placeOf(1, seq))
    },
  )
  expect(withGap).toEqual(fromBlocks)
})
