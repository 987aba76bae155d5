/** Settings → keys: list, create (the key shown once) and revoke, for owners and admins. */
import { Elysia } from 'elysia'
import type { ApiKey, KeyKind } from '../../db/store.ts'
import { isoTime } from '../clock.ts'
import { AppError } from '../errors.ts'
import { json } from '../http/answer.ts'
import { readJsonObject } from '../http/body.ts'
import { invalidQuery, readQuery } from '../http/query.ts'
import { limits } from '../limits.ts'
import type { Parts } from '../parts.ts'
import { mintKey } from './mint.ts'
import { revokeKey } from './revoke.ts'

const kinds: readonly string[] = ['ingest', 'secret', 'publishable']
const managers = ['owner', 'admin'] as const

export function keyRoutes({ store, clock, signIns }: Parts) {
  return new Elysia()
    .get('/api/keys', async ({ request }) => {
      const { org } = await signIns.require(request, managers)
      const kind = readQuery(request, { kind: 'one' }).one('kind')
      if (kind !== undefined && !kinds.includes(kind))
        throw invalidQuery('kind', `kind must be ${kinds.join(', ')}`)
      const keys = await store.keys.list(org.id, kind as KeyKind | undefined)
      return json({ keys: keys.map(keyView) })
    })
    .post(
      '/api/keys',
      async ({ request }) => {
        const { org, account } = await signIns.require(request, managers)
        const { kind, label } = await readJsonObject(request, { bytesMax: limits.jsonBodyBytesMax })
        if (typeof kind !== 'string' || !kinds.includes(kind)) {
          throw wrong('kind', `kind must be one of ${kinds.join(', ')}`)
        }
        const asked = { orgId: org.id, kind: kind as KeyKind, label: typeof label === 'string' ? label : '' }
        const made = await mintKey(store, { ...asked, actor: `user:${account.id}` }, clock)
        return json({ key: keyView(made.key), secret: made.secret }, 201)
      },
      { parse: 'none' },
    )
    .post(
      '/api/keys/:id/revoke',
      async ({ request, params }) => {
        const { org, account } = await signIns.require(request, managers)
        const key = await revokeKey(
          store,
          { orgId: org.id, keyId: params.id, actor: `user:${account.id}` },
          clock,
        )
        return json({ key: keyView(key) })
      },
      { parse: 'none' },
    )
}

/** A key as people may see it: everything but its hash. */
export function keyView(key: ApiKey) {
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

function wrong(path: string, message: string): AppError {
  return new AppError('invalid_body', message, { issues: [{ path, message, code: 'wrong_format' }] })
}
