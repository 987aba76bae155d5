/** Hour columns add up to the response, and active keys list their issues. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { IngestKey } from '../../../api/operate-api.ts'
import { hourColumns, shares } from './hours.tsx'
import { keyIssues } from './ingest-health.tsx'

const since = '2026-06-23T00:00:00.000Z'
const sums = { requests: 1, refused: 0, accepted: 0, deduped: 0, rejected: 0 }
const hourOf = (n: number) => new Date(Date.parse(since) + n * 3_600_000).toISOString()

test('hours without requests are zero, and several keys are summed', () => {
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

test('law: the columns add up to the response for any clock of the browser', () => {
  const hour = fc.record({ n: fc.nat(100), accepted: fc.nat(9), deduped: fc.nat(9), rejected: fc.nat(9) })
  fc.assert(
    fc.property(fc.array(hour), fc.integer({ min: -1e9, max: 1e9 }), (list, offMs) => {
      const hours = list.map(({ n, ...counts }) => ({ ...sums, ...counts, hour: hourOf(n), keyId: 'a' }))
      const columns = hourColumns({ since, hours }, Date.parse(since) + offMs)
      for (const share of shares) {
        const expected = hours.reduce((sum, hourCounts) => sum + hourCounts[share], 0)
        expect(columns.reduce((sum, column) => sum + column[share], 0)).toBe(expected)
      }
    }),
  )
})

test('an active key has its issues, each with advice', () => {
  const key: IngestKey = {
    ...sums,
    id: 'key_a',
    label: 'a',
    prefix: 'agtx_ik_aaaaaaaa',
    state: 'active',
    createdAt: since,
    lastUsedAt: since,
    neverUsed: false,
    seenInBrowserAt: null,
    clock: { state: 'fine', offMs: 90 },
  }
  expect(keyIssues(key)).toEqual([])
  const texts = (ingestKey: IngestKey) => keyIssues(ingestKey).map(({ text }) => text)
  const odd: IngestKey = { ...key, seenInBrowserAt: since, clock: { state: 'behind', offMs: 3_600_000 } }
  expect(texts(odd)).toEqual(['sent from a browser', 'clock 1 h behind'])
  expect(texts({ ...key, neverUsed: true, clock: null })).toEqual(['never used'])
  expect(keyIssues({ ...odd, state: 'revoked' })).toEqual([])
  for (const issue of [...keyIssues(odd), ...keyIssues({ ...key, neverUsed: true })])
    expect(issue.advice).not.toBe('')
})
