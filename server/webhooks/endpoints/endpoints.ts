/**
 * Creates, changes, pauses, resumes and deletes endpoints. Rotates signing secrets: of an endpoint, and of an
 * organization for deliveries without an endpoint.
 */
import { StoreError } from '../../../db/contract/errors.ts'
import { auditEntry, type Actor } from '../../audit/entry.ts'
import { AppError } from '../../errors.ts'
import { newId, newSigningSecret } from '../../ids.ts'
import { limits } from '../../limits.ts'
import { wrongField } from '../../http/validate.ts'
import {
  readBatchSize,
  readFilters,
  readLabel,
  readRetryWaits,
  readUrl,
  unknownTypes,
  urlNotAllowed,
  warningsOf,
  type Warning,
} from './endpoint-fields.ts'
import { secretPurpose } from '../sinks/signing.ts'
import { endpointView } from './endpoint-view.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { Endpoint, EndpointChange } from '../../../db/contract/webhooks.ts'
import type { SinkOptions } from '../sinks/sink.ts'
import type { Clock } from '../../clock.ts'
import type { SecretBox } from '../../system/encryption.ts'

export interface SecretServices {
  store: Pick<Store, 'webhooks'>
  clock: Clock
  box: SecretBox
}

export interface EndpointServices extends SecretServices, SinkOptions {
  store: Pick<Store, 'webhooks' | 'events'>
}

export type EndpointJson = ReturnType<typeof endpointView>
type Body = { [name: string]: unknown }

export async function createEndpoint(
  services: EndpointServices,
  actor: Actor,
  body: Body,
  secret = newSigningSecret(),
): Promise<{ endpoint: EndpointJson; secret: string; warnings: Warning[] }> {
  const { store, clock, box } = services
  const { orgId } = actor
  const filters = { types: [], outcomes: [], classes: [], siteIds: [], ...readFilters(body) }
  const label = readLabel(body['label']) ?? ''
  const batchSize = readBatchSize(body['batchSize']) ?? limits.webhookBatchEventsMax
  const retryWaitsMs = readRetryWaits(body['retryWaits']) ?? null
  const url = readUrl(services, body['url'])
  const existing = await store.webhooks.bareEndpoints(orgId)
  if (existing.length >= limits.webhookEndpointsPerOrgMax) {
    throw new AppError(
      'conflict',
      `An organization can have at most ${limits.webhookEndpointsPerOrgMax} endpoints.`,
    )
  }
  const id = newId('ep')
  const now = clock.now()
  const endpoint: Endpoint = {
    id,
    orgId,
    url,
    label,
    batchSize,
    retryWaitsMs,
    ...filters,
    status: 'active',
    pausedReason: null,
    pausedAtMs: null,
    position: await store.events.lastSeq(orgId),
    sequence: 0,
    missed: 0,
    replayUntil: null,
    resumePosition: null,
    createdAtMs: now,
    lastSuccessAtMs: null,
    failingSinceMs: null,
    nextProbeAtMs: null,
    encryptedSecret: box.encrypt(secretPurpose({ orgId, endpointId: id }), secret),
    previousEncryptedSecret: null,
    previousUntilMs: null,
  }
  const audit = auditEntry(
    actor,
    {
      action: 'webhook_endpoint.created',
      target: id,
      metadata: { url, label, ...filters, ...(retryWaitsMs === null ? {} : { retryWaitsMs }) },
    },
    now,
  )
  await takenUrl(store.webhooks.createEndpoint({ endpoint, audit }))
  const warnings = await warningsFor(services, orgId, filters.types)
  return { endpoint: await findEndpoint(services, orgId, id), secret, warnings }
}

/** Types are open, so a type that no event has is accepted with a warning. */
async function warningsFor(
  services: EndpointServices,
  orgId: string,
  types: readonly string[],
): Promise<Warning[]> {
  return warningsOf(types, await unknownTypes(services.store, orgId, types))
}

/** Two organizations must not write to the same file. */
async function takenUrl<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof StoreError) || error.kind !== 'conflict') throw error
    throw urlNotAllowed('another organization writes this file')
  }
}

export async function findEndpoint(
  services: EndpointServices,
  orgId: string,
  id: string,
): Promise<EndpointJson> {
  const storedEndpoint = await services.store.webhooks.endpoint({ orgId, id })
  if (storedEndpoint === null)
    throw new AppError('not_found', 'This organization has no endpoint with this id.')
  return endpointView(storedEndpoint)
}

export async function listEndpoints(services: EndpointServices, orgId: string): Promise<EndpointJson[]> {
  return (await services.store.webhooks.endpoints(orgId)).map(endpointView)
}

const viewNames: { [name in keyof EndpointChange]?: keyof EndpointJson } = {
  siteIds: 'sites',
  retryWaitsMs: 'retryWaits',
}

