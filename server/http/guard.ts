/** Authenticates requests by API key: identity (401), kind and scope (403), and keys leaked to a browser (403). */
import type { ApiKey, KeyKind, Store } from '../../db/contract/store.ts'
import type { Clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import { newId, sha256Hex } from '../ids.ts'
import { requireJson } from './body.ts'
import type { Permit } from './permit.ts'
import { contextOf, type RequestContext } from './request.ts'

export type Scope = 'traces:read' | 'metrics:read' | 'audit:read' | 'webhooks:read' | 'webhooks:write'

export interface KeyGuard {
  /** For `/v1/sdk/*`: requires an ingest key that was not sent by a browser. Answers at once when the store does. */
  ingest(request: Request): ApiKey | Promise<ApiKey>
  /** For gateway endpoints: requires a secret key with `scope`, and JSON of requests that change something. */
  gateway(request: Request, scope: Scope): Promise<ApiKey>
  /** For `/mcp`: requires a secret key. The caller checks its scopes. */
  secret(request: Request): Promise<ApiKey>
}

interface GuardServices {
  store: Pick<Store, 'keys'>
  clock: Clock
  /** Counts a request against the key's rate limit; throws 429 above it. */
  limit(request: Request, key: ApiKey): void
  used(key: ApiKey, atMs: number, context: RequestContext): void
}

/** Builds the guard; `used` is called for every authenticated request. */
export function keyGuard({ store, clock, limit, used: recordUse }: GuardServices): KeyGuard {
  /** Asks the store again, without counting a request. */
  const permitOf = (hash: string, scope: Scope | null): Permit => {
    return async () => {
      const key = await store.keys.findByHash(hash)
      return key !== null && isUsable(key, clock.now()) && hasScope(key, scope)
    }
  }
  const admit = (storedKey: ApiKey | null, kind: KeyKind): ApiKey => {
    const key = usable(storedKey, clock.now())
    if (key.kind !== kind) throw wrongKind(key.kind, kind)
    return key
  }
  const note = (request: Request, key: ApiKey): ApiKey => {
    const context = contextOf(request)
    context.key = key
    limit(request, key)
    recordUse(key, clock.now(), context)
    return key
  }
  const admitIngest = (request: Request, storedKey: ApiKey | null): ApiKey | Promise<never> => {
    const key = admit(storedKey, 'ingest')
    return !key.behindProxy && fromBrowser(request)
      ? refuseExposed(store, key, clock.now())
      : note(request, key)
  }
  const admitWhenFound = async (request: Request, lookup: Promise<ApiKey | null>): Promise<ApiKey> =>
    admitIngest(request, await lookup)
  return {
    ingest(request) {
      const lookup = store.keys.findByHash(hashOf(request))
      return lookup instanceof Promise ? admitWhenFound(request, lookup) : admitIngest(request, lookup)
    },
    async gateway(request, scope) {
      const hash = hashOf(request)
      const key = admit(await store.keys.findByHash(hash), 'secret')
      if (!hasScope(key, scope)) {
        throw new AppError('forbidden', `This key lacks the scope ${scope}.`, {
          reason: 'wrong_scope',
        })
      }
      note(request, key)
      contextOf(request).permit = permitOf(hash, scope)
      requireJson(request)
      return key
    },
    async secret(request) {
      const hash = hashOf(request)
      const key = note(request, admit(await store.keys.findByHash(hash), 'secret'))
      contextOf(request).permit = permitOf(hash, null)
      return key
    },
  }
}

// Claude Code does not decode the variable with the headers of OpenTelemetry, in which a space is %20.
const bearer = /^bearer(?: +|%20)([\x21-\x7e]{1,200}) *$/i

/** The hash by which the store knows the key that was sent. Throws 401 when none was. */
function hashOf(request: Request): string {
  const header = request.headers.get('authorization')
  if (!header)
    throw unauthorized('missing_bearer', 'Send the API key in the header "Authorization: Bearer <key>".')
  const secret = bearer.exec(header)?.[1]
  if (!secret) throw unauthorized('missing_bearer', 'The Authorization header must be "Bearer <key>".')
  return sha256Hex(secret)
}

function hasScope({ scopes }: ApiKey, scope: Scope | null): boolean {
  return scope === null || scopes.length === 0 || scopes.includes(scope)
}

function isUsable({ revokedAtMs, expiresAtMs }: ApiKey, now: number): boolean {
  return revokedAtMs === null && (expiresAtMs === null || expiresAtMs > now)
}

/** The key was looked up by the hash of the whole secret, so the time of the lookup tells nothing about the secret. */
function usable(key: ApiKey | null, now: number): ApiKey {
  if (key === null) throw unauthorized('invalid_key', 'Unknown API key.')
  if (key.revokedAtMs !== null) throw unauthorized('revoked_key', 'This key has been revoked.')
  if (key.expiresAtMs !== null && key.expiresAtMs <= now)
    throw unauthorized('expired_key', 'This key has expired.')
  return key
}

/**
 * A 401 with its reason and challenge. Without `connection: close`, as in `body.ts`: the sender of a large batch would
 * see a broken pipe and retry a revoked key forever. The parser reads and discards the rest of the body.
 */
export function unauthorized(reason: string, message: string): AppError {
  return new AppError('unauthorized', message, {
    reason,
    headers: { 'www-authenticate': 'Bearer realm="sightglass"' },
  })
}

const kindUse: Record<KeyKind, string> = {
  ingest: 'An ingest key can only write to /v1/sdk/* and send OpenTelemetry data.',
  secret: 'A secret key can only read gateway endpoints such as /v1/traces.',
  publishable: 'A publishable key gives no access to the API.',
}

function wrongKind(has: KeyKind, needs: KeyKind): AppError {
  return new AppError('forbidden', `${kindUse[has]} This endpoint requires a key of kind ${needs}.`, {
    reason: 'wrong_key_kind',
  })
}

/** Browsers send `Origin` or `Sec-Fetch-Site`; Node's fetch sends only `Sec-Fetch-Mode` (contract §2). */
function fromBrowser(request: Request): boolean {
  return request.headers.has('origin') || request.headers.has('sec-fetch-site')
}

async function refuseExposed(store: Pick<Store, 'keys'>, key: ApiKey, now: number): Promise<never> {
  if (key.exposedAtMs === null) {
    const audit = {
      id: newId('aud'),
      orgId: key.orgId,
      actor: 'system',
      action: 'ingest_key.exposed',
      target: key.id,
      metadata: { label: key.label },
      occurredAtMs: now,
    }
    await store.keys.markExposed({ orgId: key.orgId, keyId: key.id, now, audit })
  }
  throw new AppError(
    'key_exposed',
    'This ingest key was sent from a browser. Treat it as leaked and replace it.',
    {
      hint:
        'Send events from your backend. If a proxy forwards browser headers to it, strip Origin and Sec-Fetch-Site, ' +
        'or enable "behind a proxy" for the key.',
    },
  )
}
