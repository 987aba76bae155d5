/** The sentences before an erasure, and one that a restart ended. */
import { expect, test } from 'bun:test'
import type { Erasures } from '../../../api/operate-api.ts'
import { hasVanished, whatGoes } from './erase-model.ts'

test('says how many events go, that none does, or that they were not counted', () => {
  expect(whatGoes(1)).toStartWith('1 event of it goes. Counts and copies')
  expect(whatGoes(34_369)).toStartWith('34,369 events of it go. Counts and copies')
  expect(whatGoes(null)).toStartWith('Every event of it goes; counting')
  expect(whatGoes(0)).toContain('capitals count')
})

test('one that was watched and is in neither place was ended by a restart', () => {
  const running = { by: 'session', startedAt: '2026-11-22T10:00:00.000Z', ...taken() } as const
  const endedAt = (at: string): Erasures['last'] => ({
    by: 'session',
    endedAt: at,
    erased: { ...taken(), logEmptied: true },
    problem: null,
  })
  const state = (more: Partial<Erasures>): Erasures => ({ running: null, last: null, beyond: [], ...more })
  const before = state({ running, last: endedAt('2026-11-22T09:00:00.000Z') })
  expect(hasVanished(before, before)).toBe(false)
  expect(hasVanished(before, state({ last: endedAt('2026-11-22T10:00:00.000Z') }))).toBe(false)
  expect(hasVanished(before, state({ last: endedAt('2026-11-22T09:00:00.000Z') }))).toBe(true)
  expect(hasVanished(before, state({}))).toBe(true)
  expect(hasVanished(null, state({}))).toBe(false)
  expect(hasVanished(state({}), state({}))).toBe(false)
})

const taken = () => ({ events: 0, deliveries: 0, samples: 0 })
