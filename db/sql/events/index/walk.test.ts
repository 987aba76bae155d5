/** Index matches are computed once per filter and segment, and the cache stays within its bound. */
import { openDatabase, type SqliteDatabase } from '../../../sqlite/file/connection.ts'
import { expect, test } from 'bun:test'
import type { Clause } from '../blocks/clause.ts'
import { cacheMatches, cachedMatches } from './walk.ts'
import { newBitmap, setBit, type Bitmap } from './posting.ts'

const clause = (member: number, ...codes: number[]): Clause => ({
  member,
  codes: new Set(codes),
  hashed: new Map(),
})

function bitmap(count: number): Bitmap {
  const bits = newBitmap()
  for (let n = 0; n < count; n++) setBit(bits, (n * 257 + 13) % 65_536)
  return bits
}

/** Queries, and returns whether the positions had to be computed. */
function isComputed(
  db: SqliteDatabase,
  clauses: Clause[],
  segment: number,
  matches: Bitmap | null,
  org = 1,
): boolean {
  let computed = false
  const got = cachedMatches(db, org, clauses).of(segment, () => {
    computed = true
    return matches
  })
  expect(got).toEqual(matches)
  return computed
}

function withCache(): SqliteDatabase {
  const db = openDatabase(':memory:')
  cacheMatches(db)
  return db
}

test('few positions and none at all are cached, many are not', () => {
  const db = withCache()
  for (const [count, isKnown] of [
    [0, true],
    [1, true],
    [256, true],
    [257, false],
  ] as const) {
    const clauses = [clause(3, count + 1)]
    const matches = count === 0 ? null : bitmap(count)
    expect(isComputed(db, clauses, 7, matches)).toBe(true)
    expect([count, isComputed(db, clauses, 7, matches)]).toEqual([count, !isKnown])
  }
})

test('another segment, organization, field or code is another entry; the order of codes is not', () => {
  const db = withCache()
  const bothClauses = [clause(3, 1, 12), clause(4, 2)]
  expect(isComputed(db, bothClauses, 7, bitmap(5))).toBe(true)
  expect(isComputed(db, [clause(3, 12, 1), clause(4, 2)], 7, bitmap(5))).toBe(false)
  const otherLists = [
    [clause(3, 11, 2), clause(4, 2)],
    [clause(3, 1, 12)],
    [clause(3, 1, 12, 4, 2)],
    [clause(4, 1, 12), clause(3, 2)],
  ]
  for (const clauses of otherLists) expect(isComputed(db, clauses, 7, bitmap(9))).toBe(true)
  expect(isComputed(db, bothClauses, 8, null)).toBe(true)
  expect(isComputed(db, bothClauses, 7, null, 2)).toBe(true)
  expect(isComputed(db, bothClauses, 7, bitmap(5))).toBe(false)
})

test('the filter queried longest ago is evicted first, and any number of filters stays within the limit', () => {
  const first = [clause(1, 1)]
  const second = [clause(1, 2)]
  for (const [filters, evicted] of [
    [5_000, false],
    [2 ** 21 / 64, true],
  ] as const) {
    const db = withCache()
    isComputed(db, first, 0, null)
    isComputed(db, second, 0, null)
    for (let n = 0; n < filters; n++) {
      isComputed(db, [clause(2, n)], 0, null)
      if (n % 500 === 0) isComputed(db, first, 0, null)
    }
    expect([filters, isComputed(db, first, 0, null)]).toEqual([filters, false])
    expect([filters, isComputed(db, second, 0, null)]).toEqual([filters, evicted])
  }
})

test('one filter over more segments than the limit holds is answered too', () => {
  const db = withCache()
  const rounds = [0, 1].map(() => {
    let computed = 0
    for (let segment = 0; segment < 6_000; segment++) {
      if (isComputed(db, [clause(1, 1)], segment, bitmap(256))) computed++
    }
    return computed
  })
  expect(rounds[0]).toBe(6_000)
  expect(rounds[1]).toBeLessThan(3_000)
  expect(rounds[1]).toBeGreaterThan(0)
})

test('a connection without the cache stores nothing, nor is a filter with many codes stored', () => {
  const db = openDatabase(':memory:')
  for (let n = 0; n < 2; n++) expect(isComputed(db, [clause(1, 1)], 0, null)).toBe(true)
  const wideClause = clause(1, ...Array.from({ length: 65 }, (_, n) => n))
  for (const db = withCache(), times = [0, 1]; times.pop() !== undefined;)
    expect(isComputed(db, [wideClause], 0, bitmap(3))).toBe(true)
})
