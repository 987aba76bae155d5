/** Lanes: two at a time each, claims ahead only for the quick, and nothing starts on a lease that is nearly over. */
import { expect, test } from 'bun:test'
import type { Claim } from '../../db/webhook-store.ts'
import { isQuick, makeLanes } from './lanes.ts'

const claim = (lane: string, id: string) => ({ lane, leaseId: id, delivery: { id } }) as Claim
const idsOf = (claims: Claim[]) => claims.map(({ delivery }) => delivery.id)

test('two of a lane at a time, in order, and no more than there is room for', () => {
  const lanes = makeLanes(2)
  lanes.add([claim('a', 'a1'), claim('a', 'a2'), claim('a', 'a3'), claim('b', 'b1')], 0)
  const first = lanes.start(2, 0).start
  expect(idsOf(first)).toEqual(['a1', 'a2'])
  expect(idsOf(lanes.start(30, 0).start)).toEqual(['b1'])
  expect(lanes.start(30, 0)).toEqual({ start: [], release: [] })
  lanes.ended(first[0]!, true)
  expect(idsOf(lanes.start(30, 0).start)).toEqual(['a3'])
})

test('quick answers are claimed ahead for, more and more; one that is not ends it', () => {
  const lanes = makeLanes(2)
  const a = claim('a', 'a')
  const answer = (quick: boolean) => {
    lanes.add([a], 0)
    lanes.start(1, 0)
    lanes.ended(a, quick)
    return lanes.ahead()['a'] ?? 0
  }
  expect([true, true, true, true, true, true].map(answer)).toEqual([2, 4, 8, 16, 30, 30])
  expect([false, true].map(answer)).toEqual([0, 2])
  expect([isQuick(249, true), isQuick(250, true), isQuick(1, false)]).toEqual([true, false, false])
})

test('what waited ten seconds goes back, and so does all at the end', () => {
  const lanes = makeLanes(2)
  lanes.add([claim('a', 'old')], 0)
  lanes.add([claim('a', 'new'), claim('a', 'third'), claim('a', 'fourth')], 5_000)
  const { start, release } = lanes.start(30, 10_001)
  expect([idsOf(start), idsOf(release)]).toEqual([['new', 'third'], ['old']])
  expect(idsOf(lanes.takeAll())).toEqual(['fourth'])
  expect(lanes.takeAll()).toEqual([])
})
