/** Revokes a key of one organization; the next request with it is refused. */
import type { ApiKey, Store } from '../../db/store.ts'
import type { Clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import { newId } from '../ids.ts'

/** Returns the key as it is afterwards; 404 when the organization has none with this id. Twice is done once. */
export async function revokeKey(
  store: Pick<Store, 'keys'>,
  { orgId, keyId, actor }: { orgId: string; keyId: string; actor: string },
  clock: Clock,
): Promise<ApiKey> {
  const find = async () => (await store.keys.list(orgId)).find((key) => key.id === keyId)
  const key = await find()
  if (!key) throw new AppError('not_found', 'No key with this id is in this organization.')
  const now = clock.now()
  const audit = {
    id: newId('aud'),
    orgId,
    actor,
    action: `${key.kind}_key.revoked`,
    target: key.id,
    metadata: { label: key.label, prefix: key.prefix },
    occurredAtMs: now,
  }
  await store.keys.revoke({ orgId, keyId, now, audit })
  return (await find())!
}
