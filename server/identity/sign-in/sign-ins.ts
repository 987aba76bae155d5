/**
 * Dashboard sign-ins: begins one, finds the one behind a request, ends it; the cookie's hash is all the store keeps.
 */
import { StoreError } from '../../../db/contract/errors.ts'
import { auditEntry } from '../../audit/entry.ts'
import { AppError } from '../../errors.ts'
import { newId, newToken, sha256Hex } from '../../ids.ts'
import { contextOf } from '../../http/request-context.ts'
import { limits } from '../../limits.ts'
import { requireSameOrigin } from '../same-origin.ts'
import { senderName } from '../../http/proxy.ts'
import type { AuditEntry, Proof, Role, SignIn, SignInView, Store } from '../../../db/contract/store.ts'
import type { Clock } from '../../clock.ts'

export interface HowSignedIn {
  by: 'totp' | 'recovery_code' | 'provider'
  proof?: Proof // used up in the same transaction
  external?: { issuer: string; subject: string }
}

export type Begun = { status: 'done'; cookie: string } | { status: 'used' | 'stale'; cookie: '' }

export interface Draft {
  signIn: SignIn
  network: string // of the sender, remembered for the account
  cookie: string
}

export interface SignIns {
  /**
   * Starts a sign-in for an account in one organization; `cookie` is the Set-Cookie header. `stale` when
   * `passwordHash` is given and no longer the account's.
   */
  begin(
    request: Request,
    who: { accountId: string; orgId: string; email: string; passwordHash?: string },
    how?: HowSignedIn,
  ): Promise<Begun>
  /** A sign-in to be kept together with something else, by one audit row, and its Set-Cookie header. */
  draft(request: Request, who: { accountId: string; orgId: string }): Draft
  noteFailure(who: { accountId: string; orgId: string }, metadata: AuditEntry['metadata']): Promise<void>
  /**
   * The live sign-in behind a request; throws 401 `no_session`, or 403 for a cross-site or unprivileged one, and for
   * one without the second factor that its organization requires.
   */
  require(request: Request, roles?: readonly Role[]): Promise<SignInView>
  /** The same for what a person may do about their own account, with or without that second factor. */
  requirePerson(request: Request): Promise<SignInView>
  /** Whether there is a live sign-in behind a request. */
  isLive(request: Request): Promise<boolean>
  /** Whether it may still see data; streams ask again while they run. */
  maySee(request: Request): Promise<boolean>
  /** Has the sign-in show another organization of its account; returns the Set-Cookie header, for the token is new. */
  switchOrg(request: Request, view: SignInView, orgId: string): Promise<string>
  /** Ends the sign-in behind a request, if any; returns the Set-Cookie header that clears the cookie. */
  end(request: Request): Promise<string>
}

const touchEveryMs = 60_000

export function makeSignIns(
  store: Pick<Store, 'signIns' | 'audit'>,
  clock: Clock,
  basePath: string,
): SignIns {
  const wayOf = (request: Request) => ({ secure: contextOf(request).secure, basePath })
  const find = finder(store, clock, wayOf)
  const draft: SignIns['draft'] = (request, who) => {
    const token = newToken()
    const cookie = cookieHeader(token, wayOf(request), limits.signInAbsoluteMs)
    const network = senderName(contextOf(request).address)
    return { signIn: newSignIn(request, { ...who, token, now: clock.now() }), network, cookie }
  }
  const requirePerson = async (request: Request): Promise<SignInView> => {
    requireSameOrigin(request)
    const view = await find(request)
    if (!view) throw new AppError('unauthorized', 'Sign in to continue.', { reason: 'no_session' })
    contextOf(request).signIn = view
    const now = clock.now()
    if (now - view.signIn.lastSeenAtMs > touchEveryMs)
      await store.signIns.touch({ tokenHash: view.signIn.tokenHash, now }).catch(unlessStored)
    return view
  }
  return {
    draft,
    begin: beginner(store, draft),
    async noteFailure({ accountId, orgId }, metadata) {
      const act = { action: 'session.failed', target: accountId, metadata }
      await store.audit.append(auditEntry({ orgId, actor: `user:${accountId}` }, act, clock.now()))
    },
    requirePerson,
    async require(request, roles) {
      const view = await requirePerson(request)
      if (view.lacksSecondFactor) throw secondFactorRequired()
      if (roles && !roles.includes(view.role)) {
        throw wrongRole(view.role, roles)
      }
      return view
    },
    isLive: async (request) => (await find(request)) !== null,
    maySee: async (request) => (await find(request))?.lacksSecondFactor === false,
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
      return cookieHeader(token, wayOf(request), leftMs)
    },
    async end(request) {
      requireSameOrigin(request)
      const view = await find(request)
      if (view) {
        contextOf(request).signIn = view
        const { account, org, signIn } = view
        const act = { action: 'session.ended', target: signIn.id, metadata: { email: account.email } }
        const audit = auditEntry({ orgId: org.id, actor: `user:${account.id}` }, act, clock.now())
        await store.signIns.end({ tokenHash: signIn.tokenHash, audit })
      }
      return cookieHeader('', wayOf(request), 0)
    },
  }
}

