/** Changes a key in use, and rotates one: the successor gets its terms, the old one lives on for a chosen while. */
import type { ApiKey, Store } from '../../../db/contract/store.ts'
import { auditEntry, type Actor } from '../../audit/entry.ts'
import type { Clock } from '../../clock.ts'
import { isoTime } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { wrongField } from '../../http/body-fields.ts'
import { limits } from '../../limits.ts'
import { newKey } from './mint.ts'
import { checkTerms, readLabel, termsView } from './terms.ts'

interface Services {
  store: Pick<Store, 'keys'>
  clock: Clock
}

export interface KeyChange {
  label?: string | undefined
  scopes?: string[] | undefined
  siteIds?: string[] | undefined
  behindProxy?: boolean | undefined
  expiresAtMs?: number | null | undefined // null: no end
}

export async function changeKey(
  { store, clock }: Services,
  who: Actor,
  keyId: string,
  change: KeyChange,
): Promise<ApiKey> {
  const key = await requireLiveKey(store, who.orgId, keyId, clock.now())
  const terms = {
    label: change.label === undefined ? key.label : readLabel(change.label),
    scopes: change.scopes ?? key.scopes,
    siteIds: change.siteIds ?? key.siteIds,
    behindProxy: change.behindProxy ?? key.behindProxy,
    expiresAtMs: change.expiresAtMs === undefined ? key.expiresAtMs : change.expiresAtMs,
  }
  checkTerms(key.kind, terms, clock.now())
  const metadata = { before: termsView(key), after: termsView(terms) }
  const audit = auditEntry(who, { action: `${key.kind}_key.changed`, target: keyId, metadata }, clock.now())
  await store.keys.change({ orgId: who.orgId, keyId, terms, audit })
  return { ...key, ...terms }
}

/** With no overlap the old key is refused from its next request on. */
export async function rotateKey(
  { store, clock }: Services,
  who: Actor,
  keyId: string,
  overlapMs: number,
): Promise<{ key: ApiKey; secret: string; old: ApiKey }> {
  if (!(overlapMs >= 0 && overlapMs <= limits.keyOverlapMsMax))
    throw wrongField('overlapHours', `The overlap is 0 to ${limits.keyOverlapMsMax / 3_600_000} hours.`)
  const now = clock.now()
  const old = await requireLiveKey(store, who.orgId, keyId, now)
  const { key, secret } = newKey({ ...old, actor: who.actor, expiresAtMs: null }, now)
  const oldEndsAtMs = Math.min(old.expiresAtMs ?? Infinity, now + overlapMs)
  const metadata = {
    label: old.label,
    prefix: old.prefix,
    successor: key.id,
    successorPrefix: key.prefix,
    oldEndsAt: isoTime(oldEndsAtMs),
  }
  const audit = auditEntry(who, { action: `${old.kind}_key.rotated`, target: keyId, metadata }, now)
  await store.keys.rotate({ orgId: who.orgId, keyId, successor: key, oldEndsAtMs, audit })
  return { key, secret, old: { ...old, expiresAtMs: oldEndsAtMs } }
}

async function requireLiveKey(
  store: Pick<Store, 'keys'>,
  orgId: string,
  keyId: string,
  now: number,
): Promise<ApiKey> {
  const key = (await store.keys.list({ orgId })).find((each) => each.id === keyId)
  if (!key) throw new AppError('not_found', 'No key with this id is in this organization.')
  const ended = key.revokedAtMs !== null || (key.expiresAtMs !== null && key.expiresAtMs <= now)
  if (ended) throw new AppError('conflict', 'This key has ended; make a new one.')
  return key
}
