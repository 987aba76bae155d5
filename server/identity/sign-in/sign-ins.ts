/** Dashboard sign-ins: begin, find by request, switch organization, end. The store has only the hash of the cookie. */
import { StoreError } from '../../../db/contract/errors.ts'
import { auditEntry } from '../../audit/entry.ts'
import { AppError } from '../../errors.ts'
import { newId, newToken, sha256Hex } from '../../ids.ts'
import { requireJson } from '../../http/body.ts'
import { contextOf } from '../../http/request.ts'
import { limits } from '../../limits.ts'
import { hostName, senderName } from '../../http/address.ts'
import type { AuditEntry, Proof, Role, SignIn, SignInView, Store } from '../../../db/contract/store.ts'
import type { Clock } from '../../clock.ts'

interface HowSignedIn {
  by: 'totp' | 'recovery_code' | 'provider'
  proof?: Proof // used up in the same transaction
  external?: { issuer: string; subject: string }
}

export type Begun = { status: 'done'; cookie: string } | { status: 'used' | 'stale'; cookie: '' }

interface Draft {
  signIn: SignIn
  network: string // of the sender, stored for the account
  cookie: string
}

export interface SignIns {
  /**
   * Starts a sign-in for an account in one organization; `cookie` is the Set-Cookie header. `stale` when
   * `passwordHash` is given and no longer the account's.
   */
  begin(
    request: Request,
    member: { accountId: string; orgId: string; email: string; passwordHash?: string },
    signInMethod?: HowSignedIn,
  ): Promise<Begun>
  /** A sign-in to be stored together with something else, and its Set-Cookie header. */
  draft(request: Request, member: { accountId: string; orgId: string }): Draft
  noteFailure(member: { accountId: string; orgId: string }, metadata: AuditEntry['metadata']): Promise<void>
  /**
   * The active sign-in of a request. Throws 401 `no_session`; 403 for a cross-site request, a missing role, or a
   * missing second factor that the organization requires; 415 for a request that changes something and is no JSON.
   */
  require(request: Request, roles?: readonly Role[]): Promise<SignInView>
  /** The same for a person's own account, with or without that second factor. */
  requirePerson(request: Request): Promise<SignInView>
  /** Whether a request has an active sign-in. */
  isLive(request: Request): Promise<boolean>
  /** Switches to another organization of the account; returns the Set-Cookie header of the new token. */
  switchOrg(request: Request, view: SignInView, orgId: string): Promise<string>
  /** Ends the sign-in of a request, if any; returns the Set-Cookie header that clears the cookie. */
  end(request: Request): Promise<string>
}

const touchEveryMs = 60_000

