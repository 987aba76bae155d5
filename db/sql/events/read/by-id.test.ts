/** Cached hashes of ids: a block that has an id is always read, one that does not almost never. */
import { openDatabase } from '../../../sqlite/file/connection.ts'
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { cacheIds, namesThatMayHold, wantedId } from './by-id.ts'
import type { Zone } from '../blocks/block-table.ts'
import { holdsId, packNames } from '../blocks/texts.ts'

function keeping() {
  const db = openDatabase(':memory:')
  db.run('CREATE TABLE event_body (place INTEGER PRIMARY KEY, ids BLOB NOT NULL)')
  const read = { blocks: 0 }
  const query = db.query.bind(db)
  const counting = (sql: string) => {
    if (sql.startsWith('SELECT')) read.blocks++
    return query(sql)
  }
  Object.assign(db, { query: counting as typeof db.query })
  cacheIds(db)
  const put = db.query('INSERT OR REPLACE INTO event_body (place, ids) VALUES (?, ?)')
  /** Writes a block and returns the key under which its ids are searched. */
  const write = (place: number, checksum: number, ids: string[]) => {
    put.run(
      place,
      packNames(
        ids,
        ids.map(() => '"s"'),
      ),
    )
    return { place, checksum, events: ids.length, minAt: 0, maxAt: 0 }
  }
  return { db, write, read }
}

test('law: every id of a block is found in it, the first time and again', () => {
  const jsonTexts = fc.uniqueArray(
    fc.string({ unit: 'binary', minLength: 1 }).map((text) => JSON.stringify(text)),
    {
      minLength: 1,
      maxLength: 200,
    },
  )
  fc.assert(
    fc.property(jsonTexts, (ids) => {
      const { db, write } = keeping()
      const zone = write(1, 7, ids)
      namesThatMayHold(db, zone, wantedId('"another"'))
      for (const id of ids) {
        const names = namesThatMayHold(db, zone, wantedId(id))
        expect(names !== null && holdsId(names, zone.events, id)).toBe(true)
      }
    }),
  )
})

/** Reads the zones as one search of an id that none has. Returns how many blocks it read. */
function search({ db, read }: ReturnType<typeof keeping>, zones: Zone[]): number {
  const blocksBefore = read.blocks
  const unknownId = wantedId('"unknown"')
  for (const zone of zones) {
    const names = namesThatMayHold(db, zone, unknownId)
    expect(names !== null && holdsId(names, zone.events, '"unknown"')).toBe(false)
  }
  return read.blocks - blocksBefore
}

test('a block without the id is read once', () => {
  const blockStore = keeping()
  const zones = Array.from({ length: 100 }, (_, n) =>
    blockStore.write(
      n,
      n,
      Array.from({ length: 256 }, (_, row) => `"evt_${n}_${row}"`),
    ),
  )
  expect([search(blockStore, zones), search(blockStore, zones)]).toEqual([100, 0])
})

test('each search hashes a bounded number of blocks', () => {
  const blockStore = keeping()
  const zones = Array.from({ length: 600 }, (_, n) => blockStore.write(n, n, [`"evt_${n}"`]))
  expect(Array.from({ length: 4 }, () => search(blockStore, zones))).toEqual([600, 344, 88, 0])
})

test('a block that was written again is read again', () => {
  const { db, write } = keeping()
  namesThatMayHold(db, write(1, 1, ['"before"']), wantedId('"after"'))
  const zone = write(1, 2, ['"after"'])
  expect(namesThatMayHold(db, zone, wantedId('"after"'))).not.toBeNull()
  expect(namesThatMayHold(db, zone, wantedId('"before"'))).toBeNull()
})

test('beyond the limit of ids the first blocks are evicted, and read again', () => {
  const blockStore = keeping()
  const ids = Array.from({ length: 4_096 }, (_, row) => `"evt_${row}"`)
  const zones = Array.from({ length: 2 ** 19 / 4_096 + 10 }, (_, n) => blockStore.write(n, n, ids))
  expect(search(blockStore, zones)).toBe(zones.length)
  expect(search(blockStore, zones.slice(10))).toBe(0)
  expect(search(blockStore, zones.slice(0, 10))).toBe(10)
})
