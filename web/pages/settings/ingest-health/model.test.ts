/** Columns for every hour with the sums of what was told, and what is said to be odd about a key. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { IngestKey } from '../../../api/ingest-api.ts'
import { advice, hourColumns, oddities, shares } from './model.ts'

const since = '2026-06-23T00:00:00.000Z'
const sums = { requests: 1, refused: 0, accepted: 0, deduped: 0, rejected: 0 }
const hourOf = (n: number) => new Date(Date.parse(since) + n * 3_600_000).toISOString()

test('an hour without requests is there; hours of several keys are added', () => {
  const hours = [
    { ...sums, hour: hourOf(0), keyId: 'a', accepted: 3 },
    { ...sums, hour: hourOf(2), keyId: 'a', accepted: 1, rejected: 2 },
    { ...sums, hour: hourOf(2), keyId: 'b', accepted: 4, deduped: 5 },
  ]
  const columns = hourColumns({ since, hours }, Date.parse(hourOf(3)) + 60_000)
  expect(columns.map(({ accepted, deduped, rejected }) => [accepted, deduped, rejected])).toEqual([
    [3, 0, 0],
    [0, 0, 0],
    [5, 5, 2],
    [0, 0, 0],
  ])
})

test('whatever the reader’s clock says, the columns add up to what was told', () => {
  const hour = fc.record({ n: fc.nat(100), accepted: fc.nat(9), deduped: fc.nat(9), rejected: fc.nat(9) })
  fc.assert(
    fc.property(fc.array(hour), fc.integer({ min: -1e9, max: 1e9 }), (list, offMs) => {
      const hours = list.map(({ n, ...counts }) => ({ ...sums, ...counts, hour: hourOf(n), keyId: 'a' }))
      const columns = hourColumns({ since, hours }, Date.parse(since) + offMs)
      for (const share of shares) {
        const told = hours.reduce((sum, one) => sum + one[share], 0)
        expect(columns.reduce((sum, one) => sum + one[share], 0)).toBe(told)
      }
    }),
  )
})

test('what is odd about a key is said while it works, and each has its advice', () => {
  const key: IngestKey = {
    ...sums,
    ...{ id: 'key_a', label: 'a', prefix: 'agtx_ik_aaaaaaaa', state: 'active', createdAt: since },
    ...{ lastUsedAt: since, neverUsed: false, seenInBrowserAt: null, clock: { state: 'fine', offMs: 90 } },
  }
  expect(oddities(key)).toEqual([])
  const odd: IngestKey = { ...key, seenInBrowserAt: since, clock: { state: 'behind', offMs: 3_600_000 } }
  expect(oddities(odd)).toEqual(['seen in a browser', 'clock 1 h behind'])
  expect(oddities({ ...key, neverUsed: true, clock: null })).toEqual(['never used'])
  expect(oddities({ ...odd, state: 'revoked' })).toEqual([])
  for (const oddity of ['seen in a browser', 'clock 1 min ahead', 'never used'])
    expect(advice[oddity.split(' ')[0] ?? '']).toBeDefined()
})