export function makeSignIns(
  store: Pick<Store, 'signIns' | 'audit'>,
  clock: Clock,
  basePath: string,
): SignIns {
  const scopeOf = (request: Request) => ({ secure: contextOf(request).sender().secure, basePath })
  const find = finder(store, clock, scopeOf)
  const draft: SignIns['draft'] = (request, member) => {
    const token = newToken()
    const cookie = cookieHeader(token, scopeOf(request), limits.signInAbsoluteMs)
    const network = senderName(contextOf(request).sender().address)
    return { signIn: newSignIn(request, { ...member, token, now: clock.now() }), network, cookie }
  }
  const findPerson = personFinder(store, clock, find)
  return {
    draft,
    begin: beginner(store, draft),
    async noteFailure({ accountId, orgId }, metadata) {
      const act = { action: 'session.failed', target: accountId, metadata }
      await store.audit.append(auditEntry({ orgId, actor: `user:${accountId}` }, act, clock.now()))
    },
    async requirePerson(request) {
      const view = await findPerson(request)
      requireJson(request)
      contextOf(request).permit = async () => (await find(request)) !== null
      return view
    },
    async require(request, roles) {
      const view = await findPerson(request)
      if (view.lacksSecondFactor) throw secondFactorRequired()
      if (roles && !roles.includes(view.role)) {
        throw wrongRole(view.role, roles)
      }
      requireJson(request)
      contextOf(request).permit = async () => {
        const current = await find(request)
        const mayStill = current?.lacksSecondFactor === false && current.org.id === view.org.id
        return mayStill && (roles?.includes(current.role) ?? true)
      }
      return view
    },
    isLive: async (request) => (await find(request)) !== null,
    async switchOrg(request, { account, signIn, org }, orgId) {
      const token = newToken()
      const metadata = { email: account.email, from: org.id }
      const act = { action: 'session.switched', target: signIn.id, metadata }
      const audit = auditEntry({ orgId, actor: `user:${account.id}` }, act, clock.now())
      const command = { tokenHash: signIn.tokenHash, newTokenHash: sha256Hex(token), orgId, audit }
      await store.signIns.switchOrg(command).catch((error: unknown) => {
        if (!(error instanceof StoreError) || error.kind !== 'not_found') throw error
        throw new AppError('not_found', 'You are not a member of an organization with this id.')
      })
      const leftMs = signIn.expiresAtMs - clock.now()
      return cookieHeader(token, scopeOf(request), leftMs)
    },
    async end(request) {
      requireSameOrigin(request)
      requireJson(request)
      const view = await find(request)
      if (view) {
        contextOf(request).signIn = view
        const { account, org, signIn } = view
        const act = { action: 'session.ended', target: signIn.id, metadata: { email: account.email } }
        const audit = auditEntry({ orgId: org.id, actor: `user:${account.id}` }, act, clock.now())
        await store.signIns.end({ tokenHash: signIn.tokenHash, audit })
      }
      return cookieHeader('', scopeOf(request), 0)
    },
  }
}

/** Finds the active sign-in of a request from our own pages, and notes when it was last seen. */
function personFinder(
  store: Pick<Store, 'signIns'>,
  clock: Clock,
  find: (request: Request) => Promise<SignInView | null>,
): (request: Request) => Promise<SignInView> {
  return async (request) => {
    requireSameOrigin(request)
    const view = await find(request)
    if (!view) throw new AppError('unauthorized', 'Sign in to continue.', { reason: 'no_session' })
    contextOf(request).signIn = view
    const now = clock.now()
    if (now - view.signIn.lastSeenAtMs > touchEveryMs)
      await store.signIns.touch({ tokenHash: view.signIn.tokenHash, now }).catch(unlessStored)
    return view
  }
}

/** Ignores failed writes, because people must be able to sign in and read data while the disk is full. */
function unlessStored(error: unknown): void {
  if (!(error instanceof StoreError)) throw error
}

function beginner(store: Pick<Store, 'signIns'>, draft: SignIns['draft']): SignIns['begin'] {
  return async (request, { accountId, orgId, email, passwordHash }, signInMethod) => {
    const { signIn, network, cookie } = draft(request, { accountId, orgId })
    const metadata = {
      email,
      address: signIn.address,
      ...(signInMethod === undefined ? {} : { by: signInMethod.by }),
    }
    const act = { action: 'session.created', target: signIn.id, metadata }
    const audit = auditEntry({ orgId, actor: `user:${accountId}` }, act, signIn.createdAtMs)
    const { proof, external } = signInMethod ?? {}
    const status = await store.signIns.create({
      signIn: { ...signIn, byProvider: signInMethod?.by === 'provider' },
      network,
      ...(passwordHash === undefined ? {} : { passwordHash }),
      ...(proof ? { proof } : {}),
      ...(external ? { external } : {}),
      audit,
    })
    return status === 'done' ? { status, cookie } : { status, cookie: '' }
  }
}

/** How far a sign-in may be ahead of the clock, so that setting the clock back a little ends none. */
const aheadMsMax = 24 * 3_600_000

