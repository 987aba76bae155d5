/** Tests the share of slots: an organization with nothing in flight starts at once, and none starves. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { shareSlots, type DueLane, type Pace } from './webhook-share.ts'
import type { Held, Share } from '../contract/webhooks.ts'

const total = 32
const reserved = { forFirstSend: 12, forFirstTries: 14, forQuick: 16, forUntried: 20 }
const emptyShare: Share = { held: {}, slow: 0, paces: {}, reserved }
const lanesOf = (orgId: string, count: number, pace: Pace = 'unknown', dueAtMs = 0): DueLane[] =>
  Array.from({ length: count }, (_, n) => ({ lane: `${orgId}-${pace}-${n}`, orgId, pace, dueAtMs, wants: 2 }))
const sum = (granted: Map<string, number>, prefix = '') =>
  [...granted].filter(([lane]) => lane.startsWith(prefix)).reduce((slotSum, [, n]) => slotSum + n, 0)

test('one organization alone leaves slots free for the first send of others', () => {
  expect(sum(shareSlots(lanesOf('a', 100), total, emptyShare))).toBe(16)
  expect(sum(shareSlots(lanesOf('a', 100, 'quick'), total, emptyShare))).toBe(18)
  expect(sum(shareSlots(lanesOf('a', 100, 'slow'), total, emptyShare))).toBe(12)
  // Slow lanes have a few slots beside lanes of unknown pace, and quick lanes still get some.
  expect(sum(shareSlots([...lanesOf('a', 100, 'slow'), ...lanesOf('a', 20)], total, emptyShare))).toBe(18)
})

test.each<Pace>(['unknown', 'quick'])(
  'eleven organizations come one after the other and hang, %s before: a twelfth starts at once',
  (pace) => {
    const heldSlots: { [orgId: string]: Held } = {}
    let free = total
    const due: DueLane[] = []
    for (let n = 0; n < 11; n++) {
      due.push(...lanesOf(`h${n}.`, 100, pace, n))
      for (const [lane, count] of shareSlots(due, free, { ...emptyShare, held: heldSlots })) {
        const orgId = lane.split('-')[0]!
        const orgSlots = heldSlots[orgId] ?? { count: 0, firstTries: 0, hangs: false }
        const firstTries = orgSlots.firstTries + (pace === 'unknown' ? count : 0)
        heldSlots[orgId] = { count: orgSlots.count + count, firstTries, hangs: false }
        free -= count
      }
    }
    expect(free).toBeGreaterThan(0)
    for (const orgSlots of Object.values(heldSlots)) orgSlots.hangs = true
    const later = [...due, ...lanesOf('victim', 1, 'unknown', 1e6)]
    expect([...shareSlots(later, free, { ...emptyShare, held: heldSlots, slow: total - free })]).toEqual([
      ['victim-unknown-0', 1],
    ])
    // Retries beside receivers without any attempt use no reserved slot.
    for (const orgSlots of Object.values(heldSlots)) orgSlots.count = 0
    expect(sum(shareSlots(lanesOf('h1.', 100), 12, { ...emptyShare, held: heldSlots }))).toBe(0)
  },
)

test('within an organization the quick lanes continue while others hang', () => {
  const heldSlots = { a: { count: 16, firstTries: 0, hangs: true } }
  const lanes = [...lanesOf('a', 100, 'slow'), ...lanesOf('a', 3, 'quick', 5_000)]
  const granted = shareSlots(lanes, 16, { ...emptyShare, held: heldSlots, slow: 16 })
  expect([sum(granted, 'a-slow'), sum(granted, 'a-quick')]).toEqual([0, 2])
})

test('slow lanes, and lanes that answer at once, leave slots for two first tries of their organization', () => {
  const untried = lanesOf('a', 5, 'unknown', 1e6) // due after everything else
  const granted = shareSlots([...lanesOf('a', 100, 'slow'), ...untried], total, emptyShare)
  expect([sum(granted, 'a-slow'), sum(granted, 'a-unknown')]).toEqual([12, 4])
  const heldSlots = { a: { count: 18, firstTries: 0, hangs: true } }
  const busy = [...lanesOf('a', 100, 'quick'), ...lanesOf('a', 100, 'slow'), ...untried]
  expect([...shareSlots(busy, 14, { ...emptyShare, held: heldSlots })]).toEqual([
    ['a-unknown-0', 1],
    ['a-unknown-1', 1],
  ])
})

test('slow lanes get a few slots however busy the quick ones are', () => {
  const busy = Array.from({ length: 6 }, (_, n) => lanesOf(`q${n}`, 50, 'quick')).flat()
  const granted = shareSlots([...busy, ...lanesOf('s', 5, 'slow')], total, emptyShare)
  expect(sum(granted, 's-slow')).toBeGreaterThanOrEqual(1)
})

describe('whatever is due and held', () => {
  const pace = fc.constantFrom<Pace>('quick', 'slow', 'unknown')
  const lane = fc.record({
    orgId: fc.constantFrom('a', 'b', 'c', 'd'),
    pace,
    wants: fc.integer({ min: 0, max: 2 }),
  })
  const lanes = fc
    .array(lane, { maxLength: 60 })
    .map((laneDrafts) =>
      laneDrafts.map((draft, n) => ({ ...draft, lane: `${draft.orgId}-${n}`, dueAtMs: n })),
    )

  test('grants at most the free slots, and at most those a lane can use', () => {
    fc.assert(
      fc.property(lanes, fc.integer({ min: 0, max: total }), (waitingLanes, free) => {
        const granted = shareSlots(waitingLanes, free, emptyShare)
        expect(sum(granted)).toBeLessThanOrEqual(free)
        for (const { lane, wants } of waitingLanes) expect(granted.get(lane) ?? 0).toBeLessThanOrEqual(wants)
      }),
    )
  })

  test('with all slots free, a due delivery always gets one', () => {
    fc.assert(
      fc.property(lanes, (waitingLanes) => {
        const isDue = waitingLanes.some(({ wants }) => wants > 0)
        expect(sum(shareSlots(waitingLanes, total, emptyShare)) > 0).toBe(isDue)
      }),
    )
  })

  test('an organization that sends nothing gets a slot before another gets one more', () => {
    fc.assert(
      fc.property(lanes, fc.integer({ min: 1, max: 8 }), (waitingLanes, free) => {
        const heldSlots = Object.fromEntries(
          ['a', 'b', 'c'].map((id) => [id, { count: 8, firstTries: 0, hangs: true }]),
        )
        const granted = shareSlots(waitingLanes, free, { ...emptyShare, held: heldSlots, slow: 24 })
        const isDue = waitingLanes.some(
          ({ orgId, pace, wants }) => orgId === 'd' && pace !== 'slow' && wants > 0,
        )
        if (isDue) expect(sum(granted, 'd-')).toBeGreaterThan(0)
      }),
    )
  })

  test('an organization without a first try begins one beside any number of slow and quick sends of its own', () => {
    fc.assert(
      fc.property(lanes, fc.integer({ min: 13, max: total }), fc.boolean(), (waitingLanes, free, hangs) => {
        const orgLanes = waitingLanes.map((waitingLane) => ({ ...waitingLane, orgId: 'a' }))
        const heldSlots = { a: { count: total - free, firstTries: 0, hangs } }
        const granted = shareSlots(orgLanes, free, { ...emptyShare, held: heldSlots, slow: total - free })
        const untried = orgLanes.filter(({ pace, wants }) => pace === 'unknown' && wants > 0)
        const grantedLanes = untried.filter(({ lane }) => granted.has(lane))
        expect(grantedLanes.length).toBeGreaterThanOrEqual(Math.min(1, untried.length))
      }),
    )
  })
})
