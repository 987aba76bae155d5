/** Transactions are immediate, synchronous and rolled back on any error. */
import { expect, test } from 'bun:test'
import { Database } from 'bun:sqlite'
import { inTransaction } from './transaction.ts'

function table(): Database {
  const db = new Database(':memory:', { strict: true })
  db.run('CREATE TABLE t (x INTEGER UNIQUE) STRICT')
  return db
}

const rows = (db: Database): unknown[] => db.query('SELECT x FROM t').values().flat()

test('what the work did is committed, and its result given back', () => {
  const db = table()
  expect(inTransaction(db, () => db.query('INSERT INTO t VALUES (1) RETURNING x').values())).toEqual([[1]])
  expect(db.inTransaction).toBe(false)
  expect(rows(db)).toEqual([1])
})

test('whatever is thrown undoes everything', () => {
  const db = table()
  const work = () => {
    db.run('INSERT INTO t VALUES (1)')
    db.run('INSERT INTO t VALUES (1)')
  }
  expect(() => inTransaction(db, work)).toThrow('UNIQUE')
  expect(db.inTransaction).toBe(false)
  expect(rows(db)).toEqual([])
})

test('a promise is refused and what ran before its first await undone', () => {
  const db = table()
  const work = async () => {
    db.run('INSERT INTO t VALUES (1)')
    await Promise.resolve()
  }
  expect(() => inTransaction(db, work)).toThrow('must be synchronous')
  expect(rows(db)).toEqual([])
})
