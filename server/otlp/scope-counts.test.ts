/** Counts by scope add up, and neither scopes nor organizations can fill the memory. */
import { expect, test } from 'bun:test'
import { countItem, makeScopeCounts, type ScopeCount } from './scope-counts.ts'

const count = (scope: string, more: Partial<ScopeCount> = {}): ScopeCount => ({
  ...{ scope, mapped: 0, modelCalls: 0, leftOut: 0, refused: 0 },
  ...more,
})

test('requests of one scope add up, by organization, most items first', () => {
  const counts = makeScopeCounts(0)
  const request = new Map<string, ScopeCount>()
  for (const what of ['mapped', 'mapped', 'refused'] as const) countItem(request, 'ai', what)
  countItem(request, 'http', 'leftOut')
  counts.add('a', request.values())
  counts.add('a', [count('http', { leftOut: 5, modelCalls: 1 })])
  counts.add('b', [count('ai', { mapped: 9 })])
  expect(counts.list('a')).toEqual([
    count('http', { leftOut: 6, modelCalls: 1 }),
    count('ai', { mapped: 2, refused: 1 }),
  ])
  expect(counts.list('c')).toEqual([])
})

test('scopes beyond 200 are counted together, within a request and over all', () => {
  const request = new Map<string, ScopeCount>()
  for (let n = 0; n < 1_000; n++) countItem(request, `scope ${n}`, 'mapped')
  expect(request.size).toBe(201)
  const counts = makeScopeCounts(0)
  counts.add('a', request.values())
  counts.add('a', [count('x'.repeat(5_000), { refused: 7 })])
  const listed = counts.list('a')
  expect(listed.length).toBe(201)
  expect(listed[0]).toEqual(count('(other)', { mapped: 800, refused: 7 }))
  for (let n = 0; n < 2_000; n++) counts.add(`org ${n}`, [count('s', { mapped: 1 })])
  expect(counts.list('org 1999')).toEqual([])
})
