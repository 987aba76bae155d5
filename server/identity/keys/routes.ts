/** Routes of Settings → Keys for owners and admins: list, create, change, rotate, revoke. */
import { Elysia } from 'elysia'
import type { ApiKey, KeyKind, Store } from '../../../db/contract/store.ts'
import { rolesOf } from '../permissions.ts'
import { isoTime, parseTime, type Clock } from '../../clock.ts'
import { json } from '../../http/response.ts'
import { readFields, wrongField } from '../../http/validate.ts'
import { invalidQuery, readQuery } from '../../http/request.ts'
import type { SignIns } from '../sign-in/sign-ins.ts'
import { changeKey, mintKey, revokeKey, rotateKey } from './keys.ts'
import { hourMs } from '../../../db/contract/units.ts'

interface KeyRoutesServices {
  store: Store
  clock: Clock
  signIns: SignIns
}

const kinds: readonly string[] = ['ingest', 'secret', 'publishable']
const unparsed = { parse: 'none' } as const

const keyFields = {
  kind: 'text',
  label: 'text',
  scopes: 'texts?',
  siteIds: 'texts?',
  behindProxy: 'flag?',
  expiresAt: 'text?',
} as const
const changeFields = {
  label: 'text?',
  scopes: 'texts?',
  siteIds: 'texts?',
  behindProxy: 'flag?',
  expiresAt: 'text|null?', // null: does not expire
} as const

export function keyRoutes(services: KeyRoutesServices) {
  const { store, clock, signIns } = services
  const manager = async (request: Request) => {
    const { org, account } = await signIns.require(request, rolesOf('key.manage'))
    return { orgId: org.id, actor: `user:${account.id}` }
  }
  return new Elysia()
    .get('/api/keys', async ({ request }) => {
      const { orgId } = await manager(request)
      const kind = readQuery(request, { kind: 'one' }).one('kind')
      if (kind !== undefined && !kinds.includes(kind))
        throw invalidQuery('kind', `kind must be ${kinds.join(', ')}`)
      const keys = await store.keys.list({ orgId, kind: kind as KeyKind | undefined })
      return json({ keys: keys.map(keyView) })
    })
    .post(
      '/api/keys',
      async ({ request }) => {
        const actor = await manager(request)
        const body = await readFields(request, keyFields)
        const { kind, label, scopes, siteIds, behindProxy, expiresAt } = body
        if (!kinds.includes(kind)) throw wrongField('kind', `kind must be one of ${kinds.join(', ')}`)
        const settings = {
          ...actor,
          kind: kind as KeyKind,
          label,
          scopes: scopes ?? [],
          siteIds: siteIds ?? [],
          behindProxy: behindProxy ?? false,
          expiresAtMs: expiresAt === undefined ? null : readTime(expiresAt),
        }
        const mintedKey = await mintKey(store, settings, clock)
        return json({ key: keyView(mintedKey.key), secret: mintedKey.secret }, 201)
      },
      unparsed,
    )
    .post(
      '/api/keys/:id/change',
      async ({ request, params }) => {
        const actor = await manager(request)
        const { expiresAt, ...settings } = await readFields(request, changeFields)
        const expiresAtMs = typeof expiresAt === 'string' ? readTime(expiresAt) : expiresAt
        const key = await changeKey(services, actor, params.id, { ...settings, expiresAtMs })
        return json({ key: keyView(key) })
      },
      unparsed,
    )
    .post(
      '/api/keys/:id/rotate',
      async ({ request, params }) => {
        const actor = await manager(request)
        const { overlapHours } = await readFields(request, { overlapHours: 'number' })
        const { key, secret, old } = await rotateKey(services, actor, params.id, overlapHours * hourMs)
        return json({ key: keyView(key), secret, old: keyView(old) }, 201)
      },
      unparsed,
    )
    .post(
      '/api/keys/:id/revoke',
      async ({ request, params }) => {
        const actor = await manager(request)
        const key = await revokeKey(store, { ...actor, keyId: params.id }, clock)
        return json({ key: keyView(key) })
      },
      unparsed,
    )
}

/** A key without its hash. */
function keyView(key: ApiKey) {
  const time = (ms: number | null) => (ms === null ? null : isoTime(ms))
  return {
    id: key.id,
    kind: key.kind,
    label: key.label,
    prefix: key.prefix,
    scopes: key.scopes,
    siteIds: key.siteIds,
    behindProxy: key.behindProxy,
    createdAt: isoTime(key.createdAtMs),
    expiresAt: time(key.expiresAtMs),
    revokedAt: time(key.revokedAtMs),
    lastUsedAt: time(key.lastUsedAtMs),
    lastUsedAddress: key.lastUsedAddress,
    exposedAt: time(key.exposedAtMs),
  }
}

export type KeyView = ReturnType<typeof keyView>

function readTime(text: string): number {
  const ms = parseTime(text)
  if (ms === null) throw wrongField('expiresAt', 'expiresAt must be a time such as 2027-01-31T18:00:00Z')
  return ms
}
