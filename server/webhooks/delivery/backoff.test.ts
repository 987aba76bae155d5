/** The law of the waits: never before the step, at most 20 % later or as late as asked, three times at most. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { nextAttemptAt, readRetryAfter, retryAfterMsMax } from './backoff.ts'

const stepsMs = [60_000, 300_000, 1_800_000]

test('each retry waits its step, up to a fifth more, or what the receiver asked for, an hour at most', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 8 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      fc.option(fc.integer({ min: 0, max: 1e9 })),
      (attempts, random, retryAfterMs) => {
        const at = nextAttemptAt({ attempts, stepsMs, retryAfterMs, atMs: 1_000, random })
        const stepMs = stepsMs[attempts - 1]
        if (stepMs === undefined) return expect(at).toBeNull()
        const waited = at! - 1_000
        const asked = Math.min(retryAfterMs ?? 0, retryAfterMsMax)
        expect(waited).toBeGreaterThanOrEqual(Math.max(stepMs, asked))
        expect(waited).toBeLessThanOrEqual(Math.max(stepMs * 1.2, asked))
      },
    ),
  )
})

test.each([
  ['120', 120_000],
  [' 5 ', 5_000],
  ['0', 0],
  ['Sat, 21 Nov 2026 00:01:00 GMT', 60_000],
  ['Fri, 20 Nov 2026 23:00:00 GMT', 0],
  ['', null],
  ['-5', null],
  ['1.5', 1_500],
  ['0.0001', 1],
  ['1.', null],
  ['1e9', null],
  ['+5', null],
  ['0x10', null],
  ['9999999999', retryAfterMsMax],
  ['9'.repeat(400), retryAfterMsMax],
  ['3600', 3_600_000],
  ['3601', retryAfterMsMax],
  ['Wed, 31 Dec 9999 23:59:59 GMT', retryAfterMsMax],
  ['soon', null],
  ['2026', 2_026_000],
  ['2026-11-21', null],
])('Retry-After %s', (header, expected) => {
  expect(readRetryAfter(header, Date.UTC(2026, 10, 21))).toBe(expected)
})
