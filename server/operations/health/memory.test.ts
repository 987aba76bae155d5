/** Memory pressure: requests refused at each share, recovery, and one exit that a single peak does not cause. */
import { expect, test } from 'bun:test'
import { startLog } from '../../log.ts'
import { isShed, memoryAllowed, watchMemory } from './memory.ts'

const log = startLog({
  level: 'error',
  clock: { now: () => 0 },
  sink: { write() {}, takeDropped: () => 0, flush: async () => {} },
})

function watched() {
  let share = 0.1
  let ends = 0
  const watch = watchMemory(
    1_000,
    log,
    () => void ends++,
    () => share * 1_000,
  )
  const pressureAt = (next: number) => {
    share = next
    watch.check()
    return watch.pressure()
  }
  return { at: pressureAt, ends: () => ends }
}

test('refuses reads from 70 %, everything from 85 %, and recovers', () => {
  const { at: pressureAt, ends } = watched()
  expect([0.5, 0.69, 0.71, 0.84, 0.86, 0.72, 0.3].map(pressureAt)).toEqual([
    'none',
    'none',
    'reads',
    'reads',
    'all',
    'reads',
    'none',
  ])
  expect(ends()).toBe(0)
})

test('ends the process only after three checks in a row, and once', () => {
  const { at: pressureAt, ends } = watched()
  expect([0.96, 0.96, 0.8, 0.96, 0.96].map(pressureAt)).toEqual(['all', 'all', 'reads', 'all', 'all'])
  expect(ends()).toBe(0)
  expect([0.97, 0.97].map(pressureAt)).toEqual(['out', 'out'])
  expect(ends()).toBe(1)
})

test('ingest, health and diagnostics are refused last', () => {
  const shed = (pressure: 'reads' | 'all') =>
    [
      '/v1/sdk/events',
      '/v1/limits',
      '/v1/traces',
      '/v1/audit/export',
      '/api/live',
      '/api/session',
      '/api/doctor',
      '/',
      '/healthz',
      '/readyz',
    ].filter((path) => isShed('GET', path, pressure))
  expect(shed('reads')).toEqual(['/v1/traces', '/v1/audit/export', '/api/live'])
  expect(shed('all')).toEqual([
    '/v1/sdk/events',
    '/v1/limits',
    '/v1/traces',
    '/v1/audit/export',
    '/api/live',
    '/api/session',
    '/api/doctor',
    '/',
  ])
})

test('spans are refused as late as events', () => {
  expect(isShed('POST', '/v1/traces', 'reads')).toBe(false)
  expect(isShed('POST', '/v1/traces', 'all')).toBe(true)
})

test('always finds a limit', () => {
  expect(memoryAllowed()).toBeGreaterThan(64 * 1024 * 1024)
  expect(Number.isFinite(memoryAllowed())).toBe(true)
})
