/** How responses are classified: every status has one verdict, and Retry-After is parsed. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { backoffMs } from './retry.ts'
import { retryAfterMs, verdictOf } from './request.ts'

const nowMs = Date.UTC(2026, 10, 20)

test.each<[string | null, number | null]>([
  [null, null],
  ['0', 0],
  ['7', 7_000],
  ['99999999', 3_600_000],
  [new Date(nowMs + 5_000).toUTCString(), 5_000],
  [new Date(nowMs - 5_000).toUTCString(), 0],
  ['soon', null],
  ['', null],
])('Retry-After %p means %p ms', (header, ms) => {
  expect(retryAfterMs(header, nowMs)).toBe(ms)
})

test('law: every response has a verdict, and only 2xx with a JSON body is done', () => {
  const body = fc.oneof(fc.constant(undefined), fc.jsonValue())
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 599 }), body, (status, value) => {
      const verdict = verdictOf({ kind: 'response', status, headers: new Headers(), body: value }, nowMs)
      const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
      expect(verdict.kind === 'done').toBe(status >= 200 && status < 300 && isObject)
      if (status >= 500 && status !== 501) expect(verdict.kind).toBe('retry')
    }),
  )
})

test('wrong_site rejects the events; other 403 responses refuse everything', () => {
  const verdict = (body: object) =>
    verdictOf({ kind: 'response', status: 403, headers: new Headers(), body }, nowMs).kind
  expect(verdict({ error: 'forbidden', reason: 'wrong_site' })).toBe('rejected')
  expect(verdict({ error: 'forbidden', reason: 'wrong_key_kind' })).toBe('refused')
})

test('a TLS failure is refused, a lost connection is retried', () => {
  const failure = { kind: 'failure', message: 'x', cause: null } as const
  expect(verdictOf({ ...failure, isTls: true }, nowMs).kind).toBe('refused')
  expect(verdictOf({ ...failure, isTls: false }, nowMs).kind).toBe('retry')
})

test('law: pauses grow to the maximum, never above it, never below half', () => {
  fc.assert(
    fc.property(fc.nat(1_000), fc.double({ min: 0, max: 1, noNaN: true }), (attempt, random) => {
      const ms = backoffMs(attempt, 500, 30_000, () => random)
      const stepMs = Math.min(30_000, 500 * 2 ** Math.min(attempt, 30))
      expect(ms).toBeGreaterThanOrEqual(stepMs / 2)
      expect(ms).toBeLessThanOrEqual(stepMs)
    }),
  )
})
