/** After a failed write the latch rejects every later one. */
import { expect, test } from 'bun:test'
import { StoreError } from '../../contract/errors.ts'
import type { EventWriter } from '../events/engine.ts'
import { failureLatch } from './failure-latch.ts'

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

test('the engine hears of a transaction only when it took part', () => {
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

test('after a failed device nothing runs any more; a full disk is not one', () => {
  const guard = failureLatch(engine().events)
  expect(() => guard.run('a', fail('storage_full'))).toThrow('no')
  expect(guard.run('b', () => 1)).toBe(1)
  expect(() => guard.run('c', fail('io'))).toThrow('no')
  let ran = false
  expect(() => guard.run('d', () => (ran = true))).toThrow('no')
  expect(ran).toBe(false)
})

test('an engine that cannot follow ends the writing, and the first failure is the one that is told', () => {
  const guard = failureLatch(engine(fail('io')).events)
  const failing = () => {
    guard.engine()
    fail('storage_full')()
  }
  expect(() => guard.run('a', failing)).toThrow(expect.objectContaining({ kind: 'storage_full' }))
  expect(() => guard.run('b', () => 1)).toThrow(expect.objectContaining({ kind: 'io' }))
})
