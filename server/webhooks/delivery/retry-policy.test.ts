/** The life of a delivery as laws: 1 + 3 counted attempts at most, our own faults never; 410 and five days pause. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Claim } from '../../../db/contract/webhooks.ts'
import { type AttemptResult } from './attempt.ts'
import { classify, statusFault } from './failure.ts'
import { failingMsMax, judge, probeEveryMs, nextAttemptAt } from './retry-policy.ts'
import { readRetryAfter, retryAfterMsMax } from './attempt.ts'

const stepsMs = [1_000, 2_000, 3_000]
const now = 1_700_000_000_000

function claimOf(more: Partial<Claim['delivery']> = {}, about: Partial<Omit<Claim, 'delivery'>> = {}): Claim {
  return {
    leaseId: 'lea_1',
    isAhead: false,
    retryWaitsMs: null,
    lane: 'lane',
    delivery: {
      id: 'wh_1',
      orgId: 'org_1',
      endpointId: 'ep_1',
      url: 'http://receiver.test/',
      body: '{}',
      status: 'pending',
      attempts: 0,
      nextAttemptAtMs: now,
      lastError: null,
      lastStatus: null,
      scheduledAtMs: now,
      deliveredAtMs: null,
      ...more,
    },
    pendingSinceMs: now,
    sealedSecrets: [],
    probe: false,
    failingSinceMs: null,
    ...about,
  }
}

function resultOf(status: number | null, more: Partial<AttemptResult> = {}): AttemptResult {
  const fault = status === null || (status >= 200 && status < 300) ? null : statusFault(status)
  return { atMs: now, durationMs: 5, status, excerpt: '', retryAfterMs: null, fault, ...more }
}

const ours = resultOf(null, { fault: classify(Object.assign(new Error(), { code: 'ENETUNREACH' }), false) })
const of = (claim: Claim, result: AttemptResult, endedAtMs = now) => {
  return judge({ claim, result, stepsMs, endedAtMs, random: 0.5 })
}

test('any 2xx delivers, everything else is tried again after its step, the fourth failure is a dead letter', () => {
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 999 }), fc.integer({ min: 0, max: 3 }), (status, attempts) => {
      const { next, attempt } = of(claimOf({ attempts }), resultOf(status))
      expect(attempt.counted).toBe(true)
      if (status >= 200 && status < 300) expect(next).toEqual({ status: 'delivered' })
      else if (attempts === 3 || status === 410) expect(next).toEqual({ status: 'dead_letter' })
      else expect(next).toEqual({ status: 'pending', atMs: now + stepsMs[attempts]! * 1.1 })
    }),
  )
})

test('Retry-After lengthens a step', () => {
  const { next } = of(claimOf(), resultOf(503, { retryAfterMs: 9_000 }))
  expect(next).toEqual({ status: 'pending', atMs: now + 9_000 })
})

test('however often our own side fails within a day, no retry is used up', () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 60 }), (faultsOfOurs) => {
      let attempts = 0
      let counted = 0
      for (const isOurs of faultsOfOurs) {
        const { next, attempt } = of(claimOf({ attempts }), isOurs ? ours : resultOf(500))
        if (!isOurs) counted++
        if (attempt.counted) attempts++
        expect(attempts).toBe(counted)
        expect(next.status).toBe(counted === 4 ? 'dead_letter' : 'pending')
        if (counted === 4) return
      }
    }),
  )
})

test('a fault of ours that lasts longer than a day counts, so that nothing stays for ever', () => {
  const old = claimOf({}, { pendingSinceMs: now - 24 * 3_600_000 })
  expect(of(old, ours).attempt.counted).toBe(true)
})

test('cut off by our own stop: due at once, not counted', () => {
  const { attempt, next } = of(claimOf(), resultOf(null, { fault: classify(new Error('aborted'), true) }))
  expect([attempt.counted, next]).toEqual([false, { status: 'pending', atMs: now }])
})

describe('endpoints', () => {
  test('410 pauses at once, without probes; a direct delivery has nothing to pause', () => {
    const gone = of(claimOf(), resultOf(410))
    expect(gone.pause).toMatchObject({
      reason: 'gone',
      nextProbeAtMs: null,
      audit: { target: 'ep_1', actor: 'system' },
    })
    expect(of(claimOf({ endpointId: null }), resultOf(410)).pause).toBeUndefined()
  })

  test('five days of nothing but failures pause, one millisecond less does not', () => {
    const since = (ms: number) => of(claimOf({}, { failingSinceMs: now - ms }), resultOf(500)).pause
    expect(since(failingMsMax - 1)).toBeUndefined()
    expect(since(failingMsMax)).toMatchObject({ reason: 'failing', nextProbeAtMs: now + probeEveryMs })
    expect(of(claimOf({}, { failingSinceMs: 0 }), ours).pause).toBeUndefined()
  })

  test('a probe that fails costs nothing, one that works resumes', () => {
    const probe = claimOf({ attempts: 3 }, { probe: true, failingSinceMs: 0 })
    const failed = of(probe, resultOf(500))
    expect([failed.attempt.counted, failed.next.status, failed.pause]).toEqual([false, 'pending', undefined])
    expect(of(probe, resultOf(200))).toMatchObject({
      next: { status: 'delivered' },
      resume: { action: 'webhook_endpoint.resumed' },
    })
  })
})

const waitsMs = [60_000, 300_000, 1_800_000]

test('each retry waits its step, up to a fifth more, or what the receiver asked for, an hour at most', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 8 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      fc.option(fc.integer({ min: 0, max: 1e9 })),
      (attempts, random, retryAfterMs) => {
        const at = nextAttemptAt({ attempts, stepsMs: waitsMs, retryAfterMs, atMs: 1_000, random })
        const stepMs = waitsMs[attempts - 1]
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
