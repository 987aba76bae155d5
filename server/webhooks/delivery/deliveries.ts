/** Schedules direct deliveries, finds deliveries and replays them. */
import { StoreError } from '../../../db/contract/errors.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { Attempt, Delivery, DeliveryStatus } from '../../../db/contract/webhooks.ts'
import { auditEntry, type Actor } from '../../audit/entry.ts'
import type { Clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { newId } from '../../ids.ts'
import { readUrl } from '../endpoints/endpoint-fields.ts'
import type { SinkOptions } from '../sinks/sink.ts'
import { orgSecret, type SecretServices } from '../endpoints/org-secret.ts'
import { laneOf } from '../sinks/destination.ts'

export const deliveryStatuses: readonly DeliveryStatus[] = ['pending', 'delivered', 'dead_letter']

/** Schedules `payload` (JSON text); returns the delivery's id. */
export async function scheduleDelivery(
  services: SecretServices & SinkOptions,
  who: Actor,
  wanted: { url: unknown; payload: string },
): Promise<string> {
  const url = readUrl(services, wanted.url, { httpOnly: true })
  await orgSecret(services, who) // creates the secret if there is none
  const id = newId('wh')
  const now = services.clock.now()
  await services.store.webhooks.schedule({
    delivery: {
      id,
      orgId: who.orgId,
      endpointId: null,
      url,
      lane: laneOf(who.orgId, url),
      body: wanted.payload,
      scheduledAtMs: now,
    },
    audit: auditEntry(who, { action: 'webhook_delivery.created', target: id, metadata: { url } }, now),
  })
  return id
}

interface ReplayServices {
  store: Pick<Store, 'webhooks'>
  clock: Clock
}

/** Sends a delivery again under the same id, attempts from 0. 409 when it is pending or its endpoint was deleted. */
export async function replayDelivery(
  { store, clock }: ReplayServices,
  who: Actor,
  id: string,
): Promise<void> {
  const now = clock.now()
  const { delivery } = await findDelivery(store, who.orgId, id)
  const metadata = { url: delivery.url, status: delivery.status }
  try {
    const audit = auditEntry(who, { action: 'webhook_delivery.replayed', target: id, metadata }, now)
    await store.webhooks.replay({ orgId: who.orgId, id, now, audit })
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
  who: Actor,
  endpointId: string | null,
): Promise<number> {
  const now = clock.now()
  const metadata = endpointId === null ? {} : { endpointId }
  const audit = auditEntry(who, { action: 'webhook_delivery.replayed', target: 'dead_letter', metadata }, now)
  return store.webhooks.replayDead({ orgId: who.orgId, endpointId, now, audit })
}

export async function findDelivery(
  store: Pick<Store, 'webhooks'>,
  orgId: string,
  id: string,
): Promise<{ delivery: Delivery; attempts: Attempt[] }> {
  const found = await store.webhooks.find({ orgId, id })
  if (found === null) throw new AppError('not_found', 'This organization has no delivery with this id.')
  return found
}
