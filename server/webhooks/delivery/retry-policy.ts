/** Decides what follows an attempt: delivered, a retry at some time, or a dead letter; and pauses failing endpoints. */
import type { AuditEntry } from '../../../db/contract/store.ts'
import type { Claim, Outcome } from '../../../db/contract/webhooks.ts'
import { newId } from '../../ids.ts'
import { limits } from '../../limits.ts'
import { failureText, type Failure } from '../sinks/sink.ts'
import { dayMs } from '../../../db/contract/units.ts'

const goneStatus = 410
export const failingMsMax = 5 * dayMs
export const probeEveryMs = 3_600_000
/** After a day local failures count like any other, so that no delivery stays pending for ever. */
const uncountedMsMax = dayMs
const localRetryMsMax = 60_000
const jitterShareMax = 0.2

export interface AttemptResult {
  atMs: number
  durationMs: number
  status: number | null // of HTTP
  excerpt: string
  retryAfterMs: number | null
  failure: Failure | null // null: delivered
}

interface EndedAttempt {
  claim: Claim
  result: AttemptResult
  waitsMs: readonly number[] // before each retry, for endpoints without their own
  endedAtMs: number
  random: number // 0 inclusive to 1 exclusive
}

export function decideOutcome(ended: EndedAttempt): Outcome {
  const { claim, result, endedAtMs } = ended
  const { failure } = result
  const isCounted = failure === null || !(claim.probe || isUncounted(ended))
  const outcome: Outcome = {
    deliveryId: claim.delivery.id,
    leaseId: claim.leaseId,
    attempt: {
      atMs: result.atMs,
      status: result.status,
      durationMs: result.durationMs,
      responseExcerpt: result.excerpt,
      error: failure === null ? null : failureText(failure),
      counted: isCounted,
    },
    next: isCounted ? nextStep(ended) : { status: 'pending', atMs: uncountedRetryAt(ended) },
  }
  if (failure === null) {
    // A success ends the failing state, even when another attempt of the same run just paused the endpoint.
    const wasFailing = claim.failingSinceMs !== null
    return wasFailing ? { ...outcome, resume: endpointAudit(claim, endedAtMs, 'resumed') } : outcome
  }
  const pause = isCounted ? pauseOf(ended) : null
  return pause === null ? outcome : { ...outcome, pause }
}

function isUncounted({ claim, result, endedAtMs }: EndedAttempt): boolean {
  return result.failure?.isLocal === true && endedAtMs - claim.pendingSinceMs < uncountedMsMax
}

function nextStep({
  claim,
  result,
  waitsMs: defaultWaitsMs,
  endedAtMs,
  random,
}: EndedAttempt): Outcome['next'] {
  if (result.failure === null) return { status: 'delivered' }
  if (result.status === goneStatus) return { status: 'dead_letter' }
  const attempts = claim.delivery.attempts + 1
  const { retryAfterMs } = result
  const waitsMs = claim.retryWaitsMs ?? defaultWaitsMs
  const atMs = nextAttemptAt({ attempts, waitsMs, retryAfterMs, atMs: endedAtMs, random })
  return atMs === null ? { status: 'dead_letter' } : { status: 'pending', atMs }
}

/** After a stop of the appliance the delivery is due at once; a failed probe waits for the endpoint's next probe. */
function uncountedRetryAt({ claim, result, waitsMs, endedAtMs }: EndedAttempt): number {
  if (claim.probe || result.failure?.code === 'interrupted') return endedAtMs
  return endedAtMs + Math.min(waitsMs[0] ?? localRetryMsMax, localRetryMsMax)
}

function pauseOf({ claim, result, endedAtMs }: EndedAttempt): NonNullable<Outcome['pause']> | null {
  if (claim.delivery.endpointId === null) return null
  if (result.status === goneStatus) {
    const audit = endpointAudit(claim, endedAtMs, 'paused', { reason: 'gone', answered: goneStatus })
    return { reason: 'gone', failingSinceMs: null, nextProbeAtMs: null, audit }
  }
  if (claim.failingSinceMs === null || endedAtMs - claim.failingSinceMs < failingMsMax) return null
  const audit = endpointAudit(claim, endedAtMs, 'paused', { reason: 'failing' })
  const { failingSinceMs } = claim
  return { reason: 'failing', failingSinceMs, nextProbeAtMs: endedAtMs + probeEveryMs, audit }
}

function endpointAudit(
  { delivery }: Claim,
  occurredAtMs: number,
  change: 'paused' | 'resumed',
  metadata: AuditEntry['metadata'] = {},
): AuditEntry {
  const { orgId, endpointId, url } = delivery
  const action = `webhook_endpoint.${change}`
  const auditFields = { orgId, actor: 'system', action, target: endpointId ?? '', occurredAtMs }
  return { id: newId('aud'), ...auditFields, metadata: { url, ...metadata } }
}

interface FailedAttempt {
  attempts: number // counted attempts, including this one
  waitsMs: readonly number[] // before each retry
  retryAfterMs: number | null
  atMs: number
  random: number // 0 inclusive to 1 exclusive
}

/**
 * The time of the next attempt in ms since 1970, or null when no retry is left: the configured wait plus up to 20 %
 * jitter, or later when the receiver sends `Retry-After`.
 */
export function nextAttemptAt({
  attempts,
  waitsMs,
  retryAfterMs,
  atMs,
  random,
}: FailedAttempt): number | null {
  const waitMs = waitsMs[attempts - 1]
  if (waitMs === undefined) return null
  const requestedMs = Math.min(retryAfterMs ?? 0, limits.webhookRetryAfterMsMax)
  return atMs + Math.max(Math.round(waitMs * (1 + jitterShareMax * random)), requestedMs)
}
