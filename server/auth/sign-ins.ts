/**
 * Dashboard sign-ins: begins one, finds the one behind a request, ends it; the cookie's hash is all the store keeps.
 */
import type { AuditEntry, Role, SignIn, SignInView, Store } from '../../db/store.ts'
import type { Clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import { newId, newToken, sha256Hex } from '../ids.ts'
import { contextOf } from '../http/context.ts'
import { limits } from '../limits.ts'
import { cookieHeader, readCookie } from './cookie.ts'
import { requireSameOrigin } from './same-origin.ts'

export interface SignIns {
  /** Starts a sign-in for an account in one organization; returns the Set-Cookie header. */
  begin(request: Request, who: { accountId: string; orgId: string; email: string }): Promise<string>
  /** The live sign-in behind a request; throws 401 `no_session`, or 403 for a cross-site or unprivileged one. */
  require(request: Request, roles?: readonly Role[]): Promise<SignInView>
  /** Whether the sign-in behind a request still lives; streams ask again while they run. */
  isLive(request: Request): Promise<boolean>
  /** Ends the sign-in behind a request, if any; returns the Set-Cookie header that clears the cookie. */
  end(request: Request): Promise<string>
}

const touchEveryMs = 60_000

export function makeSignIns(store: Pick<Store, 'signIns'>, clock: Clock): SignIns {
  const find = async (request: Request): Promise<SignInView | null> => {
    const token = readCookie(request.headers.get('cookie'), contextOf(request).secure)
    if (!token) return null
    const view = await store.signIns.find(sha256Hex(token))
    const now = clock.now()
    if (!view || view.signIn.expiresAtMs <= now) return null
    if (view.signIn.lastSeenAtMs + limits.signInIdleMs <= now) return null
    return view
  }
  return {
    async begin(request, { accountId, orgId, email }) {
      const context = contextOf(request)
      const token = newToken()
      const now = clock.now()
      const signIn = {
        id: newId('ses'),
        tokenHash: sha256Hex(token),
        accountId,
        orgId,
        createdAtMs: now,
        lastSeenAtMs: now,
        expiresAtMs: now + limits.signInAbsoluteMs,
        address: context.address,
        userAgent: (request.headers.get('user-agent') ?? '').slice(0, 300),
      }
      const audit = entry('session.created', signIn, { email, address: context.address }, now)
      await store.signIns.create({ signIn, audit })
      return cookieHeader(token, context.secure, limits.signInAbsoluteMs)
    },
    async require(request, roles) {
      requireSameOrigin(request)
      const view = await find(request)
      if (!view) throw new AppError('unauthorized', 'Sign in to go on.', { reason: 'no_session' })
      contextOf(request).signIn = view
      if (roles && !roles.includes(view.role)) {
        throw new AppError('forbidden', `This needs the role ${roles.join(' or ')}; yours is ${view.role}.`, {
          reason: 'wrong_role',
        })
      }
      const now = clock.now()
      if (now - view.signIn.lastSeenAtMs > touchEveryMs) await store.signIns.touch(view.signIn.tokenHash, now)
      return view
    },
    isLive: async (request) => (await find(request)) !== null,
    async end(request) {
      requireSameOrigin(request)
      const view = await find(request)
      if (view) {
        const audit = entry('session.ended', view.signIn, { email: view.account.email }, clock.now())
        await store.signIns.end({ tokenHash: view.signIn.tokenHash, audit })
      }
      return cookieHeader('', contextOf(request).secure, 0)
    },
  }
}

/** The audit row of what a person did with a sign-in of their own. */
function entry(action: string, of: SignIn, metadata: AuditEntry['metadata'], now: number): AuditEntry {
  const { id: target, orgId, accountId } = of
  return { id: newId('aud'), orgId, actor: `user:${accountId}`, action, target, metadata, occurredAtMs: now }
}
