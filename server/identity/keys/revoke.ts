/** Revokes a key of one organization; the next request with it is refused. */
import type { ApiKey, Store } from '../../../db/contract/store.ts'
import { auditEntry } from '../../audit/entry.ts'
import type { Clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'

/** Returns the key as it is afterwards; 404 when the organization has none with this id. Twice is done once. */
export async function revokeKey(
  store: Pick<Store, 'keys'>,
  { orgId, keyId, actor }: { orgId: string; keyId: string; actor: string },
  clock: Clock,
): Promise<ApiKey> {
  const find = async () => (await store.keys.list({ orgId })).find((key) => key.id === keyId)
  const key = await find()
  if (!key) throw new AppError('not_found', 'No key with this id is in this organization.')
  const now = clock.now()
  const metadata = { label: key.label, prefix: key.prefix }
  const act = { action: `${key.kind}_key.revoked`, target: key.id, metadata }
  const audit = auditEntry({ orgId, actor }, act, now)
  await store.keys.revoke({ orgId, keyId, now, audit })
  return (await find())!
}
