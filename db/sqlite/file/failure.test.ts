/** Driver and file-system errors become store errors of the right kind. */
import { expect, test } from 'bun:test'
import { Database } from 'bun:sqlite'
import { DrizzleQueryError } from 'drizzle-orm'
import { writeFileSync } from 'node:fs'
import { StoreError } from '../../contract/errors.ts'
import { storeError } from './failure.ts'

function thrownBy(work: () => unknown): unknown {
  try {
    work()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}

test('constraints tell a conflict from an absence', () => {
  const db = new Database(':memory:')
  db.run('PRAGMA foreign_keys = ON')
  db.run(
    'CREATE TABLE a (id TEXT PRIMARY KEY NOT NULL, n INTEGER UNIQUE CHECK (n > 0), up TEXT REFERENCES a (id))',
  )
  db.run("INSERT INTO a VALUES ('x', 1, NULL)")
  const kind = (values: string) =>
    storeError(
      thrownBy(() => db.run(`INSERT INTO a VALUES (${values})`)),
      'test',
    ).kind
  expect(kind("'x', 2, NULL")).toBe('conflict')
  expect(kind("'y', 1, NULL")).toBe('conflict')
  expect(kind("'y', 2, 'nobody'")).toBe('not_found')
  expect(kind("'y', -1, NULL")).toBe('internal')
  expect(kind('NULL, 2, NULL')).toBe('internal')
})

test('files that cannot be made are read_only', () => {
  expect(
    storeError(
      thrownBy(() => writeFileSync('/dev/null/x', '')),
      'test',
    ).kind,
  ).toBe('read_only')
  expect(storeError(Object.assign(new Error('full'), { code: 'ENOSPC' }), 'test').kind).toBe('storage_full')
})

test('a store error passes through, and anything unknown is a fault of ours', () => {
  const error = new StoreError('deadline', 'late')
  expect(storeError(error, 'test')).toBe(error)
  expect(storeError('text', 'doing it')).toMatchObject({ kind: 'internal', message: 'doing it: text' })
})

test('no bound value of a failed drizzle query reaches the message', () => {
  const cause = new Error('it broke')
  const { message } = storeError(new DrizzleQueryError('INSERT', ['hunter2'], cause), 'test')
  expect(message).toBe('test: it broke')
})
