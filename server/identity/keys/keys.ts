/**
 * Creates, changes, rotates and revokes API keys, and records their last use. The secret of a key is shown once; the
 * store has its hash.
 */
import { auditEntry, type Actor } from '../../audit/entry.ts'
import { newApiKey, newId, sha256Hex } from '../../ids.ts'
import { isoTime, type Clock } from '../../clock.ts'
import { wrongField } from '../../http/validate.ts'
import { limits } from '../../limits.ts'
import { AppError } from '../../errors.ts'
import { nameProblem } from '../../text/names.ts'
import type { Sender } from '../../http/request.ts'
import type { ApiKey, KeyKind, KeySettings, Store } from '../../../db/contract/store.ts'
import type { Scope } from '../../http/guard.ts'
import { minuteMs, secondMs } from '../../../db/contract/units.ts'

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
    metadata: { prefix: key.prefix, ...settingsView(key) },
  }
  await store.keys.create({ key, audit: auditEntry({ orgId: key.orgId, actor }, act, key.createdAtMs) })
}

/** A new key that is not stored yet. */
export function newKey(request: MintRequest, now: number): { key: ApiKey; secret: string } {
  const { orgId, kind } = request
  const settings = {
    label: readLabel(request.label),
    scopes: [...new Set(request.scopes)],
    siteIds: [...new Set(request.siteIds)],
    behindProxy: request.behindProxy ?? false,
    expiresAtMs: request.expiresAtMs ?? null,
  }
  checkSettings(kind, settings, now)
  const secret = newApiKey(kind)
  const unused = { revokedAtMs: null, lastUsedAtMs: null, lastUsedAddress: null, exposedAtMs: null }
  const id = newId('key')
  const shown = { prefix: secret.slice(0, 16), hash: sha256Hex(secret) }
  return { key: { id, orgId, kind, ...settings, ...shown, createdAtMs: now, ...unused }, secret }
}

/** Scopes that secret keys can have. */
export const scopes: readonly Scope[] = [
  'traces:read',
  'metrics:read',
  'audit:read',
  'webhooks:read',
  'webhooks:write',
]

export function readLabel(text: string): string {
  const label = text.trim()
  const problem = nameProblem(label)
  if (problem !== null) throw wrongField('label', `label ${problem}.`)
  return label
}

/** Throws 400 `invalid_body` for a setting that this kind of key does not have, or an invalid value. */
export function checkSettings(kind: KeyKind, settings: Omit<KeySettings, 'label'>, now: number): void {
  const { scopes: keyScopes, siteIds, behindProxy, expiresAtMs } = settings
  if (keyScopes.length > 0 && kind !== 'secret') throw wrongField('scopes', 'Only secret keys have scopes.')
  const strange = keyScopes.find((scope) => !scopes.some((knownScope) => knownScope === scope))
  if (strange !== undefined) throw wrongField('scopes', `scopes must be one or more of ${scopes.join(', ')}.`)
  if (siteIds.length > 0 && kind !== 'ingest')
    throw wrongField('siteIds', 'Only ingest keys can be limited to sites.')
  if (
    siteIds.length > limits.sitesPerOrgMax ||
    siteIds.some((id) => id === '' || [...id].length > limits.idCharsMax)
  )
    throw wrongField('siteIds', `A site id must have 1 to ${limits.idCharsMax} characters.`)
  if (behindProxy && kind !== 'ingest')
    throw wrongField('behindProxy', 'Only ingest keys can be used behind a proxy.')
  if (expiresAtMs !== null && expiresAtMs <= now)
    throw wrongField('expiresAt', 'expiresAt must be in the future.')
}

/** The settings as an audit entry records them. */
export function settingsView({ label, scopes, siteIds, behindProxy, expiresAtMs }: KeySettings | ApiKey) {
  const expiresAt = expiresAtMs === null ? null : isoTime(expiresAtMs)
  return { label, scopes, siteIds, behindProxy, expiresAt }
}

interface Services {
  store: Pick<Store, 'keys'>
  clock: Clock
}

interface KeyChange {
  label?: string | undefined
  scopes?: string[] | undefined
  siteIds?: string[] | undefined
  behindProxy?: boolean | undefined
  expiresAtMs?: number | null | undefined // null: does not expire
}

