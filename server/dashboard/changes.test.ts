/** What counts as a change: rates that rose beyond chance, and steps around the moment. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { changeEdges, hasRisen, readSince } from './changes.ts'
import { readQuery } from '../http/request.ts'

const hourMs = 3_600_000

test.each([
  ['far more errors', [60, 200], [10, 1_000], true],
  ['twice a small share, below 5 points', [8, 200], [10, 1_000], false],
  ['5 points more, but not twice', [60, 200], [200, 1_000], false],
  ['few calls now', [15, 19], [0, 1_000], false],
  ['few calls before', [150, 200], [0, 19], false],
  ['explained by chance', [4, 25], [2, 25], false],
  ['from none', [40, 200], [0, 1_000], true],
  ['fewer errors', [1, 200], [300, 1_000], false],
  ['all fail, as before', [100, 100], [100, 100], false],
] as const)('%s', (_name, [part, of], [partBefore, ofBefore], risen) => {
  expect(hasRisen({ part, of }, { part: partBefore, of: ofBefore })).toBe(risen)
})

test('edges are ascending hours with one at the moment, and end at the running hour', () => {
  const hours = fc.integer({ min: 0, max: 31 * 24 })
  fc.assert(
    fc.property(hours, fc.integer({ min: 400_000, max: 500_000 }), (back, hour) => {
      const untilMs = (hour + 1) * hourMs
      const sinceMs = hour * hourMs - back * hourMs
      const edges = changeEdges(sinceMs, untilMs)
      expect(edges).toContain(sinceMs)
      expect(edges.at(-1)).toBe(untilMs)
      expect(edges.length).toBeLessThanOrEqual(43)
      expect(
        edges.every((edge, index) => edge % hourMs === 0 && (index === 0 || edge > edges[index - 1]!)),
      ).toBe(true)
    }),
  )
})

test('since is a time of the last 30 days, by default 24 hours ago', () => {
  const now = Date.UTC(2026, 10, 23, 18, 40)
  const since = (search: string): number =>
    readSince(readQuery(new Request(`http://localhost/api/changes${search}`), { since: 'one' }), now)
  expect(new Date(since('')).toISOString()).toBe('2026-11-22T18:00:00.000Z')
  expect(new Date(since('?since=2026-11-20T03:59:00Z')).toISOString()).toBe('2026-11-20T03:00:00.000Z')
  for (const wrong of ['2026-10-01', '2026-11-24T00:00:00Z', 'yesterday'])
    expect(() => since(`?since=${wrong}`)).toThrow()
})
