/** Sends what is due: claims within the limits, sends at the same time, records what came of it. */
import { newId } from '../../ids.ts'
import { limits } from '../../limits.ts'
import { attempt, type AttemptParts } from './attempt.ts'
import { judge } from './retry-policy.ts'
import { makeLanes, type Lanes } from './slots.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { Claim, ClaimRequest, Outcome } from '../../../db/contract/webhooks.ts'
import type { Log } from '../../log.ts'

export interface DispatcherParts extends AttemptParts {
  store: Pick<Store, 'webhooks'>
  log: Log
  stepsMs: readonly number[] // one for each retry
  leaseMs: number
  random(): number
  /** Hears, after it is recorded, which endpoints have had deliveries end. */
  ended(endpointIds: string[]): void
  /** Hears when a delivery is tried again. */
  retryAt(atMs: number): void
}

export interface Dispatcher {
  /** Claims what is due now; returns when nothing more can be claimed at once. Sends outlive it. */
  dispatch(now: number): Promise<void>
  /** What ended and is not recorded yet waits as long as it would have. */
  clockJumped(byMs: number): void
  /** No claims any more: gives what is being sent a moment, cuts off the rest, records everything. */
  stop(graceMs: number): Promise<void>
  /** Resolves when nothing is being sent. */
  idle(): Promise<void>
  isSending(): boolean
}

const recordAgainMs = 1_000

/** What ended and is not recorded yet. */
interface Ended {
  outcome: Outcome
  endpointId: string | null
}

export function makeDispatcher(parts: DispatcherParts): Dispatcher {
  const { clock, log, stepsMs } = parts
  const lanes = makeLanes(limits.webhooksPerLaneMax)
  const sending = new Set<Promise<void>>()
  const cut = new AbortController()
  const free = () => limits.webhooksInFlightMax - sending.size
  let [unrecorded, released]: [Ended[], Claim[]] = [[], []]
  let dueMs: number | null = null // null: nothing may be claimed (not yet, or not any more)

  /** All that ended during one turn is recorded by the next, in one transaction, which also claims in its place. */
  const turn = coalesce(async () => {
    const [ended, back] = [unrecorded, released]
    unrecorded = []
    released = []
    const claim = claimRequest(parts, dueMs, free(), lanes)
    try {
      const command = { now: clock.now(), ...toRecord(ended, back), claim }
      lanes.add(await parts.store.webhooks.recordAndClaim(command), performance.now())
      start()
      tellEnded(parts, ended)
    } catch (error) {
      // Nothing was claimed, and what could not be recorded is kept: its lease still keeps others off.
      unrecorded = [...ended, ...unrecorded]
      released = [...back, ...released]
      log.warn('webhook_turn_failed', { message: String(error), unrecorded: String(unrecorded.length) })
      if (unrecorded.length > 0 && !cut.signal.aborted) setTimeout(() => void turn(), recordAgainMs).unref()
    }
  })

  function start(): void {
    if (dueMs === null) released.push(...lanes.takeAll())
    const { start: claims, release } = lanes.start(free(), performance.now())
    released.push(...release)
    for (const claim of claims) {
      const sent = attempt(parts, claim, cut.signal).then((result) => {
        sending.delete(sent)
        lanes.ended(claim, { durationMs: result.durationMs, isDelivered: result.fault === null })
        const outcome = judge({ claim, result, stepsMs, endedAtMs: clock.now(), random: parts.random() })
        unrecorded.push({ outcome, endpointId: claim.delivery.endpointId })
        tell(log, outcome, result.fault?.detail)
        start()
        void turn()
      })
      sending.add(sent)
    }
  }

  async function idle(): Promise<void> {
    while (sending.size > 0) await Promise.all(sending).then(turn)
  }

  return {
    idle,
    isSending: () => sending.size > 0,
    clockJumped: (byMs) => void (dueMs = shifted(dueMs, unrecorded, byMs)),
    async dispatch(now) {
      if (cut.signal.aborted) return
      dueMs = Math.min(now, clock.now()) // whoever asks may have read a clock that was set back since
      await turn()
    },
    async stop(graceMs) {
      dueMs = null
      start()
      await Promise.race([idle(), Bun.sleep(graceMs)])
      cut.abort()
      await idle()
      await turn()
    },
  }
}

/** Returns the time up to which deliveries are due, after the clock jumped. */
function shifted(dueMs: number | null, unrecorded: Ended[], byMs: number): number | null {
  for (const { outcome } of unrecorded) if (outcome.next.status === 'pending') outcome.next.atMs += byMs
  return dueMs === null ? null : dueMs + byMs
}

function claimRequest(
  parts: DispatcherParts,
  dueMs: number | null,
  limit: number,
  lanes: Lanes,
): ClaimRequest | null {
  if (dueMs === null || limit <= 0) return null
  return {
    leaseId: newId('lea'),
    leaseMs: parts.leaseMs,
    dueMs,
    limit,
    perLaneMax: limits.webhooksPerLaneMax,
    share: lanes.share(performance.now()),
    ahead: lanes.ahead(),
    interruptionsMax: limits.webhookInterruptionsMax,
    attemptsMax: parts.stepsMs.length + 1,
  }
}

function toRecord(ended: Ended[], back: Claim[]) {
  return {
    outcomes: ended.map(({ outcome }) => outcome),
    released: back.map(({ delivery, leaseId }) => ({ deliveryId: delivery.id, leaseId })),
  }
}

function tellEnded(parts: DispatcherParts, ended: Ended[]): void {
  const endpointIds = new Set<string>()
  for (const { outcome, endpointId } of ended) {
    if (outcome.next.status === 'pending') parts.retryAt(outcome.next.atMs)
    else if (endpointId !== null) endpointIds.add(endpointId)
  }
  if (endpointIds.size > 0) parts.ended([...endpointIds])
}

function tell(
  log: Log,
  { deliveryId, attempt: { error, durationMs }, next }: Outcome,
  detail?: string,
): void {
  const fields = { deliveryId, next: next.status, durationMs, error: error?.split(':')[0], detail }
  const isTold = next.status === 'dead_letter' || detail !== undefined
  log[isTold ? 'warn' : 'debug']('webhook_attempt', fields)
}

/** The promise settles when a run that began after the call has ended. `work` must not reject. */
export function coalesce(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null
  let isAskedAgain = false

  async function runs(): Promise<void> {
    while (isAskedAgain) {
      isAskedAgain = false
      await work()
    }
    running = null
  }

  return () => {
    isAskedAgain = true
    running ??= runs()
    return running
  }
}
