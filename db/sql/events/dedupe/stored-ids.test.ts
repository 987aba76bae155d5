/** What confirms a known id: the row at the key of its block, or a search when that block has changed. */
import { afterEach, expect, test } from 'bun:test'
import { openDatabase, type SqliteDatabase } from '../../../sqlite/file/connection.ts'
import { migrate, migrations } from '../../../sqlite/migrations/migrations.ts'
import { bodiesBetween, deleteBodies, writeGroup } from '../blocks/body-table.ts'
import { packNames } from '../blocks/texts.ts'
import { packZones } from '../blocks/block-table.ts'
import { placeOf, segmentEvents } from '../blocks/block.ts'
import { storedIds, type StoredIds } from './fingerprints.ts'

const org = 3
const segment = 2
const firstSeq = segment * segmentEvents
const opened: SqliteDatabase[] = []

afterEach(() => {
  for (const db of opened.splice(0)) db.close()
})

const idOf = (seq: number) => `"id of arrival ${seq}"`

function writeIds(db: SqliteDatabase, seq: number, events: number): void {
  const ids = Array.from({ length: events }, (_, row) => idOf(seq + row))
  const names = packNames(
    ids,
    ids.map(() => '"s"'),
  )
  db.query('INSERT OR REPLACE INTO event_body (place, ids, bodies) VALUES (?, ?, ?)').run(
    placeOf(org, seq),
    names,
    new Uint8Array(3),
  )
}

const sizes = [256, 200, 1, 256, 64]

/** Blocks from the segment's second arrival on, and its row. */
function segmentOfBlocks(): { db: SqliteDatabase; seqs: number[]; end: number } {
  const db = openDatabase(':memory:', { strict: true })
  opened.push(db)
  migrate(db, migrations, 0)
  let seq = firstSeq + 1
  const seqs = sizes.map((events) => {
    writeIds(db, seq, events)
    seq += events
    return seq - events
  })
  const zones = seqs.map((blockSeq, index) => ({
    place: placeOf(org, blockSeq),
    events: sizes[index]!,
    minAt: 0,
    maxAt: 0,
  }))
  db.query(
    'INSERT INTO event_segment (org, segment, min_at, max_at, zones, index_version) VALUES (?, ?, 0, 0, ?, 1)',
  ).run(org, segment, packZones(zones))
  return { db, seqs, end: seq }
}

/** Collects the places that rows of ids are read by. */
function watching(db: SqliteDatabase): { ids: StoredIds; places: Set<number> } {
  const places = new Set<number>()
  const query = (sql: string) => {
    const statement = db.query<unknown, number[]>(sql)
    if (!sql.includes('FROM event_body')) return statement
    return { get: (...values: number[]) => (places.add(values[0]!), statement.get(...values)) }
  }
  const watched = new Proxy(db, {
    get: (target, name) => (name === 'query' ? query : (Reflect.get(target, name) as unknown)),
  })
  return { ids: storedIds(watched, (_, id) => `#1 ${id}`), places }
}

const keysOf = (seqs: number[]): number[] => seqs.map((seq) => placeOf(org, seq))

test('an id of a sealed segment is confirmed by the key of its block, without a search', () => {
  const { db, seqs, end } = segmentOfBlocks()
  const { ids, places } = watching(db)
  for (let seq = firstSeq + 1; seq < end; seq++) {
    expect(ids.has(org, seq, idOf(seq))).toBe(true)
    expect(ids.has(org, seq, '"another"')).toBe(false)
  }
  expect([...places]).toEqual(keysOf(seqs))
  // Before the first block and behind the last one, in this organization and in others.
  for (const [orgNum, seq] of [
    [org, firstSeq],
    [org, end],
    [org + 1, firstSeq + 1],
  ])
    expect(ids.has(orgNum!, seq!, idOf(seq!))).toBe(false)
})

test('an id whose block was deleted, merged or shortened is searched for and still exact', () => {
  const { db, seqs, end } = segmentOfBlocks()
  const { ids, places } = watching(db)
  for (const seq of seqs) expect(ids.has(org, seq, idOf(seq))).toBe(true)
  // The second and third become one, the fourth is cut in two, the last one goes.
  db.query('DELETE FROM event_body WHERE place = ?').run(placeOf(org, seqs[2]!))
  writeIds(db, seqs[1]!, 201)
  writeIds(db, seqs[3]!, 100)
  writeIds(db, seqs[3]! + 100, 156)
  db.query('DELETE FROM event_body WHERE place = ?').run(placeOf(org, seqs[4]!))
  ids.forget()
  for (let seq = firstSeq + 1; seq < end; seq++)
    expect([seq, ids.has(org, seq, idOf(seq))]).toEqual([seq, seq < seqs[4]!])
  expect([...places].filter((place) => !keysOf(seqs).includes(place))).not.toEqual([])
})

test('ids of blocks that share a row are confirmed like others', () => {
  const { db, seqs, end } = segmentOfBlocks()
  const blocks = bodiesBetween(db, placeOf(org, seqs[1]!), placeOf(org, seqs[3]!))
  deleteBodies(db, placeOf(org, seqs[1]!), placeOf(org, seqs[3]!))
  writeGroup(db, blocks)
  const { ids, places } = watching(db)
  for (let seq = firstSeq + 1; seq < end; seq++) {
    expect([seq, ids.has(org, seq, idOf(seq))]).toEqual([seq, true])
    expect(ids.has(org, seq, '"another"')).toBe(false)
  }
  expect([...places]).toEqual(keysOf(seqs))
})
