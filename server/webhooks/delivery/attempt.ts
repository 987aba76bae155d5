/** Makes one attempt at one delivery and reports its result as a value. */
import type { Claim } from '../../../db/contract/webhooks.ts'
import type { SendOptions } from '../sinks/sink.ts'
import { parseDestination } from '../sinks/destination.ts'
import { classify, local, statusFailure, type Failure } from './failure.ts'

export interface AttemptServices extends Omit<SendOptions, 'atMs' | 'signal'> {
  timeoutMs: number
}

export interface AttemptResult {
  atMs: number
  durationMs: number
  status: number | null // of HTTP
  excerpt: string
  retryAfterMs: number | null
  failure: Failure | null // null: delivered
}

/** A timeout that fires this late shows that this process was suspended, not that the receiver was slow. */
const lateMs = 2_000

/** Never rejects. `stop` aborts it as a local failure. */
export async function attempt(
  services: AttemptServices,
  claim: Claim,
  stop: AbortSignal,
): Promise<AttemptResult> {
  const atMs = services.clock.now()
  const startedMs = performance.now()
  const sent = await send(services, claim, atMs, stop).catch((thrown: unknown) => ({
    ...noResponse,
    failure: classify(thrown, stop.aborted),
  }))
  const durationMs = Math.round(performance.now() - startedMs)
  const wasSuspended = sent.failure?.code === 'timeout' && durationMs > services.timeoutMs + lateMs
  const failure = wasSuspended
    ? local('interrupted', 'the appliance was suspended during the attempt')
    : sent.failure
  return { ...sent, failure, atMs, durationMs }
}

type Sent = Pick<AttemptResult, 'status' | 'excerpt' | 'retryAfterMs' | 'failure'>

const noResponse: Sent = { status: null, excerpt: '', retryAfterMs: null, failure: null }

async function send(services: AttemptServices, claim: Claim, atMs: number, stop: AbortSignal): Promise<Sent> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(services.timeoutMs)])
  const { sink, target } = parseDestination(claim.delivery.url, services)
  const response = await sink.send(target, claim, { ...services, atMs, signal })
  if (response === null) return noResponse
  const isDelivered = response.status >= 200 && response.status < 300
  return isDelivered
    ? { ...response, retryAfterMs: null, failure: null }
    : { ...response, failure: statusFailure(response.status) }
}
