/** Sends an endpoint a signed `trace.batch` with one sample event, marked as a test. */
import type { Endpoint } from '../../../db/contract/webhooks.ts'
import { auditEntry, type Actor } from '../../audit/entry.ts'
import { isoTime } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { newId } from '../../ids.ts'
import type { EndpointServices } from './endpoints.ts'

/**
 * Returns the delivery's id. Its `sequence` is 0 and the endpoint's own does not change, so that of real batches
 * starts at 1 without a gap.
 */
export async function testEndpoint(
  services: EndpointServices,
  who: Actor,
  endpointId: string,
): Promise<string> {
  const { store, clock } = services
  const found = await store.webhooks.endpoint({ orgId: who.orgId, id: endpointId })
  if (found === null) throw new AppError('not_found', 'This organization has no endpoint with this id.')
  const { endpoint } = found
  if (endpoint.status === 'paused') {
    throw new AppError('conflict', 'This endpoint is paused.', { hint: 'Resume it, then send the test.' })
  }
  const id = newId('wh')
  const now = clock.now()
  const metadata = { url: endpoint.url, endpointId, test: true }
  const audit = auditEntry(who, { action: 'webhook_delivery.created', target: id, metadata }, now)
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
  const at = isoTime(now)
  const event = {
    id: `evt_test_${deliveryId.slice(3)}`,
    siteId: siteIds[0] ?? 'shop-acme',
    sessionId: 'sess_test',
    occurredAt: at,
    type,
    outcome: outcomes[0] ?? 'blocked',
    tool: 'checkout.pay',
    durationMs: 3,
    agent: { class: classes[0] ?? 'dom', trust: 'detected', vendor: 'Sightglass test' },
    policy: { decision: 'deny', ruleId: 'tool:checkout.pay', reason: 'trust below verified' },
    metadata: { page: '/checkout', test: true },
  }
  const data = { sequence: 0, events: [event], test: true }
  return JSON.stringify({ type: 'trace.batch', timestamp: at, data })
}