export async function changeKey(
  { store, clock }: Services,
  actor: Actor,
  keyId: string,
  change: KeyChange,
): Promise<ApiKey> {
  const key = await requireLiveKey(store, actor.orgId, keyId, clock.now())
  const settings = {
    label: change.label === undefined ? key.label : readLabel(change.label),
    scopes: change.scopes ?? key.scopes,
    siteIds: change.siteIds ?? key.siteIds,
    behindProxy: change.behindProxy ?? key.behindProxy,
    expiresAtMs: change.expiresAtMs === undefined ? key.expiresAtMs : change.expiresAtMs,
  }
  checkSettings(key.kind, settings, clock.now())
  const metadata = { before: settingsView(key), after: settingsView(settings) }
  const audit = auditEntry(actor, { action: `${key.kind}_key.changed`, target: keyId, metadata }, clock.now())
  await store.keys.change({ orgId: actor.orgId, keyId, settings, audit })
  return { ...key, ...settings }
}

/** Without an overlap the next request with the old key is rejected. */
export async function rotateKey(
  { store, clock }: Services,
  actor: Actor,
  keyId: string,
  overlapMs: number,
): Promise<{ key: ApiKey; secret: string; old: ApiKey }> {
  if (!(overlapMs >= 0 && overlapMs <= limits.keyOverlapMsMax))
    throw wrongField('overlapHours', `The overlap must be 0 to ${limits.keyOverlapMsMax / 3_600_000} hours.`)
  const now = clock.now()
  const old = await requireLiveKey(store, actor.orgId, keyId, now)
  const { key, secret } = newKey({ ...old, actor: actor.actor, expiresAtMs: null }, now)
  const oldEndsAtMs = Math.min(old.expiresAtMs ?? Infinity, now + overlapMs)
  const metadata = {
    label: old.label,
    prefix: old.prefix,
    successor: key.id,
    successorPrefix: key.prefix,
    oldEndsAt: isoTime(oldEndsAtMs),
  }
  const audit = auditEntry(actor, { action: `${old.kind}_key.rotated`, target: keyId, metadata }, now)
  await store.keys.rotate({ orgId: actor.orgId, keyId, successor: key, oldEndsAtMs, audit })
  return { key, secret, old: { ...old, expiresAtMs: oldEndsAtMs } }
}

async function requireLiveKey(
  store: Pick<Store, 'keys'>,
  orgId: string,
  keyId: string,
  now: number,
): Promise<ApiKey> {
  const key = (await store.keys.list({ orgId })).find((apiKey) => apiKey.id === keyId)
  if (!key) throw new AppError('not_found', 'This organization has no key with this id.')
  const ended = key.revokedAtMs !== null || (key.expiresAtMs !== null && key.expiresAtMs <= now)
  if (ended) throw new AppError('conflict', 'This key has expired or was revoked. Create a new one.')
  return key
}

/** Idempotent; returns the revoked key. 404 when the organization has no key with this id. */
export async function revokeKey(
  store: Pick<Store, 'keys'>,
  { orgId, keyId, actor }: { orgId: string; keyId: string; actor: string },
  clock: Clock,
): Promise<ApiKey> {
  const find = async () => (await store.keys.list({ orgId })).find((key) => key.id === keyId)
  const key = await find()
  if (!key) throw new AppError('not_found', 'This organization has no key with this id.')
  const now = clock.now()
  const metadata = { label: key.label, prefix: key.prefix }
  const act = { action: `${key.kind}_key.revoked`, target: key.id, metadata }
  const audit = auditEntry({ orgId, actor }, act, now)
  await store.keys.revoke({ orgId, keyId, now, audit })
  return (await find())!
}

/**
 * When, to the minute, and from where each key was last used; a job writes it to the store once per minute. The address
 * is that of a request at most a second before the last, because asking for one costs as much as checking an event.
 */
export interface LastUses {
  used(key: ApiKey, atMs: number, context: { sender(): Sender }): void
  /** Writes pending uses; a failed write is retried at the next flush. */
  flush(): Promise<void>
}

export function makeLastUses(store: Pick<Store, 'keys'>): LastUses {
  let waiting = new Map<string, { keyId: string; atMs: number; address: string }>()
  const askedMs = new Map<string, number>()
  return {
    used(key, atMs, context) {
      const minute = atMs - (atMs % minuteMs)
      const lastUseMs = askedMs.get(key.id) ?? -Infinity
      if (lastUseMs >= minute && atMs >= lastUseMs && atMs - lastUseMs < secondMs) return
      askedMs.set(key.id, atMs)
      const { address } = context.sender()
      const pending = waiting.get(key.id)
      if (pending) {
        pending.atMs = minute
        pending.address = address
      } else if (key.lastUsedAtMs !== minute || key.lastUsedAddress !== address) {
        waiting.set(key.id, { keyId: key.id, atMs: minute, address })
      }
    },
    async flush() {
      if (waiting.size === 0) return
      const uses = waiting
      waiting = new Map()
      try {
        await store.keys.touch([...uses.values()])
      } catch (error) {
        for (const [id, use] of uses) if (!waiting.has(id)) waiting.set(id, use)
        throw error
      }
    },
  }
}
