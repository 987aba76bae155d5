/** Index matches are computed once per filter and segment, and the cache stays within its bound. */
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import type { Clause } from '../index/filter-codes.ts'
import { cacheMatches, recallMatches } from './matches.ts'
import { newBitmap, setBit, type Bitmap } from '../index/positions.ts'

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
function isAsked(db: Database, clauses: Clause[], segment: number, answer: Bitmap | null, org = 1): boolean {
  let asked = false
  const got = recallMatches(
    db,
    org,
    clauses,
  )(segment, () => {
    asked = true
    return answer
  })
  expect(got === null ? null : Array.from(got)).toEqual(answer === null ? null : Array.from(answer))
  return asked
}

function keeping(): Database {
  const db = new Database(':memory:')
  cacheMatches(db)
  return db
}

test('few positions and none at all are remembered, many are not', () => {
  const db = keeping()
  for (const [count, known] of [
    [0, true],
    [1, true],
    [256, true],
    [257, false],
  ] as const) {
    const clauses = [clause(3, count + 1)]
    const answer = count === 0 ? null : bitmap(count)
    expect(isAsked(db, clauses, 7, answer)).toBe(true)
    expect([count, isAsked(db, clauses, 7, answer)]).toEqual([count, !known])
  }
})

test('another segment, organization, member or code is another question; the order of codes is none', () => {
  const db = keeping()
  const asked = [clause(3, 1, 12), clause(4, 2)]
  expect(isAsked(db, asked, 7, bitmap(5))).toBe(true)
  expect(isAsked(db, [clause(3, 12, 1), clause(4, 2)], 7, bitmap(5))).toBe(false)
  const others = [
    [clause(3, 11, 2), clause(4, 2)],
    [clause(3, 1, 12)],
    [clause(3, 1, 12, 4, 2)],
    [clause(4, 1, 12), clause(3, 2)],
  ]
  for (const clauses of others) expect(isAsked(db, clauses, 7, bitmap(9))).toBe(true)
  expect(isAsked(db, asked, 8, null)).toBe(true)
  expect(isAsked(db, asked, 7, null, 2)).toBe(true)
  expect(isAsked(db, asked, 7, bitmap(5))).toBe(false)
})

test('what was asked longest ago is forgotten first, and no number of questions takes more than its room', () => {
  const [first, second] = [[clause(1, 1)], [clause(1, 2)]]
  for (const [questions, forgotten] of [
    [5_000, false],
    [2 ** 21 / 64, true],
  ] as const) {
    const db = keeping()
    isAsked(db, first, 0, null)
    isAsked(db, second, 0, null)
    for (let n = 0; n < questions; n++) {
      isAsked(db, [clause(2, n)], 0, null)
      if (n % 500 === 0) isAsked(db, first, 0, null)
    }
    expect([questions, isAsked(db, first, 0, null)]).toEqual([questions, false])
    expect([questions, isAsked(db, second, 0, null)]).toEqual([questions, forgotten])
  }
})

test('one question about more segments than there is room for is answered all the same', () => {
  const db = keeping()
  const rounds = [0, 1].map(() => {
    let asked = 0
    for (let segment = 0; segment < 6_000; segment++) {
      if (isAsked(db, [clause(1, 1)], segment, bitmap(256))) asked++
    }
    return asked
  })
  expect(rounds[0]).toBe(6_000)
  expect(rounds[1]).toBeLessThan(3_000)
  expect(rounds[1]).toBeGreaterThan(0)
})

test('a connection that was not told to keeps nothing, nor does a question with many codes', () => {
  const db = new Database(':memory:')
  for (let n = 0; n < 2; n++) expect(isAsked(db, [clause(1, 1)], 0, null)).toBe(true)
  const many = clause(1, ...Array.from({ length: 65 }, (_, n) => n))
  for (const kept = keeping(), times = [0, 1]; times.pop() !== undefined;)
    expect(isAsked(kept, [many], 0, bitmap(3))).toBe(true)
})
