/** Schedules direct deliveries and tests of endpoints, finds deliveries and replays them. */
import { StoreError } from '../../../db/contract/errors.ts'
import { auditEntry, type Actor } from '../../audit/entry.ts'
import { AppError } from '../../errors.ts'
import { newId } from '../../ids.ts'
import { readUrl } from '../endpoints/endpoint-fields.ts'
import { orgSecret, type EndpointServices, type SecretServices } from '../endpoints/endpoints.ts'
import { laneOf } from '../sinks/destination.ts'
import { isoTime, type Clock } from '../../clock.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { Attempt, DeliveryStatus, Endpoint, StoredDelivery } from '../../../db/contract/webhooks.ts'
import type { SinkOptions } from '../sinks/sink.ts'

export const deliveryStatuses: readonly DeliveryStatus[] = ['pending', 'delivered', 'dead_letter']

/** Schedules `payload` (JSON text); returns the delivery's id. */
export async function scheduleDelivery(
  services: SecretServices & SinkOptions,
  actor: Actor,
  { url: target, payload }: { url: unknown; payload: string },
): Promise<string> {
  const url = readUrl(services, target, { httpOnly: true })
  await orgSecret(services, actor) // creates a missing secret
  const id = newId('wh')
  const now = services.clock.now()
  await services.store.webhooks.schedule({
    delivery: {
      id,
      orgId: actor.orgId,
      endpointId: null,
      url,
      lane: laneOf(actor.orgId, url),
      body: payload,
      scheduledAtMs: now,
    },
    audit: auditEntry(actor, { action: 'webhook_delivery.created', target: id, metadata: { url } }, now),
  })
  return id
}

/**
 * Sends an endpoint a signed `trace.batch` with one sample event, marked as a test; returns the delivery's id. Its
 * `sequence` is 0 and the endpoint's own does not change, so that of real batches starts at 1 without a gap.
 */
export async function testEndpoint(
  services: EndpointServices,
  actor: Actor,
  endpointId: string,
): Promise<string> {
  const { store, clock } = services
  const storedEndpoint = await store.webhooks.endpoint({ orgId: actor.orgId, id: endpointId })
  if (storedEndpoint === null)
    throw new AppError('not_found', 'This organization has no endpoint with this id.')
  const { endpoint } = storedEndpoint
  if (endpoint.status === 'paused') {
    throw new AppError('conflict', 'This endpoint is paused.', { hint: 'Resume it, then send the test.' })
  }
  const id = newId('wh')
  const now = clock.now()
  const metadata = { url: endpoint.url, endpointId, test: true }
  const audit = auditEntry(actor, { action: 'webhook_delivery.created', target: id, metadata }, now)
  const { orgId, url } = endpoint
  const body = testBatch(endpoint, id, now)
  const delivery = { id, orgId, endpointId, url, lane: endpointId, body, scheduledAtMs: now }
  await store.webhooks.schedule({ delivery, audit })
  return id
}

type Filters = Pick<Endpoint, 'types' | 'outcomes' | 'classes' | 'siteIds'>

/** The event matches the endpoint's own filters, so the receiver handles it like real events. */
function testBatch({ types, outcomes, classes, siteIds }: Filters, deliveryId: string, now: number): string {
  const type = (types[0] ?? 'authz.evaluated').replace(/\.\*$/, '.test')
  const testTime = isoTime(now)
  const event = {
    id: `evt_test_${deliveryId.slice(3)}`,
    siteId: siteIds[0] ?? 'shop-acme',
    sessionId: 'sess_test',
    occurredAt: testTime,
    type,
    outcome: outcomes[0] ?? 'blocked',
    tool: 'checkout.pay',
    durationMs: 3,
    agent: { class: classes[0] ?? 'dom', trust: 'detected', vendor: 'Sightglass test' },
    policy: { decision: 'deny', ruleId: 'tool:checkout.pay', reason: 'trust below verified' },
    metadata: { page: '/checkout', test: true },
  }
  const record = {
    door: 'events',
    key: null,
    receivedAt: testTime,
    verdict: null,
    judgedBy: null,
    observedBy: null,
    evidence: null,
    network: null,
  }
  const data = { sequence: 0, events: [event], records: [record], test: true }
  return JSON.stringify({ type: 'trace.batch', timestamp: testTime, data })
}

interface ReplayServices {
  store: Pick<Store, 'webhooks'>
  clock: Clock
}

/** Sends a delivery again under the same id, attempts from 0. 409 when it is pending or its endpoint was deleted. */
export async function replayDelivery(
  { store, clock }: ReplayServices,
  actor: Actor,
  id: string,
): Promise<void> {
  const now = clock.now()
  const { delivery } = await findDelivery(store, actor.orgId, id)
  const metadata = { url: delivery.url, status: delivery.status }
  try {
    const audit = auditEntry(actor, { action: 'webhook_delivery.replayed', target: id, metadata }, now)
    await store.webhooks.replay({ orgId: actor.orgId, id, now, audit })
  } catch (error) {
    if (error instanceof StoreError && error.kind === 'conflict') {
      const isPending = delivery.status === 'pending'
      throw new AppError(
        'conflict',
        isPending ? 'This delivery is already pending.' : 'The endpoint of this delivery was deleted.',
      )
    }
    throw error
  }
}

/** Replays every dead letter of one endpoint or of all; returns how many. */
export async function replayDead(
  { store, clock }: ReplayServices,
  actor: Actor,
  endpointId: string | null,
): Promise<number> {
  const now = clock.now()
  const metadata = endpointId === null ? {} : { endpointId }
  const audit = auditEntry(
    actor,
    { action: 'webhook_delivery.replayed', target: 'dead_letter', metadata },
    now,
  )
  return store.webhooks.replayDead({ orgId: actor.orgId, endpointId, now, audit })
}

export async function findDelivery(
  store: Pick<Store, 'webhooks'>,
  orgId: string,
  id: string,
): Promise<{ delivery: StoredDelivery; attempts: Attempt[] }> {
  const storedDelivery = await store.webhooks.find({ orgId, id })
  if (storedDelivery === null)
    throw new AppError('not_found', 'This organization has no delivery with this id.')
  return storedDelivery
}
