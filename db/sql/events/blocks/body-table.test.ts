/** Rows of several blocks: each block is found, and what changes or deletes one leaves the others as they are. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { runs } from '../../../../tests/support/runs.ts'
import { openDatabase } from '../../../sqlite/file/connection.ts'
import {
  bodiesBetween,
  deleteBodies,
  idsBefore,
  readBlob,
  splitAt,
  writeGroup,
  type BlockBody,
} from './body-table.ts'

function table() {
  const db = openDatabase(':memory:')
  db.run(
    'CREATE TABLE event_body (place INTEGER PRIMARY KEY, ids BLOB NOT NULL, bodies BLOB NOT NULL) STRICT',
  )
  const rows = () => db.query<{ n: number }, []>('SELECT count(*) AS n FROM event_body').get()!.n
  return { db, rows }
}

/** Blocks of 256 or fewer arrivals, in rows of up to six. */
const layouts = fc
  .array(fc.array(fc.integer({ min: 1, max: 256 }), { minLength: 1, maxLength: 6 }), {
    minLength: 1,
    maxLength: 6,
  })
  .map((groups) => {
    let place = 2 ** 36 + 1
    return groups.map((events) =>
      events.map((count): BlockBody => {
        const block = { place, ids: Buffer.alloc(count % 90, 5), bodies: Buffer.from(`${place}`) }
        place += count
        return block
      }),
    )
  })

const plain = (blocks: readonly BlockBody[]) =>
  blocks.map(({ place, ids, bodies }) => [
    place,
    Buffer.from(ids).toString('hex'),
    Buffer.from(bodies).toString(),
  ])

test('every block is found in its row, and no other place is', () => {
  fc.assert(
    fc.property(layouts, (groups) => {
      const { db, rows } = table()
      for (const group of groups) writeGroup(db, group)
      expect(rows()).toBe(groups.length)
      const allBodies = groups.flat()
      expect(plain(bodiesBetween(db, 0, 2 ** 50))).toEqual(plain(allBodies))
      for (const { place, ids, bodies } of allBodies) {
        expect(Buffer.from(readBlob(db, place, 'ids')!)).toEqual(Buffer.from(ids))
        expect(Buffer.from(readBlob(db, place, 'bodies')!)).toEqual(Buffer.from(bodies))
        const isBlock = allBodies.some((body) => body.place === place + 1)
        expect(readBlob(db, place + 1, 'ids') === null).toBe(!isBlock)
        if (!isBlock) expect(idsBefore(db, place + 1)?.place).toBe(place)
      }
      expect(readBlob(db, 1, 'bodies')).toBeNull()
    }),
    { numRuns: runs(100) },
  )
})

test('a range of blocks is deleted, and the others stay', () => {
  fc.assert(
    fc.property(layouts, fc.nat(), fc.nat(), (groups, number, otherNumber) => {
      const { db } = table()
      for (const group of groups) writeGroup(db, group)
      const bodies = groups.flat()
      const [first, last] = [number % bodies.length, otherNumber % bodies.length].toSorted(
        (a, b) => a - b,
      ) as [number, number]
      deleteBodies(db, bodies[first]!.place, bodies[last]!.place)
      expect(plain(bodiesBetween(db, 0, 2 ** 50))).toEqual(
        plain([...bodies.slice(0, first), ...bodies.slice(last + 1)]),
      )
    }),
    { numRuns: runs(100) },
  )
})

test('a row is split before one of its blocks is written, and a damaged one is not', () => {
  const { db, rows } = table()
  const blocks = [0, 256, 512].map((offset): BlockBody => {
    return { place: 1_000 + offset, ids: Buffer.alloc(9, 1), bodies: Buffer.alloc(20, offset >> 8) }
  })
  writeGroup(db, blocks)
  splitAt(db, 1_001) // no block begins there
  expect(rows()).toBe(1)
  splitAt(db, 1_256)
  expect([rows(), plain(bodiesBetween(db, 0, 9_999))]).toEqual([3, plain(blocks)])
  db.run('DELETE FROM event_body')
  writeGroup(db, blocks)
  db.run("UPDATE event_body SET ids = CAST(substr(ids, 1, 6) || x'03' || substr(ids, 8) AS BLOB)")
  expect(() => splitAt(db, 1_000)).toThrow('damaged')
  expect(rows()).toBe(1)
})
