/** Driver and file-system errors become store errors of the right kind, and a failed device ends writing. */
import { expect, test } from 'bun:test'
import { Database } from 'bun:sqlite'
import { DrizzleQueryError } from 'drizzle-orm'
import { writeFileSync } from 'node:fs'
import { StoreError } from '../../contract/errors.ts'
import { failureLatch, storeError } from './failure.ts'
import type { EventWriter } from '../../sql/events/engine.ts'

function thrownBy(work: () => unknown): unknown {
  try {
    work()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}

test('constraints distinguish a conflict from a missing row', () => {
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

test('a store error passes through, and anything unknown is internal', () => {
  const error = new StoreError('deadline', 'late')
  expect(storeError(error, 'test')).toBe(error)
  expect(storeError('text', 'doing it')).toMatchObject({ kind: 'internal', message: 'doing it: text' })
})

test('no bound value of a failed drizzle query reaches the message', () => {
  const cause = new Error('it broke')
  const { message } = storeError(new DrizzleQueryError('INSERT', ['hunter2'], cause), 'test')
  expect(message).toBe('test: it broke')
})

function engine(rollBack: () => void = () => {}): { events: EventWriter; calls: string[] } {
  const calls: string[] = []
  const events = {
    rolledBack() {
      calls.push('rolledBack')
      rollBack()
    },
    committed: () => calls.push('committed'),
  }
  return { events: events as unknown as EventWriter, calls }
}

const fail = (kind: 'conflict' | 'io' | 'storage_full') => () => {
  throw new StoreError(kind, 'no')
}

test('the engine is notified of a transaction only when it took part', () => {
  const { events, calls } = engine()
  const guard = failureLatch(events)
  guard.run('a', () => guard.committed())
  expect(() => guard.run('b', fail('conflict'))).toThrow('no')
  expect(calls).toEqual([])
  guard.run('c', () => {
    guard.engine()
    guard.committed()
  })
  const failing = () => {
    guard.engine()
    fail('conflict')()
  }
  expect(() => guard.run('d', failing)).toThrow('no')
  expect(() => guard.run('e', fail('conflict'))).toThrow('no')
  expect(calls).toEqual(['committed', 'rolledBack'])
})

test('after a device failure nothing runs any more; a full disk is not a device failure', () => {
  const guard = failureLatch(engine().events)
  expect(() => guard.run('a', fail('storage_full'))).toThrow('no')
  expect(guard.run('b', () => 1)).toBe(1)
  expect(() => guard.run('c', fail('io'))).toThrow('no')
  let ran = false
  expect(() => guard.run('d', () => (ran = true))).toThrow('no')
  expect(ran).toBe(false)
})

test('an engine that cannot roll back ends writing, and the first failure is reported', () => {
  const guard = failureLatch(engine(fail('io')).events)
  const failing = () => {
    guard.engine()
    fail('storage_full')()
  }
  expect(() => guard.run('a', failing)).toThrow(expect.objectContaining({ kind: 'storage_full' }))
  expect(() => guard.run('b', () => 1)).toThrow(expect.objectContaining({ kind: 'io' }))
})
