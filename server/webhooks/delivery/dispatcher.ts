/** Sends due deliveries: claims them within the limits, makes attempts concurrently and records the outcomes. */
import { newId } from '../../ids.ts'
import { limits } from '../../limits.ts'
import { decideOutcome, type AttemptResult } from './retry-policy.ts'
import { makeLanes, type Lanes } from './slots.ts'
import { parseDestination } from '../sinks/destination.ts'
import { SendError, classify, local, statusFailure, type SendOptions } from '../sinks/sink.ts'
import type { Sender } from './waiting.ts'
import { shareSlots } from '../../../db/rules/webhook-share.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { Claim, ClaimRequest, Outcome } from '../../../db/contract/webhooks.ts'
import type { Log } from '../../log.ts'

export interface AttemptServices extends Omit<SendOptions, 'atMs' | 'signal'> {
  timeoutMs: number
}

export interface DispatcherServices extends AttemptServices {
  store: Pick<Store, 'webhooks'>
  log: Log
  waitsMs: readonly number[] // before each retry
  leaseMs: number
  /** Begins the ids of its leases, so that they end when a node starts again under its name. */
  node: string | null
  random(): number
  /** Called with the endpoints of deliveries that ended, after their outcomes are recorded. */
  onEnded(endpointIds: string[]): void
  /** Called with the time of each scheduled retry. */
  onRetryScheduled(atMs: number): void
}

export interface Dispatcher {
  /** Claims due deliveries; returns when no more can be claimed. Their attempts continue. */
  dispatch(now: number): Promise<void>
  /** Moves the retry times of unrecorded outcomes with the clock, so that their waits keep their length. */
  clockJumped(byMs: number): void
  /** Stops claiming, waits up to `graceMs` for running attempts, aborts the rest and records every outcome. */
  stop(graceMs: number): Promise<void>
  /** Resolves when no attempt is running. */
  idle(): Promise<void>
  isSending(): boolean
  /** What this process knows about the wait of a pending delivery. */
  sender: Sender
}

const recordRetryMs = 1_000

/** An outcome that is not recorded yet. */
interface Ended {
  outcome: Outcome
  endpointId: string | null
}

export function makeDispatcher(services: DispatcherServices): Dispatcher {
  const { clock, log } = services
  const lanes = makeLanes(limits.webhooksPerLaneMax)
  const sending = new Set<Promise<void>>()
  const endsAtMs = new Map<string, number>() // by delivery: when its running attempt has ended
  const stopping = new AbortController()
  const endedOf = noteEnd(services, lanes)
  const free = () => limits.webhooksInFlightMax - lanes.occupied(performance.now())
  const [unrecorded, released]: [Ended[], Claim[]] = [[], []]
  let dueMs: number | null = null // null: claims nothing (before the first dispatch and after a stop)
  /** One transaction records every outcome since the previous one and claims the next deliveries. */
  const recordAndClaim = coalesce(async () => {
    const ended = unrecorded.splice(0)
    const back = released.splice(0)
    const claim = claimRequest(services, dueMs, free(), lanes)
    const claimedAtMs = performance.now() // not after the call: a suspended process gets its answer late
    try {
      const command = { now: clock.now(), ...toRecord(ended, back), claim }
      lanes.add(await services.store.webhooks.recordAndClaim(command), claimedAtMs)
      start()
      notifyEnded(services, ended)
    } catch (error) {
      // Nothing was claimed. Unrecorded outcomes wait for the next try; their leases block other claims.
      unrecorded.unshift(...ended)
      released.unshift(...back)
      log.warn('webhook_record_failed', { message: String(error), unrecorded: String(unrecorded.length) })
      const isDue = unrecorded.length > 0 && !stopping.signal.aborted
      if (isDue) setTimeout(() => void recordAndClaim(), recordRetryMs).unref()
    }
  })

  const watchHanging = hangWatch(lanes, () => dueMs !== null && void recordAndClaim())

  function start(): void {
    if (dueMs === null) released.push(...lanes.removeAll())
    const { start: claims, release } = lanes.start(free(), performance.now())
    released.push(...release)
    for (const claim of claims) {
      endsAtMs.set(claim.delivery.id, clock.now() + services.timeoutMs)
      const pendingAttempt = attempt(services, claim, stopping.signal).then((result) => {
        sending.delete(pendingAttempt)
        endsAtMs.delete(claim.delivery.id)
        unrecorded.push(endedOf(claim, result))
        start()
        void recordAndClaim()
      })
      sending.add(pendingAttempt)
    }
    if (claims.length > 0) watchHanging()
  }

  async function idle(): Promise<void> {
    while (sending.size > 0) await Promise.all(sending).then(recordAndClaim)
  }

  return {
    idle,
    isSending: () => sending.size > 0,
    sender: createSender(services.node, lanes, endsAtMs),
    clockJumped: (byMs) => void (dueMs = shifted(dueMs, unrecorded, byMs)),
    async dispatch(now) {
      if (stopping.signal.aborted) return
      dueMs = Math.min(now, clock.now()) // the clock may have been set back since the caller read it
      await recordAndClaim()
    },
    async stop(graceMs) {
      dueMs = null
      start()
      await Promise.race([idle(), Bun.sleep(graceMs)])
      stopping.abort()
      await idle()
      await recordAndClaim()
    },
  }
}

