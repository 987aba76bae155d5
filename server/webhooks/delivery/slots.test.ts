/** Lanes: two sends at a time, claims ahead for quick receivers only, and no start on a lease that is nearly over. */
import { expect, test } from 'bun:test'
import type { Claim } from '../../../db/contract/webhooks.ts'
import { makeLanes } from './slots.ts'

const claim = (lane: string, id: string, isAhead = false, orgId = 'org_1') =>
  ({ lane, leaseId: id, isAhead, delivery: { id, orgId } }) as Claim
const quick = { durationMs: 249, isDelivered: true }
const idsOf = (claims: Claim[]) => claims.map(({ delivery }) => delivery.id)

test('at most two per lane, in order, and no more than there are slots', () => {
  const lanes = makeLanes(2)
  lanes.add([claim('a', 'a1'), claim('a', 'a2'), claim('a', 'a3'), claim('b', 'b1')], 0)
  const first = lanes.start(2, 0).start
  expect(idsOf(first)).toEqual(['a1', 'a2'])
  expect(idsOf(lanes.start(30, 0).start)).toEqual(['b1'])
  expect(lanes.start(30, 0)).toEqual({ start: [], release: [] })
  lanes.ended(first[0]!, quick)
  expect(idsOf(lanes.start(30, 0).start)).toEqual(['a3'])
})

test('claims ahead grow with quick responses; a slow one ends them', () => {
  const lanes = makeLanes(2)
  const a = claim('a', 'a')
  const answer = (attempt: typeof quick) => {
    lanes.add([a], 0)
    lanes.start(1, 0)
    lanes.ended(a, attempt)
    return lanes.ahead()['a'] ?? 0
  }
  expect(Array(6).fill(quick).map(answer)).toEqual([2, 4, 8, 16, 30, 30])
  expect([{ ...quick, durationMs: 250 }, quick].map(answer)).toEqual([0, 2])
  expect([{ durationMs: 1, isDelivered: false }, quick].map(answer)).toEqual([0, 2])
})

test('claims are released after 10 s and at the end', () => {
  const lanes = makeLanes(2)
  lanes.add([claim('a', 'old')], 0)
  lanes.add([claim('a', 'new'), claim('a', 'third'), claim('a', 'fourth')], 5_000)
  const { start, release } = lanes.start(30, 10_001)
  expect([idsOf(start), idsOf(release)]).toEqual([['new', 'third'], ['old']])
  expect(idsOf(lanes.removeAll())).toEqual(['fourth'])
  expect(lanes.removeAll()).toEqual([])
})

test("claims ahead leave the slots reserved for an organization's first send free", () => {
  const lanes = makeLanes(2)
  lanes.add([claim('a', 'a1', true), claim('b', 'b1', false, 'org_2')], 0)
  expect(idsOf(lanes.start(12, 0).start)).toEqual(['b1'])
  expect(idsOf(lanes.start(13, 0).start)).toEqual(['a1'])
})

test('a receiver is slow once an attempt takes 2 s, until a quicker one', () => {
  const lanes = makeLanes(2)
  const [a, b] = [claim('a', 'a1'), claim('b', 'b1', false, 'org_2')]
  lanes.add([a, b], 0)
  lanes.start(32, 0)
  const none = { count: 1, hangs: false }
  expect(lanes.share(1_999)).toMatchObject({ paces: {}, slow: 0, held: { org_1: none, org_2: none } })
  expect(lanes.share(2_000)).toMatchObject({ paces: { a: 'slow', b: 'slow' }, slow: 2 })
  lanes.ended(a, { durationMs: 15_000, isDelivered: false })
  lanes.ended(b, { durationMs: 3, isDelivered: false })
  expect(lanes.share(20_000)).toMatchObject({ paces: { a: 'slow', b: 'quick' }, slow: 0 })
  lanes.add([a], 20_000)
  lanes.start(32, 20_000)
  lanes.ended(a, quick)
  expect(lanes.share(21_000).paces).toEqual({ a: 'quick', b: 'quick' })
})

test('an organization with four slow receivers counts as slow; a thousand lanes are remembered', () => {
  const lanes = makeLanes(2)
  const send = (lane: string, durationMs: number, orgId: string) => {
    const made = claim(lane, lane, false, orgId)
    lanes.add([made], 0)
    lanes.start(32, 0)
    lanes.ended(made, { durationMs, isDelivered: false })
  }
  for (let n = 0; n < 4; n++) send(`slow-${n}`, 15_000, n < 3 ? 'org_1' : 'org_2')
  expect(lanes.share(0).held).toMatchObject({ org_1: { hangs: false }, org_2: { hangs: false } })
  send('slow-4', 15_000, 'org_1')
  expect(lanes.share(0).held).toMatchObject({ org_1: { hangs: true }, org_2: { hangs: false } })
  for (let n = 0; n < 1_200; n++) send(`lane-${n}`, 1, 'org_3')
  const { paces } = lanes.share(0)
  expect([Object.keys(paces).length, paces['slow-0'], paces['lane-1199']]).toEqual([
    1_000,
    undefined,
    'quick',
  ])
})
