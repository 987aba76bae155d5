/** `sightglass key`: creates, lists and revokes the keys of an organization. */
import type { ApiKey, Json, KeyKind, Store } from '../../../db/contract/store.ts'
import { isoTime } from '../../clock.ts'
import { AppError, UsageError } from '../../errors.ts'
import { mintKey } from '../../identity/keys/keys.ts'
import { revokeKey } from '../../identity/keys/keys.ts'
import { scopes } from '../../identity/keys/keys.ts'
import { limits } from '../../limits.ts'
import { readExpiry } from './expiry.ts'
import { requireOrg } from './org.ts'
import { flagOf, textOf, textOrNull, textsOf, type Params } from '../../runtime/params.ts'
import type { VerbContext } from '../../runtime/verb-context.ts'

export async function createKey({ store, clock }: VerbContext, params: Params): Promise<Json> {
  const kind = textOf(params, 'kind') as KeyKind
  const expires = textOrNull(params, 'expires')
  const org = await requireOrg(store, textOf(params, 'org'))
  const request = {
    orgId: org.id,
    kind,
    label: textOf(params, 'label'),
    actor: 'cli',
    scopes: readScopes(kind, textsOf(params, 'scope')),
    siteIds: readSites(kind, textsOf(params, 'site')),
    behindProxy: readBehindProxy(kind, flagOf(params, 'behindProxy')),
    expiresAtMs: expires === null ? null : readExpiry(expires, clock.now()),
  }
  const { key, secret } = await mintKey(store, request, clock)
  return { key: secret, ...keyView(key) }
}

export async function listKeys({ store, clock }: VerbContext, params: Params): Promise<Json> {
  const org = await requireOrg(store, textOf(params, 'org'))
  const kind = textOrNull(params, 'kind') as KeyKind | null
  const keys = await store.keys.list({ orgId: org.id, ...(kind !== null && { kind }) })
  return { keys: keys.map((key) => ({ ...keyView(key), state: keyState(key, clock.now()) })) }
}

export async function revokeKeyById({ store, clock }: VerbContext, params: Params): Promise<Json> {
  const keyId = textOf(params, 'id')
  const orgId = await orgOfKey(store, keyId, textOrNull(params, 'org'))
  return keyView(await revokeKey(store, { orgId, keyId, actor: 'cli' }, clock))
}

/** An id names its key in the whole appliance; `--org` only narrows the search. */
export async function orgOfKey(
  store: Pick<Store, 'orgs' | 'keys'>,
  keyId: string,
  idOrSlug: string | null,
): Promise<string> {
  const orgs = idOrSlug === null ? await store.orgs.list() : [await requireOrg(store, idOrSlug)]
  for (const org of orgs) {
    if ((await store.keys.list({ orgId: org.id })).some((key) => key.id === keyId)) return org.id
  }
  throw new AppError('not_found', `There is no key "${keyId}".`, { hint: 'sightglass key list' })
}

function readScopes(kind: KeyKind, given: string[]): string[] {
  if (given.length > 0 && kind !== 'secret')
    throw new UsageError(`only secret keys have scopes, not ${kind} keys`)
  const strange = given.find((scope) => !scopes.some((known) => known === scope))
  if (strange !== undefined)
    throw new UsageError(`"${strange}" is not a scope`, `scopes are ${scopes.join(' ')}`)
  return [...new Set(given)]
}

function readSites(kind: KeyKind, given: string[]): string[] {
  if (given.length > 0 && kind !== 'ingest')
    throw new UsageError(`only ingest keys are limited to sites, not ${kind} keys`)
  if (given.some((site) => [...site].length > limits.idCharsMax)) {
    throw new UsageError(`a site id has at most ${limits.idCharsMax} characters`)
  }
  return [...new Set(given)]
}

function readBehindProxy(kind: KeyKind, given: boolean): boolean {
  if (given && kind !== 'ingest') throw new UsageError(`--behind-proxy is for ingest keys only`)
  return given
}

function keyState(key: ApiKey, nowMs: number): 'active' | 'expired' | 'revoked' {
  if (key.revokedAtMs !== null) return 'revoked'
  return key.expiresAtMs !== null && key.expiresAtMs <= nowMs ? 'expired' : 'active'
}

/** A key as people may see it: everything but its hash. */
export function keyView(key: ApiKey): { [member: string]: Json } {
  const time = (ms: number | null) => (ms === null ? null : isoTime(ms))
  return {
    id: key.id,
    kind: key.kind,
    orgId: key.orgId,
    label: key.label,
    prefix: key.prefix,
    createdAt: isoTime(key.createdAtMs),
    expiresAt: time(key.expiresAtMs),
    revokedAt: time(key.revokedAtMs),
    lastUsedAt: time(key.lastUsedAtMs),
    lastUsedAddress: key.lastUsedAddress,
    exposedAt: time(key.exposedAtMs),
    siteIds: key.siteIds,
    scopes: key.scopes,
    behindProxy: key.behindProxy,
  }
}