/** Changes the fields in `body`; the audit entry records them before and after. */
export async function changeEndpoint(
  services: EndpointServices,
  actor: Actor,
  id: string,
  body: Body,
): Promise<{ endpoint: EndpointJson; warnings: Warning[] }> {
  const oldEndpoint = await findEndpoint(services, actor.orgId, id)
  const change: EndpointChange = { ...readFilters(body) }
  const label = readLabel(body['label'])
  if (label !== undefined) change.label = label
  const batchSize = readBatchSize(body['batchSize'])
  if (batchSize !== undefined) change.batchSize = batchSize
  const retryWaitsMs = readRetryWaits(body['retryWaits'])
  if (retryWaitsMs !== undefined) change.retryWaitsMs = retryWaitsMs
  if (body['url'] !== undefined) change.url = readUrl(services, body['url'])
  const names = Object.keys(change) as (keyof EndpointChange)[]
  if (names.length === 0) throw wrongField('', 'at least one field to change is required', 'required')
  const old = names.map((name) => [name, oldEndpoint[viewNames[name] ?? (name as keyof EndpointJson)]])
  const labelField = { label: String(oldEndpoint.label || oldEndpoint.url) }
  const metadata = { ...labelField, before: Object.fromEntries(old), after: { ...change } }
  const command = commandFor(services, actor, id, 'updated', metadata)
  await takenUrl(services.store.webhooks.changeEndpoint({ ...command, change }))
  const warnings = await warningsFor(services, actor.orgId, change.types ?? [])
  return { endpoint: await findEndpoint(services, actor.orgId, id), warnings }
}

function commandFor(services: EndpointServices, actor: Actor, id: string, did: string, metadata = {}) {
  const now = services.clock.now()
  const audit = auditEntry(actor, { action: `webhook_endpoint.${did}`, target: id, metadata }, now)
  return { orgId: actor.orgId, endpointId: id, now, audit }
}

export async function pauseEndpoint(
  services: EndpointServices,
  actor: Actor,
  id: string,
): Promise<EndpointJson> {
  const { url } = await findEndpoint(services, actor.orgId, id)
  const command = commandFor(services, actor, id, 'paused', { url, reason: 'asked' })
  await services.store.webhooks.pauseEndpoint(command)
  return findEndpoint(services, actor.orgId, id)
}

export async function resumeEndpoint(
  services: EndpointServices,
  actor: Actor,
  id: string,
): Promise<EndpointJson> {
  const { url } = await findEndpoint(services, actor.orgId, id)
  await services.store.webhooks.resumeEndpoint(commandFor(services, actor, id, 'resumed', { url }))
  return findEndpoint(services, actor.orgId, id)
}

/** Returns the new secret once; for a day the old one signs messages too. */
export async function rotateEndpointSecret(
  services: EndpointServices,
  actor: Actor,
  id: string,
  secret = newSigningSecret(),
): Promise<{ endpoint: EndpointJson; secret: string }> {
  const { url } = await findEndpoint(services, actor.orgId, id)
  const command = commandFor(services, actor, id, 'secret_rotated', { url })
  await services.store.webhooks.rotateEndpointSecret({
    ...command,
    encryptedSecret: services.box.encrypt(secretPurpose({ orgId: actor.orgId, endpointId: id }), secret),
    previousUntilMs: command.now + limits.webhookOldSecretMs,
  })
  return { endpoint: await findEndpoint(services, actor.orgId, id), secret }
}

export async function deleteEndpoint(services: EndpointServices, actor: Actor, id: string): Promise<void> {
  const { url, label } = await findEndpoint(services, actor.orgId, id)
  await services.store.webhooks.deleteEndpoint(commandFor(services, actor, id, 'deleted', { url, label }))
}

export interface ShownSecret {
  secret: string
  previousUntilMs: number | null // until then the previous secret signs too
}

/** The signing secret of the organization, created when first needed. */
export async function orgSecret({ store, clock, box }: SecretServices, actor: Actor): Promise<ShownSecret> {
  const purpose = secretPurpose({ orgId: actor.orgId, endpointId: null })
  const now = clock.now()
  const storedSecret = await store.webhooks.orgSecret({
    orgId: actor.orgId,
    encryptedIfNone: box.encrypt(purpose, newSigningSecret()),
    audit: auditEntry(actor, { action: 'webhook_secret.created', target: actor.orgId }, now),
  })
  const isOver = (storedSecret.previousUntilMs ?? 0) <= now
  return {
    secret: box.decrypt(purpose, storedSecret.encryptedSecret),
    previousUntilMs: isOver ? null : storedSecret.previousUntilMs,
  }
}

/** Creates a new secret; for a day both sign messages. */
export async function rotateOrgSecret(services: SecretServices, actor: Actor): Promise<ShownSecret> {
  const { store, clock, box } = services
  const encryptedSecret = box.encrypt(
    secretPurpose({ orgId: actor.orgId, endpointId: null }),
    newSigningSecret(),
  )
  const now = clock.now()
  const previousUntilMs = now + limits.webhookOldSecretMs
  // A rotation needs a secret to replace.
  const first = { orgId: actor.orgId, encryptedIfNone: encryptedSecret }
  await store.webhooks.orgSecret({
    ...first,
    audit: auditEntry(actor, { action: 'webhook_secret.created', target: actor.orgId }, now),
  })
  const audit = auditEntry(actor, { action: 'webhook_secret.rotated', target: actor.orgId }, now)
  await store.webhooks.rotateOrgSecret({ orgId: actor.orgId, encryptedSecret, previousUntilMs, audit })
  return orgSecret(services, actor)
}
