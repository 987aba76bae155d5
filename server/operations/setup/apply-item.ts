/** Applies one key or endpoint of a setup file: creates it, changes it, or leaves it alone. */
import { auditEntry } from '../../audit/entry.ts'
import { isoTime, type Clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { changeKey, newKey, storeKey, settingsView } from '../../identity/keys/keys.ts'
import {
  changeEndpoint,
  createEndpoint,
  rotateEndpointSecret,
  type EndpointServices,
} from '../../webhooks/endpoints/endpoints.ts'
import { readFilters, readUrl } from '../../webhooks/endpoints/endpoint-fields.ts'
import { secretPurpose } from '../../webhooks/delivery/signing.ts'
import type { ApiKey, Store } from '../../../db/contract/store.ts'
import type { SetupEndpoint, SetupKey } from './form.ts'
import type { Endpoint } from '../../../db/contract/webhooks.ts'

/** `left`: the file contains something that was ended since, such as a revoked key; `note` has the reason. */
export interface Applied {
  did: 'created' | 'changed' | 'unchanged' | 'left'
  note: string | null
}

export interface SetupChange extends Applied {
  kind: 'organization' | 'site' | 'key' | 'endpoint'
  org: string // slug
  name: string
}

/** Who applies an item, and where. In a dry run the organization may not exist yet. */
export interface Acting {
  orgId: string | null // null: not created yet
  actor: string
  dryRun: boolean
}

export const unchanged: Applied = { did: 'unchanged', note: null }

interface Services {
  store: Pick<Store, 'keys'>
  clock: Clock
}

/** A key is identified by its hash. */
export async function applyKey(services: Services, target: SetupKey, who: Acting): Promise<Applied> {
  const known = await services.store.keys.findByHash(target.hash)
  if (known === null) return createKey(services, target, who)
  if (known.orgId !== who.orgId || known.kind !== target.kind)
    throw new AppError(
      'conflict',
      'A key with this hash exists in another organization or with another kind.',
    )
  if (known.revokedAtMs !== null) return left(`revoked on ${isoTime(known.revokedAtMs)}`)
  if (isSame(known, target)) return { did: 'unchanged', note: null }
  if (known.expiresAtMs !== null && known.expiresAtMs <= services.clock.now())
    return left(`expired on ${isoTime(known.expiresAtMs)}`)
  if (!who.dryRun) {
    const { label, scopes, siteIds, behindProxy, expiresAtMs } = target
    const change = { label, scopes, siteIds, behindProxy, expiresAtMs }
    await changeKey(services, { orgId: known.orgId, actor: who.actor }, known.id, change)
  }
  return { did: 'changed', note: null }
}

async function createKey({ store, clock }: Services, target: SetupKey, who: Acting): Promise<Applied> {
  const now = clock.now()
  const { hash, prefix, expiresAtMs } = target
  if (expiresAtMs !== null && expiresAtMs <= now) return left(`expired on ${isoTime(expiresAtMs)}`)
  const asked = { ...target, orgId: who.orgId ?? '', actor: who.actor }
  // newKey validates the fields as for any key. Its random secret is discarded in favor of the hash in the file.
  const key = { ...newKey(asked, now).key, hash, prefix }
  if (!who.dryRun) await storeKey(store, key, who.actor)
  return { did: 'created', note: null }
}

function left(note: string): Applied {
  return { did: 'left', note }
}

function isSame(known: ApiKey, target: SetupKey): boolean {
  const sorted = ({ scopes, siteIds, ...terms }: ReturnType<typeof settingsView>) =>
    JSON.stringify({ ...terms, scopes: scopes.toSorted(), siteIds: siteIds.toSorted() })
  return sorted(settingsView(known)) === sorted(settingsView(target))
}

/** An endpoint is identified by its label in its organization. */
export async function applyEndpoint(
  services: EndpointServices,
  { at: _, secret, ...wanted }: SetupEndpoint,
  { orgId, actor, dryRun }: Acting,
): Promise<Applied> {
  const all = orgId === null ? [] : await services.store.webhooks.endpoints(orgId)
  const named = all.map(({ endpoint }) => endpoint).filter(({ label }) => label === wanted.label)
  if (named.length > 1)
    throw new AppError('conflict', `${named.length} endpoints have this label; rename all but one.`)
  const [known] = named
  readFilters(wanted)
  // An unchanged URL was checked when it was added. Stricter rules since then must not prevent a start.
  const url = known?.url === wanted.url ? wanted.url : readUrl(services, wanted.url)
  if (known === undefined) {
    if (orgId === null || dryRun) return { did: 'created', note: null }
    const { warnings } = await createEndpoint(services, { orgId, actor }, wanted, secret ?? undefined)
    return { did: 'created', note: warnings.map(({ message }) => message).join(' ') || null }
  }
  const who = { orgId: known.orgId, actor }
  const changes = differing(known, { ...wanted, url })
  const isNewSecret = secret !== null && decryptSecret(services, known) !== secret
  if (!dryRun && Object.keys(changes).length > 0) await changeEndpoint(services, who, known.id, changes)
  if (!dryRun && isNewSecret) await rotateEndpointSecret(services, who, known.id, secret)
  return { did: Object.keys(changes).length > 0 || isNewSecret ? 'changed' : 'unchanged', note: null }
}

function differing(
  known: Endpoint,
  wanted: Omit<SetupEndpoint, 'at' | 'secret'>,
): { [field: string]: unknown } {
  const before: { [field: string]: unknown } = {
    ...known,
    sites: known.siteIds,
    retryWaits: known.retryWaitsMs?.map((ms) => ms / 1_000) ?? null,
  }
  return Object.fromEntries(
    Object.entries(wanted).filter(([name, value]) => JSON.stringify(before[name]) !== JSON.stringify(value)),
  )
}

/** Null when it was encrypted under another key file: then the secret of the setup file wins. */
function decryptSecret({ box }: EndpointServices, { orgId, id, sealedSecret }: Endpoint): string | null {
  try {
    return box.decrypt(secretPurpose({ orgId, endpointId: id }), sealedSecret)
  } catch {
    return null
  }
}
