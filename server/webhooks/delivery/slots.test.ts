/** Lanes: two sends at a time, claims ahead for quick receivers only, and no start on a lease that is nearly over. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { shareSlots, type DueLane } from '../../../db/rules/webhook-share.ts'
import { limits } from '../../limits.ts'
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
  expect(['a1', 'a3', 'b1'].map((id) => lanes.isReady(id, 'a'))).toEqual([false, true, false])
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
  const a = claim('a', 'a1')
  const b = claim('b', 'b1', false, 'org_2')
  lanes.add([a, b], 0)
  lanes.start(32, 0)
  const emptyLoad = { count: 1, firstTries: 1, hangs: false }
  expect(lanes.share(1_999)).toMatchObject({
    paces: {},
    slow: 0,
    held: { org_1: emptyLoad, org_2: emptyLoad },
  })
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
    const newClaim = claim(lane, lane, false, orgId)
    lanes.add([newClaim], 0)
    lanes.start(32, 0)
    lanes.ended(newClaim, { durationMs, isDelivered: false })
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

test('a first try that hangs gives its slot back, within limits; a later attempt never does', () => {
  const lanes = makeLanes(2)
  const claims = Array.from({ length: 40 }, (_, n) => claim(`lane-${n}`, `id-${n}`))
  lanes.add(claims, 0)
  lanes.start(40, 0)
  expect([lanes.occupied(1_999), lanes.nextChangeMs(1_999)]).toEqual([40, 2_000])
  expect([lanes.occupied(2_000), lanes.nextChangeMs(2_000)]).toEqual([8, null])
  expect(lanes.share(2_000).held).toEqual({ org_1: { count: 8, firstTries: 0, hangs: true } })
  const otherClaims = Array.from({ length: 40 }, (_, n) =>
    claim(`other-${n}`, `id-${n}`, false, `org_${n + 2}`),
  )
  lanes.add(otherClaims, 2_000)
  lanes.start(40, 2_000)
  expect(lanes.occupied(4_000)).toBe(80 - limits.webhookHangingMax)
  for (const endedClaim of [...claims, ...otherClaims])
    lanes.ended(endedClaim, { durationMs: 15_000, isDelivered: false })
  expect(lanes.occupied(20_000)).toBe(0)
  lanes.add([claims[0]!], 20_000)
  lanes.start(1, 20_000)
  expect([lanes.occupied(30_000), lanes.nextChangeMs(30_000)]).toEqual([1, null])
})

interface Receiver {
  hangs: boolean
  wasTried: boolean
  dueAtMs: number
}

/**
 * Runs the slots in virtual time, with a claim when an attempt ends and when a first try begins to hang. Returns the
 * time at which each receiver's first attempt began.
 */
function beginnings(receivers: Receiver[]): number[] {
  const lanes = makeLanes(limits.webhooksPerLaneMax)
  const names = receivers.map((_, index) => `lane-${index}`)
  for (const [index, { hangs, wasTried }] of receivers.entries()) {
    if (!wasTried) continue
    const earlier = claim(names[index]!, `earlier-${index}`)
    lanes.add([earlier], 0)
    lanes.start(Infinity, 0)
    lanes.ended(earlier, { durationMs: hangs ? limits.webhookTimeoutMs : 5, isDelivered: !hangs })
  }
  const waiting = new Set(receivers.keys())
  const began = new Map<number, number>()
  const running = new Map<number, { made: Claim; endsMs: number }>()
  for (let now = 0; began.size < receivers.length;) {
    const { paces, ...share } = lanes.share(now)
    const due: DueLane[] = [...waiting].map((index) => {
      const { dueAtMs } = receivers[index]!
      const pace = paces[names[index]!] ?? 'unknown'
      return { lane: names[index]!, orgId: 'org_1', pace, dueAtMs, wants: 1 }
    })
    const free = () => limits.webhooksInFlightMax - lanes.occupied(now)
    for (const lane of shareSlots(due, free(), { paces, ...share }).keys()) {
      const index = names.indexOf(lane)
      const newClaim = claim(lane, `claim-${index}`)
      lanes.add([newClaim], now)
      lanes.start(Infinity, now)
      waiting.delete(index)
      began.set(index, now)
      running.set(index, {
        made: newClaim,
        endsMs: now + (receivers[index]!.hangs ? limits.webhookTimeoutMs : 5),
      })
    }
    const ends = [...running.values()].map(({ endsMs }) => endsMs)
    now = Math.min(...ends, lanes.nextChangeMs(now) ?? Infinity)
    for (const [index, { made: newClaim, endsMs }] of running) {
      if (endsMs > now) continue
      running.delete(index)
      lanes.ended(newClaim, {
        durationMs: receivers[index]!.hangs ? limits.webhookTimeoutMs : 5,
        isDelivered: true,
      })
    }
  }
  return receivers.map((_, index) => began.get(index)!)
}

test('whatever forty receivers hang, tried or not, due before or after: no other waits for a timeout', () => {
  const receiver = (hangs: boolean, wasTried: boolean) =>
    fc.record({
      hangs: fc.constant(hangs),
      wasTried: fc.constant(wasTried),
      dueAtMs: fc.integer({ min: -60_000, max: 0 }),
    })
  const hanging = fc.boolean().chain((wasTried) => receiver(true, wasTried))
  const answering = receiver(false, false)
  const receivers = fc
    .tuple(
      fc.array(hanging, { minLength: 40, maxLength: 40 }),
      fc.array(answering, { minLength: 1, maxLength: 5 }),
    )
    .map((lists) => lists.flat())
  fc.assert(
    fc.property(receivers, (receiverList) => {
      const began = beginnings(receiverList).filter((_, index) => !receiverList[index]!.hangs)
      // Two rounds of first tries that hang, each of which gives its slots back when it is known to be slow.
      expect(Math.max(...began)).toBeLessThanOrEqual(3 * 2_000)
    }),
  )
})
