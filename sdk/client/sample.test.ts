/** Tests of sampling: shares come out right, sessions stay whole, errors and blocks stay. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { CompleteEvent } from './event.ts'
import { isKept, share } from './client.ts'

const event = (more: object = {}): CompleteEvent => ({
  ...{ id: 'e', siteId: 's', sessionId: 'x', occurredAt: '', type: 'a', outcome: 'success' },
  ...more,
})

test('errors, blocks and denials are always kept', () => {
  for (const more of [{ outcome: 'error' }, { outcome: 'blocked' }, { policy: { decision: 'deny' } }]) {
    expect(isKept(event(more), 0, 'x', () => 0.999)).toBe(true)
  }
  expect(isKept(event(), 0, 'x', () => 0)).toBe(false)
  expect(isKept(event(), 1, 'x', () => 0.999)).toBe(true)
})

test('law: one session has one verdict, and a higher rate keeps what a lower one kept', () => {
  fc.assert(
    fc.property(fc.string(), fc.double({ min: 0, max: 1, noNaN: true }), (session, rate) => {
      const verdict = isKept(event(), rate, session, () => 0)
      expect(isKept(event({ id: 'other' }), rate, session, () => 1)).toBe(verdict)
      if (verdict) expect(isKept(event(), Math.min(1, rate + 0.1), session, () => 1)).toBe(true)
    }),
  )
})

test('a tenth of the sessions is about a tenth', () => {
  const kept = Array.from({ length: 10_000 }, (_, index) => share(`sess_${index}`)).filter(
    (each) => each < 0.1,
  )
  expect(kept.length).toBeGreaterThan(850)
  expect(kept.length).toBeLessThan(1_150)
})

test('without a session of the host’s the event decides by itself', () => {
  expect(isKept(event(), 0.5, undefined, () => 0.4)).toBe(true)
  expect(isKept(event(), 0.5, undefined, () => 0.6)).toBe(false)
})