/** Finds the active sign-in of a request. */
function finder(
  store: Pick<Store, 'signIns'>,
  clock: Clock,
  scopeOf: (request: Request) => CookieScope,
): (request: Request) => Promise<SignInView | null> {
  return async (request) => {
    const token = readCookie(request.headers.get('cookie'), scopeOf(request))
    if (!token) return null
    const view = await store.signIns.find(sha256Hex(token))
    const now = clock.now()
    if (!view || view.signIn.expiresAtMs <= now) return null
    // Begun while the clock was far ahead; it would be valid for too long.
    if (view.signIn.expiresAtMs - now > limits.signInAbsoluteMs + aheadMsMax) return null
    if (view.signIn.lastSeenAtMs + limits.signInIdleMs <= now) return null
    return view
  }
}

function wrongRole(role: Role, required: readonly Role[]): AppError {
  const message = `This requires the role ${required.join(' or ')}. Your role is ${role}.`
  return new AppError('forbidden', message, { reason: 'wrong_role' })
}

function secondFactorRequired(): AppError {
  return new AppError('forbidden', 'This organization requires a second factor. Your account has none.', {
    reason: 'second_factor_required',
    hint: 'Set one up in the dashboard, or sign in through the identity provider.',
  })
}

function newSignIn(
  request: Request,
  { accountId, orgId, token, now }: { accountId: string; orgId: string; token: string; now: number },
) {
  return {
    id: newId('ses'),
    tokenHash: sha256Hex(token),
    accountId,
    orgId,
    createdAtMs: now,
    lastSeenAtMs: now,
    expiresAtMs: now + limits.signInAbsoluteMs,
    address: contextOf(request).sender().address,
    userAgent: (request.headers.get('user-agent') ?? '').slice(0, 300),
    byProvider: false,
  }
}

/** The cookie is `__Host-` and Secure over https; it has a plain name where the page itself came over http. */
interface CookieScope {
  secure: boolean
  basePath: string
}

/** `__Host-` requires the path /, but with base paths two appliances can share a host. */
function nameOf({ secure, basePath }: CookieScope): string {
  if (!secure) return 'sightglass'
  return basePath === '' ? '__Host-sightglass' : '__Secure-sightglass'
}

export function readCookie(header: string | null, scope: CookieScope): string | null {
  if (!header || header.length > 8_192) return null
  const cookieName = nameOf(scope)
  for (const part of header.split(';')) {
    const [name, value] = part.trim().split('=', 2)
    if (name === cookieName && value && /^[A-Za-z0-9_-]{43}$/.test(value)) return value
  }
  return null
}

/** The Set-Cookie that signs in for `maxAgeMs`; an empty token with 0 signs out. */
export function cookieHeader(token: string, scope: CookieScope, maxAgeMs: number): string {
  const flags = `HttpOnly; SameSite=Lax; Max-Age=${Math.floor(maxAgeMs / 1000)}${scope.secure ? '; Secure' : ''}`
  return `${nameOf(scope)}=${token}; Path=${scope.basePath || '/'}; ${flags}`
}

const safeMethods = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Throws 403 for a cross-site POST: by Sec-Fetch-Site where the browser sends it, else by Origin against Host (OWASP
 * CSRF cheat sheet, the rule of Go 1.25).
 */
export function requireSameOrigin(request: Request): void {
  if (safeMethods.has(request.method)) return
  const site = request.headers.get('sec-fetch-site')
  if (site !== null) {
    if (site === 'same-origin' || site === 'none') return
    throw crossSite()
  }
  const origin = request.headers.get('origin')
  if (origin === null) return // not a browser, which would attach the cookie by itself
  const host = request.headers.get('host')
  const match = /^https?:\/\/(.+)$/.exec(origin)
  if (host === null || !match || match[1]!.toLowerCase() !== host.toLowerCase() || hostName(host) === null) {
    throw crossSite()
  }
}

function crossSite(): AppError {
  return new AppError('forbidden', 'The request came from another site.', {
    hint: 'Behind a reverse proxy, pass the Host header through unchanged.',
  })
}