function createSender(node: string | null, lanes: Lanes, endsAtMs: ReadonlyMap<string, number>): Sender {
  return {
    node,
    lane: { limit: limits.webhooksPerLaneMax },
    stateOf(deliveryId, lane) {
      const endMs = endsAtMs.get(deliveryId)
      if (endMs !== undefined) return { endsAtMs: endMs }
      return lanes.isReady(deliveryId, lane) ? 'claimed' : null
    },
    slotsFor({ lane, orgId, isHealthy }) {
      const nowMs = performance.now()
      const limit = limits.webhooksInFlightMax
      const running = lanes.occupied(nowMs)
      const share = lanes.share(nowMs)
      const pace = share.paces[lane] ?? (isHealthy ? 'quick' : 'unknown')
      const granted = shareSlots([{ lane, orgId, pace, dueAtMs: 0, wants: 1 }], limit - running, share)
      return { running, limit, isFree: granted.has(lane) }
    },
  }
}

/** First tries that hang give their slots back without an end, so nothing else would claim for them. */
function hangWatch(lanes: Lanes, claim: () => void): () => void {
  let timer: Timer | null = null
  return function watch() {
    const changeMs = lanes.nextChangeMs(performance.now())
    if (changeMs === null || timer !== null) return
    const act = () => {
      timer = null
      claim()
      watch()
    }
    timer = setTimeout(act, Math.max(1, changeMs - performance.now() + 1))
    timer.unref()
  }
}

/** A timeout that fires this late shows that this process was suspended, not that the receiver was slow. */
const lateMs = 2_000

const suspended = local('interrupted', 'the appliance was suspended during the attempt')

/** Makes one attempt at one delivery. Never rejects. `stop` aborts it as a local failure. */
export async function attempt(
  services: AttemptServices,
  claim: Claim,
  stop: AbortSignal,
): Promise<AttemptResult> {
  const atMs = services.clock.now()
  const startedMs = performance.now()
  const sendResult = await send(services, claim, atMs, stop).catch((thrown: unknown) => ({
    ...noResponse,
    failure: classify(thrown, stop.aborted),
  }))
  const durationMs = Math.round(performance.now() - startedMs)
  const wasSuspended = sendResult.failure?.code === 'timeout' && durationMs > services.timeoutMs + lateMs
  const failure = wasSuspended ? suspended : sendResult.failure
  return { ...sendResult, failure, atMs, durationMs }
}

type Sent = Pick<AttemptResult, 'status' | 'excerpt' | 'retryAfterMs' | 'failure'>

