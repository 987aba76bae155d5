/** Laws of the retry policy: at most 1 + 3 counted attempts, none for local failures, pauses after 410 or five days. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Claim } from '../../../db/contract/webhooks.ts'
import { classify, statusFailure } from '../sinks/sink.ts'
import {
  failingMsMax,
  decideOutcome,
  probeEveryMs,
  nextAttemptAt,
  type AttemptResult,
} from './retry-policy.ts'
import { readRetryAfter } from '../sinks/http.ts'
import { limits } from '../../limits.ts'

const waitsMs = [1_000, 2_000, 3_000]
const now = 1_700_000_000_000

function claimOf(
  fields: Partial<Claim['delivery']> = {},
  claimFields: Partial<Omit<Claim, 'delivery'>> = {},
): Claim {
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
      ...fields,
    },
    pendingSinceMs: now,
    encryptedSecrets: [],
    probe: false,
    failingSinceMs: null,
    ...claimFields,
  }
}

function resultOf(status: number | null, fields: Partial<AttemptResult> = {}): AttemptResult {
  const failure = status === null || (status >= 200 && status < 300) ? null : statusFailure(status)
  return { atMs: now, durationMs: 5, status, excerpt: '', retryAfterMs: null, failure, ...fields }
}

const localFailure = resultOf(null, {
  failure: classify(Object.assign(new Error(), { code: 'ENETUNREACH' }), false),
})
const outcomeOf = (claim: Claim, result: AttemptResult, endedAtMs = now) => {
  return decideOutcome({ claim, result, waitsMs, endedAtMs, random: 0.5 })
}

test('any 2xx delivers; other results are retried after their wait; the fourth failure is a dead letter', () => {
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 999 }), fc.integer({ min: 0, max: 3 }), (status, attempts) => {
      const { next, attempt } = outcomeOf(claimOf({ attempts }), resultOf(status))
      expect(attempt.counted).toBe(true)
      if (status >= 200 && status < 300) expect(next).toEqual({ status: 'delivered' })
      else if (attempts === 3 || status === 410) expect(next).toEqual({ status: 'dead_letter' })
      else expect(next).toEqual({ status: 'pending', atMs: now + waitsMs[attempts]! * 1.1 })
    }),
  )
})

test('Retry-After lengthens a wait', () => {
  const { next } = outcomeOf(claimOf(), resultOf(503, { retryAfterMs: 9_000 }))
  expect(next).toEqual({ status: 'pending', atMs: now + 9_000 })
})

test('any number of local failures within a day uses up no retry', () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 60 }), (failures) => {
      let attempts = 0
      let counted = 0
      for (const isLocal of failures) {
        const { next, attempt } = outcomeOf(claimOf({ attempts }), isLocal ? localFailure : resultOf(500))
        if (!isLocal) counted++
        if (attempt.counted) attempts++
        expect(attempts).toBe(counted)
        expect(next.status).toBe(counted === 4 ? 'dead_letter' : 'pending')
        if (counted === 4) return
      }
    }),
  )
})

test('a local failure that lasts longer than a day counts, so that no delivery stays pending for ever', () => {
  const old = claimOf({}, { pendingSinceMs: now - 24 * 3_600_000 })
  expect(outcomeOf(old, localFailure).attempt.counted).toBe(true)
})

test('an attempt aborted by a stop is due at once and not counted', () => {
  const { attempt, next } = outcomeOf(
    claimOf(),
    resultOf(null, { failure: classify(new Error('aborted'), true) }),
  )
  expect([attempt.counted, next]).toEqual([false, { status: 'pending', atMs: now }])
})

describe('endpoints', () => {
  test('410 pauses the endpoint at once, without probes; a direct delivery has no endpoint to pause', () => {
    const goneOutcome = outcomeOf(claimOf(), resultOf(410))
    expect(goneOutcome.pause).toMatchObject({
      reason: 'gone',
      nextProbeAtMs: null,
      audit: { target: 'ep_1', actor: 'system' },
    })
    expect(outcomeOf(claimOf({ endpointId: null }), resultOf(410)).pause).toBeUndefined()
  })

  test('five days of failures pause the endpoint; one millisecond less does not', () => {
    const since = (ms: number) => outcomeOf(claimOf({}, { failingSinceMs: now - ms }), resultOf(500)).pause
    expect(since(failingMsMax - 1)).toBeUndefined()
    expect(since(failingMsMax)).toMatchObject({ reason: 'failing', nextProbeAtMs: now + probeEveryMs })
    expect(outcomeOf(claimOf({}, { failingSinceMs: 0 }), localFailure).pause).toBeUndefined()
  })

  test('a failed probe is not counted; a successful one resumes the endpoint', () => {
    const probe = claimOf({ attempts: 3 }, { probe: true, failingSinceMs: 0 })
    const failed = outcomeOf(probe, resultOf(500))
    expect([failed.attempt.counted, failed.next.status, failed.pause]).toEqual([false, 'pending', undefined])
    expect(outcomeOf(probe, resultOf(200))).toMatchObject({
      next: { status: 'delivered' },
      resume: { action: 'webhook_endpoint.resumed' },
    })
  })
})

const retryWaitsMs = [60_000, 300_000, 1_800_000]

test('each retry waits its configured time plus up to 20 %, or as long as Retry-After says, at most one hour', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 8 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      fc.option(fc.integer({ min: 0, max: 1e9 })),
      (attempts, random, retryAfterMs) => {
        const nextAtMs = nextAttemptAt({ attempts, waitsMs: retryWaitsMs, retryAfterMs, atMs: 1_000, random })
        const waitMs = retryWaitsMs[attempts - 1]
        if (waitMs === undefined) return expect(nextAtMs).toBeNull()
        const waited = nextAtMs! - 1_000
        const retryAfter = Math.min(retryAfterMs ?? 0, limits.webhookRetryAfterMsMax)
        expect(waited).toBeGreaterThanOrEqual(Math.max(waitMs, retryAfter))
        expect(waited).toBeLessThanOrEqual(Math.max(waitMs * 1.2, retryAfter))
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
  ['9999999999', limits.webhookRetryAfterMsMax],
  ['9'.repeat(400), limits.webhookRetryAfterMsMax],
  ['3600', 3_600_000],
  ['3601', limits.webhookRetryAfterMsMax],
  ['Wed, 31 Dec 9999 23:59:59 GMT', limits.webhookRetryAfterMsMax],
  ['soon', null],
  ['2026', 2_026_000],
  ['2026-11-21', null],
])('Retry-After %s', (header, expected) => {
  expect(readRetryAfter(header, Date.UTC(2026, 10, 21))).toBe(expected)
})
