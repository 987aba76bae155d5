/** Makes a key: checks its label, mints the secret, stores its hash with the audit row; the secret is returned once. */
import type { ApiKey, KeyKind, Store } from '../../db/store.ts'
import type { Clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import { newApiKey, newId, sha256Hex } from '../ids.ts'
import { limits } from '../limits.ts'

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
  const label = request.label.trim()
  const chars = [...label].length
  if (chars < 1 || chars > limits.labelCharsMax || /[\u0000-\u001f\u007f]/.test(label)) {
    const message = `Give the key a label of 1 to ${limits.labelCharsMax} characters.`
    throw new AppError('invalid_body', message, {
      issues: [{ path: 'label', message, code: 'wrong_format' }],
    })
  }
  const secret = newApiKey(request.kind)
  const now = clock.now()
  const key: ApiKey = {
    id: newId('key'),
    orgId: request.orgId,
    kind: request.kind,
    label,
    prefix: secret.slice(0, 16),
    hash: sha256Hex(secret),
    scopes: request.scopes ?? [],
    siteIds: request.siteIds ?? [],
    behindProxy: request.behindProxy ?? false,
    createdAtMs: now,
    expiresAtMs: request.expiresAtMs ?? null,
    revokedAtMs: null,
    lastUsedAtMs: null,
    lastUsedAddress: null,
    exposedAtMs: null,
  }
  const audit = {
    id: newId('aud'),
    orgId: key.orgId,
    actor: request.actor,
    action: `${key.kind}_key.created`,
    target: key.id,
    metadata: { label, prefix: key.prefix, scopes: key.scopes, siteIds: key.siteIds },
    occurredAtMs: now,
  }
  await store.keys.create({ key, audit })
  return { key, secret }
}