const noResponse: Sent = { status: null, excerpt: '', retryAfterMs: null, failure: null }

async function send(services: AttemptServices, claim: Claim, atMs: number, stop: AbortSignal): Promise<Sent> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(services.timeoutMs)])
  const { sink, target } = parseDestination(claim.delivery.url, services)
  const untilMs = performance.now() + services.timeoutMs
  /** A process that was suspended during the lookup may find its lease over, and another node sending. */
  const lookUp = async (host: string) => {
    const resolution = await services.resolve(host)
    if (performance.now() > untilMs) throw new SendError(suspended)
    return resolution
  }
  const resolve = Object.assign(lookUp, services.resolve)
  const response = await sink.send(target, claim, { ...services, resolve, atMs, signal })
  if (response === null) return noResponse
  const isDelivered = response.status >= 200 && response.status < 300
  return isDelivered
    ? { ...response, retryAfterMs: null, failure: null }
    : { ...response, failure: statusFailure(response.status) }
}

/** Notes the pace of the receiver and decides what follows. */
function noteEnd({ clock, waitsMs, random, log }: DispatcherServices, lanes: Lanes) {
  return (claim: Claim, result: AttemptResult): Ended => {
    lanes.ended(claim, { durationMs: result.durationMs, isDelivered: result.failure === null })
    const outcome = decideOutcome({ claim, result, waitsMs, endedAtMs: clock.now(), random: random() })
    logAttempt(log, outcome, result.failure?.detail)
    return { outcome, endpointId: claim.delivery.endpointId }
  }
}

/** Shifts retry times after a clock jump; returns the shifted `dueMs`. */
function shifted(dueMs: number | null, unrecorded: Ended[], byMs: number): number | null {
  for (const { outcome } of unrecorded) if (outcome.next.status === 'pending') outcome.next.atMs += byMs
  return dueMs === null ? null : dueMs + byMs
}

function claimRequest(
  services: DispatcherServices,
  dueMs: number | null,
  limit: number,
  lanes: Lanes,
): ClaimRequest | null {
  if (dueMs === null || limit <= 0) return null
  return {
    leaseId: services.node === null ? newId('lea') : `${services.node}/${newId('lea')}`,
    leaseMs: services.leaseMs,
    dueMs,
    limit,
    perLaneMax: limits.webhooksPerLaneMax,
    share: lanes.share(performance.now()),
    ahead: lanes.ahead(),
    interruptionsMax: limits.webhookInterruptionsMax,
    attemptsMax: services.waitsMs.length + 1,
  }
}

function toRecord(ended: Ended[], back: Claim[]) {
  return {
    outcomes: ended.map(({ outcome }) => outcome),
    released: back.map(({ delivery, leaseId }) => ({ deliveryId: delivery.id, leaseId })),
  }
}

function notifyEnded(services: DispatcherServices, ended: Ended[]): void {
  const endpointIds = new Set<string>()
  for (const { outcome, endpointId } of ended) {
    if (outcome.next.status === 'pending') services.onRetryScheduled(outcome.next.atMs)
    else if (endpointId !== null) endpointIds.add(endpointId)
  }
  if (endpointIds.size > 0) services.onEnded([...endpointIds])
}

function logAttempt(
  log: Log,
  { deliveryId, attempt: { error, durationMs }, next }: Outcome,
  detail?: string,
): void {
  const fields = { deliveryId, next: next.status, durationMs, error: error?.split(':')[0], detail }
  const isWarning = next.status === 'dead_letter' || detail !== undefined
  log[isWarning ? 'warn' : 'debug']('webhook_attempt', fields)
}

/**
 * Runs `work` one at a time. Calls during a run share one more run after it; the promise settles when a run that began
 * after the call has ended. `work` must not reject.
 */
export function coalesce(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null
  let isRequested = false

  async function runs(): Promise<void> {
    while (isRequested) {
      isRequested = false
      await work()
    }
    running = null
  }

  return () => {
    isRequested = true
    running ??= runs()
    return running
  }
}
