/** Distinct values of a series in a table that is too small for all of them: steps that are final make room. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Database } from '../../../database.ts'
import { pairs } from '../pairs.ts'
import { addDistinct, addDuration, cellsOf, makeRoom, quantiles, type Reading } from './cells.ts'

const stepMs = 1_000
const steps = 24
const blockRows = 256

const readingOf = (value: 'sessions' | 'p95', placesMax: number): Reading => ({
  db: {} as Database,
  org: 1,
  value,
  steps,
  indexed: [],
  clauses: [],
  part: null,
  groupMember: null,
  edges: Array.from({ length: steps + 1 }, (_, n) => n * stepMs),
  groups: new Map(),
  found: pairs(placesMax),
  endMs: Infinity,
  unfolded: new Map(),
})

/** Events in blocks as a log has them: newest block first, times in a block in any order within `spreadMs`. */
interface Row {
  at: number
  group: number
  hash: number
}

function blocksOf(perStep: number, spreadMs: number, seed: number): { rows: Row[]; maxAt: number }[] {
  let state = seed
  const random = (limit: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return state % limit
  }
  const rows = Array.from({ length: steps * perStep }, (_, n) => ({
    at: Math.min(steps * stepMs - 1, Math.floor((n * stepMs) / perStep) + random(spreadMs)),
    group: random(3),
    hash: 2 ** 31 + random(perStep),
  }))
  const blocks = Array.from({ length: Math.ceil(rows.length / blockRows) }, (_, n) => {
    const blockEntries = rows.slice(n * blockRows, (n + 1) * blockRows)
    return { rows: blockEntries, maxAt: Math.max(...blockEntries.map(({ at: atMs }) => atMs)) }
  })
  return blocks.toSorted((a, b) => b.maxAt - a.maxAt)
}

const scales = fc.record({
  perStep: fc.integer({ min: 50, max: 1_500 }),
  spreadMs: fc.integer({ min: 1, max: 3 * stepMs }),
  seed: fc.integer({ min: 1, max: 1e6 }),
})

test('law: distinct values of complete steps are exact, however many steps there are', () => {
  let whole = 0
  let dropped = 0
  fc.assert(
    fc.property(scales, ({ perStep, spreadMs, seed }) => {
      const reading = readingOf('sessions', 2 ** 13)
      const sets = new Map<string, Set<number>>()
      let completeMs = 0
      for (const { rows, maxAt } of blocksOf(perStep, spreadMs, seed)) {
        if (!makeRoom(reading, maxAt + 1)) {
          completeMs = maxAt + 1
          break
        }
        for (const { at: atMs, group, hash } of rows) {
          const step = Math.floor(atMs / stepMs)
          addDistinct(reading, cellsOf(reading, group), step, hash)
          const name = `${group} ${step}`
          sets.set(name, (sets.get(name) ?? new Set()).add(hash))
        }
      }
      for (const [group, { values }] of reading.groups)
        for (let step = Math.ceil(completeMs / stepMs); step < steps; step++)
          expect(values[step]).toBe(sets.get(`${group} ${step}`)?.size ?? 0)
      const total = [...sets.values()].reduce((sum, { size }) => sum + size, 0)
      if (completeMs === 0) whole++
      if (completeMs === 0 && total > 2 ** 12) dropped++
    }),
    { numRuns: 60 },
  )
  // Most runs had more values than the table holds, and were complete.
  expect(whole).toBeGreaterThan(20)
  expect(dropped).toBeGreaterThan(10)
})

test('buckets of durations are never dropped: a full table ends the query', () => {
  const reading = readingOf('p95', 2 ** 12)
  let rooms = 0
  for (let n = 0; n < 30; n++) {
    if (!makeRoom(reading, 0)) break
    rooms++
    for (let row = 0; row < blockRows; row++)
      addDuration(reading, cellsOf(reading, 0), row % steps, n * 10 + (row % 10), 1)
  }
  expect(rooms).toBeGreaterThan(5)
  expect(rooms).toBeLessThan(30)
  const p95 = quantiles(reading, 0.95)
  expect(p95(cellsOf(reading, 0), 0)).toBeGreaterThan(0)
  expect(p95(cellsOf(reading, 9), 0)).toBe(0)
})
