/** Cached hashes of ids: a block that has an id is always read, one that does not almost never. */
import { openDatabase } from '../../../sqlite/file/connection.ts'
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { cacheIds, namesThatMayHold } from './by-id.ts'
import { holdsId, packNames } from '../blocks/texts.ts'

function keeping() {
  const db = openDatabase(':memory:')
  db.run('CREATE TABLE event_body (place INTEGER PRIMARY KEY, ids BLOB NOT NULL)')
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
  return { db, write }
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
      namesThatMayHold(db, zone, '"another"')
      for (const id of ids) {
        const names = namesThatMayHold(db, zone, id)
        expect(names !== null && holdsId(names, zone.events, id)).toBe(true)
      }
    }),
  )
})

test('a block without the id is read once', () => {
  const { db, write } = keeping()
  const zones = Array.from({ length: 100 }, (_, n) =>
    write(
      n,
      n,
      Array.from({ length: 256 }, (_, row) => `"evt_${n}_${row}"`),
    ),
  )
  const reads = () => zones.filter((zone) => namesThatMayHold(db, zone, '"unknown"') !== null).length
  expect([reads(), reads()]).toEqual([100, 0])
})

test('a block that was written again is read again', () => {
  const { db, write } = keeping()
  namesThatMayHold(db, write(1, 1, ['"before"']), '"after"')
  const zone = write(1, 2, ['"after"'])
  expect(namesThatMayHold(db, zone, '"after"')).not.toBeNull()
  expect(namesThatMayHold(db, zone, '"before"')).toBeNull()
})

test('beyond the limit of ids the first blocks are evicted, and read again', () => {
  const { db, write } = keeping()
  const ids = Array.from({ length: 4_096 }, (_, row) => `"evt_${row}"`)
  const zones = Array.from({ length: 2 ** 19 / 4_096 + 10 }, (_, n) => write(n, n, ids))
  const isRead = (zone: (typeof zones)[number]) => namesThatMayHold(db, zone, '"unknown"') !== null
  expect(zones.filter(isRead)).toHaveLength(zones.length)
  expect(zones.slice(10).filter(isRead)).toHaveLength(0)
  expect(zones.slice(0, 10).filter(isRead)).toHaveLength(10)
})
