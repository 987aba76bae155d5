/** What counts as a change: rates that rose beyond chance, and steps around the moment. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { changeEdges, changesSince, hasRisen, makeOverviewWarmer, readSince } from './changes.ts'
import { StoreError } from '../../db/contract/errors.ts'
import type { Store } from '../../db/contract/store.ts'
import { readQuery } from '../http/request.ts'
import { silent } from '../../tests/support/silent-log.ts'

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
] as const)('%s', (_name, [part, whole], [partBefore, ofBefore], risen) => {
  expect(hasRisen({ part, of: whole }, { part: partBefore, of: ofBefore })).toBe(risen)
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

/** A store without events that notes what it is asked. */
function notingStore() {
  const queries: string[] = []
  const emptyAnswer = { total: 0, rows: [], breakdowns: [[]], complete: true }
  const events = new Proxy({} as Store['events'], {
    get: (_, verb) => async (query: unknown) => {
      queries.push(`${String(verb)} ${JSON.stringify(query)}`)
      return emptyAnswer
    },
  })
  const take = (): string[] => queries.splice(0).sort()
  return { events, take }
}

test('what the next visit of Overview will or may ask is asked in spare time, every ten minutes', async () => {
  const { events, take } = notingStore()
  const minuteMs = 60_000
  const nowMs = 500_000 * hourMs + 25 * minuteMs
  const visits = [
    { orgId: 'org_open', sinceMs: nowMs - 50 * hourMs, atMs: nowMs - 5 * minuteMs },
    { orgId: 'org_closed', sinceMs: nowMs - 90 * hourMs, atMs: nowMs - 9 * hourMs },
  ]
  let recentVisits: Store['accounts']['recentVisits'] = async () => visits
  const accounts = { recentVisits: (query: { afterMs: number; limit: number }) => recentVisits(query) }
  const warmer = makeOverviewWarmer({ store: { events, accounts }, log: silent })
  const { signal } = new AbortController()
  await warmer.run(nowMs, signal)
  const found = take()
  const sinceOf = (ms: number): number =>
    readSince(
      readQuery(new Request(`http://x/?since=${new Date(ms).toISOString()}`), { since: 'one' }),
      nowMs,
    )
  const since = { org_open: visits[0]!.sinceMs, org_closed: visits[1]!.atMs }
  for (const [orgId, visitMs] of Object.entries(since))
    for (const ms of [visitMs, ...[1, 7, 30].map((days) => nowMs - days * 24 * hourMs)])
      await changesSince({ events }, { orgId, sinceMs: sinceOf(ms), nowMs })
  expect(found).toEqual(take())
  expect(found.length).toBeGreaterThan(10)
  await warmer.run(nowMs + 5 * minuteMs + 25_000, signal) // retention may still run
  expect(take()).toEqual([])
  recentVisits = async () => {
    throw new StoreError('deadline', 'too slow')
  }
  await warmer.run(nowMs + 5 * minuteMs + 30_000, signal) // no failed job, which /readyz would report
  recentVisits = async () => visits
  const ended = await warmer
    .run(nowMs + 15 * minuteMs + 30_000, AbortSignal.abort())
    .catch((error: Error) => error.name)
  expect([ended, take()]).toEqual(['AbortError', []])
})
