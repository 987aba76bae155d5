/** Finds out why a pending delivery is not delivered yet, for the API, the command line and the page of a delivery. */
import type { QueueState, StoredDelivery } from '../../../db/contract/webhooks.ts'
import { isoTime } from '../../clock.ts'
import type { WaitingFor } from '../../text/waiting.ts'

/** What only the process that sends deliveries knows. */
export interface Sender {
  node: string | null // its name, when others share the database
  lane: { limit: number }
  /** The time by which a running attempt has ended; `claimed`: it is next in its lane; null: it is not here. */
  stateOf(deliveryId: string, lane: string): { endsAtMs: number } | 'claimed' | null
  /** The slots of this process, and whether a delivery of the lane could start in one of them now. */
  slotsFor(lane: { lane: string; orgId: string; isHealthy: boolean }): {
    running: number
    limit: number
    isFree: boolean
  }
}

/** `sender` null: no server runs, so nothing is being sent by this process. */
export function waitingFor(delivery: StoredDelivery, sender: Sender | null, now: number): WaitingFor | null {
  const { queue, nextAttemptAtMs } = delivery
  if (queue === null) return null
  const { lease, isEndpointPaused, isProbe, isReplayed } = queue
  // An expired lease is void: the next run claims the delivery again.
  if (lease !== null && lease.untilMs > now) return waitWithLease(delivery, queue, lease, sender)
  if (isEndpointPaused && !isProbe) return { reason: 'paused' }
  const dueMs = nextAttemptAtMs ?? now
  if (dueMs > now && !isProbe) return { reason: 'retry', until: isoTime(dueMs) }
  return waitForPlace(delivery, queue, sender) ?? { reason: isReplayed ? 'replay' : 'dispatch' }
}

function waitWithLease(
  { id, orgId }: StoredDelivery,
  queue: QueueState,
  lease: { id: string; untilMs: number },
  sender: Sender | null,
): WaitingFor {
  const state = sender?.stateOf(id, queue.lane) ?? null
  if (sender === null || state === null) {
    const slash = lease.id.lastIndexOf('/')
    const node = slash === -1 ? null : lease.id.slice(0, slash)
    return { reason: 'lease', node, until: isoTime(lease.untilMs) }
  }
  if (state !== 'claimed') return { reason: 'response', until: isoTime(state.endsAtMs) }
  const { running, limit } = sender.slotsFor({
    lane: queue.lane,
    orgId,
    isHealthy: queue.isEndpointHealthy,
  })
  return running < limit
    ? { reason: 'lane', running: sender.lane.limit, limit: sender.lane.limit }
    : { reason: 'slot', running, limit }
}

function waitForPlace(
  { orgId }: StoredDelivery,
  queue: QueueState,
  sender: Sender | null,
): WaitingFor | null {
  if (sender === null) return null
  const { limit: laneLimit } = sender.lane
  if (queue.laneLeases >= laneLimit) return { reason: 'lane', running: laneLimit, limit: laneLimit }
  const { lane, isEndpointHealthy } = queue
  const { running, limit, isFree } = sender.slotsFor({ lane, orgId, isHealthy: isEndpointHealthy })
  return isFree ? null : { reason: 'slot', running, limit }
}