/** Reads go on when nothing can be written: a full disk must not keep those out who come to look at it. */
function unlessStored(error: unknown): void {
  if (!(error instanceof StoreError)) throw error
}

function beginner(store: Pick<Store, 'signIns'>, draft: SignIns['draft']): SignIns['begin'] {
  return async (request, { accountId, orgId, email, passwordHash }, how) => {
    const { signIn, network, cookie } = draft(request, { accountId, orgId })
    const metadata = { email, address: signIn.address, ...(how === undefined ? {} : { by: how.by }) }
    const act = { action: 'session.created', target: signIn.id, metadata }
    const audit = auditEntry({ orgId, actor: `user:${accountId}` }, act, signIn.createdAtMs)
    const { proof, external } = how ?? {}
    const status = await store.signIns.create({
      signIn: { ...signIn, byProvider: how?.by === 'provider' },
      network,
      ...(passwordHash === undefined ? {} : { passwordHash }),
      ...(proof ? { proof } : {}),
      ...(external ? { external } : {}),
      audit,
    })
    return status === 'done' ? { status, cookie } : { status, cookie: '' }
  }
}

/** A sign-in may be this far ahead of the clock, so that setting it back a little ends nobody's. */
const aheadMsMax = 24 * 3_600_000

/** Finds the living sign-in behind a request. */
function finder(
  store: Pick<Store, 'signIns'>,
  clock: Clock,
  wayOf: (request: Request) => CookieWay,
): (request: Request) => Promise<SignInView | null> {
  return async (request) => {
    const token = readCookie(request.headers.get('cookie'), wayOf(request))
    if (!token) return null
    const view = await store.signIns.find(sha256Hex(token))
    const now = clock.now()
    if (!view || view.signIn.expiresAtMs <= now) return null
    // Begun under a clock that ran ahead: it would live that much longer.
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
    address: contextOf(request).address,
    userAgent: (request.headers.get('user-agent') ?? '').slice(0, 300),
    byProvider: false,
  }
}

/** How the cookie reaches us: over https or not, and below which path of a host that others may share. */
interface CookieWay {
  secure: boolean
  basePath: string
}

/** Browsers take `__Host-` for the whole host only; below a base path two appliances may share one. */
function nameOf({ secure, basePath }: CookieWay): string {
  if (!secure) return 'sightglass'
  return basePath === '' ? '__Host-sightglass' : '__Secure-sightglass'
}

export function readCookie(header: string | null, way: CookieWay): string | null {
  if (!header || header.length > 8_192) return null
  const wanted = nameOf(way)
  for (const part of header.split(';')) {
    const [name, value] = part.trim().split('=', 2)
    if (name === wanted && value && /^[A-Za-z0-9_-]{43}$/.test(value)) return value
  }
  return null
}

/** The Set-Cookie that signs in for `maxAgeMs`; an empty token with 0 signs out. */
export function cookieHeader(token: string, way: CookieWay, maxAgeMs: number): string {
  const flags = `HttpOnly; SameSite=Lax; Max-Age=${Math.floor(maxAgeMs / 1000)}${way.secure ? '; Secure' : ''}`
  return `${nameOf(way)}=${token}; Path=${way.basePath || '/'}; ${flags}`
}
