/** The signing secret of an organization: created when first needed, rotated with an overlap. */
import type { Store } from '../../../db/contract/store.ts'
import { auditEntry, type Actor } from '../../audit/entry.ts'
import type { Clock } from '../../clock.ts'
import { newSigningSecret } from '../../ids.ts'
import { limits } from '../../limits.ts'
import type { SecretBox } from '../../system/encryption.ts'
import { secretPurpose } from '../delivery/signing.ts'

export interface SecretServices {
  store: Pick<Store, 'webhooks'>
  clock: Clock
  box: SecretBox
}

export interface ShownSecret {
  secret: string
  previousUntilMs: number | null // until then the previous secret signs too
}

export async function orgSecret({ store, clock, box }: SecretServices, who: Actor): Promise<ShownSecret> {
  const purpose = secretPurpose({ orgId: who.orgId, endpointId: null })
  const now = clock.now()
  const found = await store.webhooks.orgSecret({
    orgId: who.orgId,
    sealedIfNone: box.encrypt(purpose, newSigningSecret()),
    audit: auditEntry(who, { action: 'webhook_secret.created', target: who.orgId }, now),
  })
  const isOver = (found.previousUntilMs ?? 0) <= now
  return {
    secret: box.decrypt(purpose, found.sealedSecret),
    previousUntilMs: isOver ? null : found.previousUntilMs,
  }
}

/** Creates a new secret; for a day both sign messages. */
export async function rotateOrgSecret(services: SecretServices, who: Actor): Promise<ShownSecret> {
  const { store, clock, box } = services
  const sealedSecret = box.encrypt(secretPurpose({ orgId: who.orgId, endpointId: null }), newSigningSecret())
  const now = clock.now()
  const previousUntilMs = now + limits.webhookOldSecretMs
  // A rotation needs a secret to replace.
  const first = { orgId: who.orgId, sealedIfNone: sealedSecret }
  await store.webhooks.orgSecret({
    ...first,
    audit: auditEntry(who, { action: 'webhook_secret.created', target: who.orgId }, now),
  })
  const audit = auditEntry(who, { action: 'webhook_secret.rotated', target: who.orgId }, now)
  await store.webhooks.rotateOrgSecret({ orgId: who.orgId, sealedSecret, previousUntilMs, audit })
  return orgSecret(services, who)
}
