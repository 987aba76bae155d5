/** Read-only connections can read a database in every state that a crash leaves it in; transactions stay whole. */
import { expect, test } from 'bun:test'
import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../../../tests/support/process.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { inTransaction } from '../../sql/database.ts'
import { openUnlockedConnection } from './connection.ts'
import { openDatabase, type SqliteDatabase } from './connection.ts'

test('a half-written header of the shared memory after a crash does not prevent reading', async () => {
  using dir = tempDir('look')
  const path = dir.join('sightglass.db')
  const program = `
    import { openWriterConnection } from ${JSON.stringify(join(import.meta.dir, 'connection.ts'))}
    const db = openWriterConnection(process.argv[1], () => {})
    db.run('CREATE TABLE kept (n INTEGER) STRICT')
    db.run('INSERT INTO kept VALUES (7)')
    console.log('open')
    setInterval(() => db, 1000)`
  const otherProcess = run([process.execPath, '-e', program, path], { cwd: dir.path, env: {} })
  await otherProcess.line((line) => (line === 'open' ? true : null), 10_000)
  const memory = openSync(`${path}-shm`, 'r+')
  writeSync(memory, Buffer.alloc(16, 0xff), 0, 16, 8) // the first copy of the header differs from the second
  closeSync(memory)
  const look = openUnlockedConnection(path)
  expect(look.query('SELECT n FROM kept').all()).toEqual([{ n: 7 }])
  look.close()
  otherProcess.signal('SIGKILL')
  await otherProcess.exited
}, 30_000)

function table(): SqliteDatabase {
  const db = openDatabase(':memory:', { strict: true })
  db.run('CREATE TABLE t (x INTEGER UNIQUE) STRICT')
  return db
}

const rows = (db: SqliteDatabase): unknown[] => db.query('SELECT x FROM t').values().flat()

test('the work is committed, and its result returned', () => {
  const db = table()
  expect(inTransaction(db, () => db.query('INSERT INTO t VALUES (1) RETURNING x').values())).toEqual([[1]])
  expect(db.inTransaction).toBe(false)
  expect(rows(db)).toEqual([1])
})

test('any error rolls everything back', () => {
  const db = table()
  const work = () => {
    db.run('INSERT INTO t VALUES (1)')
    db.run('INSERT INTO t VALUES (1)')
  }
  expect(() => inTransaction(db, work)).toThrow('UNIQUE')
  expect(db.inTransaction).toBe(false)
  expect(rows(db)).toEqual([])
})

test('a promise is rejected, and the work before its first await rolled back', () => {
  const db = table()
  const work = async () => {
    db.run('INSERT INTO t VALUES (1)')
    await Promise.resolve()
  }
  expect(() => inTransaction(db, work)).toThrow('must be synchronous')
  expect(rows(db)).toEqual([])
})
