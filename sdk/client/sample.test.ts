/** Sampling: shares are correct, sessions stay complete, errors and blocked events are always sent. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { CompleteEvent } from './event.ts'
import { isSampled, share } from './client.ts'

const event = (more: object = {}): CompleteEvent => ({
  ...{ id: 'e', siteId: 's', sessionId: 'x', occurredAt: '', type: 'a', outcome: 'success' },
  ...more,
})

test('errors, blocked events and denials are always sent', () => {
  for (const more of [{ outcome: 'error' }, { outcome: 'blocked' }, { policy: { decision: 'deny' } }]) {
    expect(isSampled(event(more), 0, 'x', () => 0.999)).toBe(true)
  }
  expect(isSampled(event(), 0, 'x', () => 0)).toBe(false)
  expect(isSampled(event(), 1, 'x', () => 0.999)).toBe(true)
})

test('law: a session is sent or dropped as a whole, and a higher rate sends a superset', () => {
  fc.assert(
    fc.property(fc.string(), fc.double({ min: 0, max: 1, noNaN: true }), (session, rate) => {
      const verdict = isSampled(event(), rate, session, () => 0)
      expect(isSampled(event({ id: 'other' }), rate, session, () => 1)).toBe(verdict)
      if (verdict) expect(isSampled(event(), Math.min(1, rate + 0.1), session, () => 1)).toBe(true)
    }),
  )
})

test('a rate of 0.1 sends about a tenth of the sessions', () => {
  const kept = Array.from({ length: 10_000 }, (_, index) => share(`sess_${index}`)).filter(
    (each) => each < 0.1,
  )
  expect(kept.length).toBeGreaterThan(850)
  expect(kept.length).toBeLessThan(1_150)
})

test('events without a session id are sampled one by one', () => {
  expect(isSampled(event(), 0.5, undefined, () => 0.4)).toBe(true)
  expect(isSampled(event(), 0.5, undefined, () => 0.6)).toBe(false)
})
