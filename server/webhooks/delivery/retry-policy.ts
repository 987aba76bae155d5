/** Decides what follows from an attempt: delivered, tried again and when, or a dead letter, maybe with a pause. */
import { newId } from '../../ids.ts'
import { faultText } from './failure.ts'
import type { AuditEntry } from '../../../db/contract/store.ts'
import type { Claim, Outcome } from '../../../db/contract/webhooks.ts'
import { retryAfterMsMax, type AttemptResult } from './attempt.ts'

const gone = 410
const dayMs = 24 * 3_600_000
export const failingMsMax = 5 * dayMs
export const probeEveryMs = 3_600_000
/** Faults of ours that never end would keep a delivery for ever: after a day they count like any other. */
const oursMsMax = dayMs
const oursRetryMsMax = 60_000

export interface Judgement {
  claim: Claim
  result: AttemptResult
  stepsMs: readonly number[]
  endedAtMs: number
  random: number // 0 inclusive to 1 exclusive
}

export function judge(judgement: Judgement): Outcome {
  const { claim, result, endedAtMs } = judgement
  const { fault } = result
  const isCounted = fault === null || !(claim.probe || isOurs(judgement))
  const outcome: Outcome = {
    deliveryId: claim.delivery.id,
    leaseId: claim.leaseId,
    attempt: {
      atMs: result.atMs,
      status: result.status,
      durationMs: result.durationMs,
      responseExcerpt: result.excerpt,
      error: fault === null ? null : faultText(fault),
      counted: isCounted,
    },
    next: isCounted ? nextOf(judgement) : { status: 'pending', atMs: laterAt(judgement) },
  }
  if (fault === null) {
    // A message that gets through ends the failing, also when another one of the same run just led to the pause.
    const wasFailing = claim.failingSinceMs !== null
    return wasFailing ? { ...outcome, resume: endpointAudit(claim, endedAtMs, 'resumed') } : outcome
  }
  const pause = isCounted ? pauseOf(judgement) : null
  return pause === null ? outcome : { ...outcome, pause }
}

function isOurs({ claim, result, endedAtMs }: Judgement): boolean {
  return result.fault?.ours === true && endedAtMs - claim.pendingSinceMs < oursMsMax
}

function nextOf({ claim, result, stepsMs: usual, endedAtMs, random }: Judgement): Outcome['next'] {
  if (result.fault === null) return { status: 'delivered' }
  if (result.status === gone) return { status: 'dead_letter' }
  const attempts = claim.delivery.attempts + 1
  const { retryAfterMs } = result
  const stepsMs = claim.retryWaitsMs ?? usual
  const atMs = nextAttemptAt({ attempts, stepsMs, retryAfterMs, atMs: endedAtMs, random })
  return atMs === null ? { status: 'dead_letter' } : { status: 'pending', atMs }
}

/** Cut off by our own stop: due at once, for the next start. A probe that failed waits behind its pause again. */
function laterAt({ claim, result, stepsMs, endedAtMs }: Judgement): number {
  if (claim.probe || result.fault?.code === 'interrupted') return endedAtMs
  return endedAtMs + Math.min(stepsMs[0] ?? oursRetryMsMax, oursRetryMsMax)
}

function pauseOf({ claim, result, endedAtMs }: Judgement): NonNullable<Outcome['pause']> | null {
  if (claim.delivery.endpointId === null) return null
  if (result.status === gone) {
    const audit = endpointAudit(claim, endedAtMs, 'paused', { reason: 'gone', answered: gone })
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
  did: 'paused' | 'resumed',
  metadata: AuditEntry['metadata'] = {},
): AuditEntry {
  const { orgId, endpointId, url } = delivery
  const action = `webhook_endpoint.${did}`
  const about = { orgId, actor: 'system', action, target: endpointId ?? '', occurredAtMs }
  return { id: newId('aud'), ...about, metadata: { url, ...metadata } }
}

/** When a failed delivery is tried again: a step for each retry, jitter on top, and what the receiver asked for. */
const jitterShareMax = 0.2

interface Failure {
  attempts: number // counted ones, this failure included
  stepsMs: readonly number[] // one for each retry
  retryAfterMs: number | null
  atMs: number
  random: number // 0 inclusive to 1 exclusive
}

/** Milliseconds since 1970 of the next attempt, or null when the retries are used up. Never earlier than the step. */
export function nextAttemptAt({ attempts, stepsMs, retryAfterMs, atMs, random }: Failure): number | null {
  const stepMs = stepsMs[attempts - 1]
  if (stepMs === undefined) return null
  const askedMs = Math.min(retryAfterMs ?? 0, retryAfterMsMax)
  return atMs + Math.max(Math.round(stepMs * (1 + jitterShareMax * random)), askedMs)
}
