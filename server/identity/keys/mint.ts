/** Makes a key: checks what it may be given, mints the secret, stores its hash with the audit row; shown once. */
import type { ApiKey, KeyKind, Store } from '../../../db/contract/store.ts'
import { auditEntry } from '../../audit/entry.ts'
import type { Clock } from '../../clock.ts'
import { newApiKey, newId, sha256Hex } from '../../ids.ts'
import { checkTerms, readLabel, termsView } from './terms.ts'

export interface MintRequest {
  orgId: string
  kind: KeyKind
  label: string // 1 to 80 characters
  actor: string
  scopes?: string[]
  siteIds?: string[]
  behindProxy?: boolean
  expiresAtMs?: number | null
}

/** Returns the stored key and its secret text; throws 400 `invalid_body` for a label that is empty or too long. */
export async function mintKey(
  store: Pick<Store, 'keys'>,
  request: MintRequest,
  clock: Clock,
): Promise<{ key: ApiKey; secret: string }> {
  const { key, secret } = newKey(request, clock.now())
  await storeKey(store, key, request.actor)
  return { key, secret }
}

export async function storeKey(store: Pick<Store, 'keys'>, key: ApiKey, actor: string): Promise<void> {
  const act = {
    action: `${key.kind}_key.created`,
    target: key.id,
    metadata: { prefix: key.prefix, ...termsView(key) },
  }
  await store.keys.create({ key, audit: auditEntry({ orgId: key.orgId, actor }, act, key.createdAtMs) })
}

/** A key that is not stored yet. */
export function newKey(request: MintRequest, now: number): { key: ApiKey; secret: string } {
  const { orgId, kind } = request
  const terms = {
    label: readLabel(request.label),
    scopes: [...new Set(request.scopes)],
    siteIds: [...new Set(request.siteIds)],
    behindProxy: request.behindProxy ?? false,
    expiresAtMs: request.expiresAtMs ?? null,
  }
  checkTerms(kind, terms, now)
  const secret = newApiKey(kind)
  const unused = { revokedAtMs: null, lastUsedAtMs: null, lastUsedAddress: null, exposedAtMs: null }
  const id = newId('key')
  const shown = { prefix: secret.slice(0, 16), hash: sha256Hex(secret) }
  return { key: { id, orgId, kind, ...terms, ...shown, createdAtMs: now, ...unused }, secret }
}
