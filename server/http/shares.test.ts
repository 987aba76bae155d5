/** A client that uses as much as it can still leaves capacity for others. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { makeShares, type Owner, type Share } from './shares.ts'

function acquireAll(shares: ReturnType<typeof makeShares>, owner: Owner): Share[] {
  const acquired: Share[] = []
  for (let share = shares.acquire(owner, 1); share !== null; share = shares.acquire(owner, 1))
    acquired.push(share)
  return acquired
}

test('a holder gets a quarter, its organization half, two organizations a third each', () => {
  const shares = makeShares(600)
  expect(acquireAll(shares, { orgId: 'a', holderId: 'key 1' }).length).toBe(150)
  expect(acquireAll(shares, { orgId: 'a', holderId: 'key 2' }).length).toBe(75)
  for (let n = 3; n < 50; n++) acquireAll(shares, { orgId: 'a', holderId: `key ${n}` })
  expect(shares.used()).toBeLessThanOrEqual(300)
  expect(shares.used()).toBeGreaterThan(290)
  expect(acquireAll(shares, { orgId: 'b', holderId: 'key' }).length).toBe(150)
  expect(shares.fits({ orgId: 'c', holderId: 'key' }, 70)).toBe(true)
})

test('released amounts are available again, in any order', () => {
  const owner = fc.record({
    orgId: fc.constantFrom('a', 'b', 'c'),
    holderId: fc.constantFrom('x', 'y'),
  })
  fc.assert(
    fc.property(fc.array(fc.tuple(owner, fc.integer({ min: 0, max: 40 }), fc.boolean())), (steps) => {
      const shares = makeShares(200)
      const heldShares: Share[] = []
      for (const [shareOwner, amount, gives] of steps) {
        const share = shares.acquire(shareOwner, amount)
        if (share !== null) heldShares.push(share)
        heldShares.at(-1)?.grow(amount)
        expect(shares.used()).toBeLessThanOrEqual(200)
        if (gives) heldShares.shift()?.release()
      }
      for (const share of heldShares) for (let twice = 0; twice < 2; twice++) share.release()
      expect(shares.used()).toBe(0)
      expect(shares.fits({ orgId: 'd', holderId: 'z' }, 100)).toBe(true)
    }),
  )
})
