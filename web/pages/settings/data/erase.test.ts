/** The summary before an erasure, and an erasure that a restart stopped. */
import { expect, test } from 'bun:test'
import type { Erasures } from '../../../api/operate-api.ts'
import { hasVanished, erasureSummary } from './erase.tsx'

test('the summary names the number of events, none, or too many to count', () => {
  expect(erasureSummary(1)).toStartWith('1 event is erased. Related counts and copies')
  expect(erasureSummary(34_369)).toStartWith('34,369 events are erased. Related counts and copies')
  expect(erasureSummary(null)).toStartWith('All matching events are erased.')
  expect(erasureSummary(0)).toContain('case matters')
})

test('an erasure that is neither running nor finished was stopped by a restart', () => {
  const running = { by: 'session', startedAt: '2026-11-22T10:00:00.000Z', ...counts() } as const
  const endedAt = (at: string): Erasures['last'] => ({
    by: 'session',
    endedAt: at,
    erased: { ...counts(), logEmptied: true },
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

const counts = () => ({ events: 0, deliveries: 0, samples: 0 })
