/** Has a key of a set-up file, known by its hash: made, brought to its terms, or left when people ended it. */
import type { ApiKey, Store } from '../../../db/contract/store.ts'
import { auditEntry } from '../../audit/entry.ts'
import { type Clock, isoTime } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { changeKey } from '../../identity/keys/keys.ts'
import { newKey, storeKey } from '../../identity/keys/keys.ts'
import { settingsView } from '../../identity/keys/keys.ts'
import type { Acting, Applied } from './change.ts'
import type { SetupKey } from './form.ts'

interface Services {
  store: Pick<Store, 'keys'>
  clock: Clock
}

export async function applyKey(services: Services, wanted: SetupKey, who: Acting): Promise<Applied> {
  const known = await services.store.keys.findByHash(wanted.hash)
  if (known === null) return createKey(services, wanted, who)
  if (known.orgId !== who.orgId || known.kind !== wanted.kind)
    throw new AppError(
      'conflict',
      'A key with this hash belongs to another organization or is of another kind.',
    )
  if (known.revokedAtMs !== null) return left(`revoked on ${isoTime(known.revokedAtMs)}`)
  if (isSame(known, wanted)) return { did: 'unchanged', note: null }
  if (known.expiresAtMs !== null && known.expiresAtMs <= services.clock.now())
    return left(`ended on ${isoTime(known.expiresAtMs)}`)
  if (!who.dryRun) {
    const { label, scopes, siteIds, behindProxy, expiresAtMs } = wanted
    const change = { label, scopes, siteIds, behindProxy, expiresAtMs }
    await changeKey(services, { orgId: known.orgId, actor: who.actor }, known.id, change)
  }
  return { did: 'changed', note: null }
}

async function createKey({ store, clock }: Services, wanted: SetupKey, who: Acting): Promise<Applied> {
  const now = clock.now()
  const { hash, prefix, expiresAtMs } = wanted
  if (expiresAtMs !== null && expiresAtMs <= now) return left(`ended on ${isoTime(expiresAtMs)}`)
  const asked = { ...wanted, orgId: who.orgId ?? '', actor: who.actor }
  // Its terms are checked as for any key; the secret made along is nobody's, the hash of the file takes its place.
  const key = { ...newKey(asked, now).key, hash, prefix }
  if (!who.dryRun) await storeKey(store, key, who.actor)
  return { did: 'created', note: null }
}

function left(note: string): Applied {
  return { did: 'left', note }
}

function isSame(known: ApiKey, wanted: SetupKey): boolean {
  const sorted = ({ scopes, siteIds, ...terms }: ReturnType<typeof settingsView>) =>
    JSON.stringify({ ...terms, scopes: scopes.toSorted(), siteIds: siteIds.toSorted() })
  return sorted(settingsView(known)) === sorted(settingsView(wanted))
}
