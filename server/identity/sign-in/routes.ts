/** Routes of sessions: the first owner's setup, sign-in, invitations, password reset, sign-out, current session. */
import { Elysia } from 'elysia'
import { createFirstOwner } from '../people/first-owner.ts'
import { AppError } from '../../errors.ts'
import { json } from '../../http/response.ts'
import { contextOf, readQuery } from '../../http/request.ts'
import { readFields } from '../../http/validate.ts'
import { newId, sha256Hex } from '../../ids.ts'
import { checkPasswordRules, hashPassword } from './password.ts'
import { requireSameOrigin, type Begun, type SignIns } from './sign-ins.ts'
import { addressOf, isLoopbackHost, senderName } from '../../http/address.ts'
import { acceptInvitation, invitationOver, openInvitation, type OpenInvitation } from '../people/members.ts'
import { proofOf, seedPurpose, type HalfSignIns, type Who } from './second-factor.ts'
import { checkPassword, signInWithPassword, throttledNames } from './sign-in.ts'
import type { SignInView, Store } from '../../../db/contract/store.ts'
import type { Provider } from './provider-routes.ts'
import type { Clock } from '../../clock.ts'
import type { LinkThrottle, Throttle } from './throttle.ts'
import type { SecretBox } from '../../system/encryption.ts'

interface AuthRoutesServices {
  store: Store
  clock: Clock
  version: string
  publicUrl: string | null
  basePath: string
  signIns: SignIns
  linkThrottle: LinkThrottle
  provider: Provider | null
}

const unparsed = { parse: 'none' } as const

export function authRoutes(services: AuthRoutesServices) {
  const { store, clock, signIns } = services
  return new Elysia()
    .get('/api/setup', async ({ request }) => {
      readQuery(request, {})
      // With `signedIn` the page need not call /api/session, whose 401 the browser would log as an error.
      const signedIn = await signIns.isLive(request)
      const needsOwner = !(await store.accounts.ownerExists())
      return json({ needsOwner, signedIn, provider: services.provider?.name ?? null })
    })
    .post(
      '/api/setup',
      async ({ request }) => {
        requireSameOrigin(request)
        const fields = { token: 'text', email: 'text', password: 'text' } as const
        const { token, email, password } = await readFields(request, fields)
        const { signIn, cookie } = drafted(signIns, request)
        const claim = { email, password, linkHash: sha256Hex(token), signIn, actor: 'system' }
        const firstOwner = await createFirstOwner(store, claim, clock)
        if (firstOwner.status === 'link_invalid') throw linkRefused(services, request, linkInvalid())
        if (firstOwner.status === 'owner_exists')
          throw new AppError('conflict', 'This setup link was used. The appliance already has an owner.', {
            hint: 'Sign in. If the password is lost, run “sightglass account reset-password” on the server.',
          })
        return sessionResponse(services, request, cookie(), 201)
      },
      unparsed,
    )
    .post(
      '/api/sign-out',
      async ({ request }) => {
        const cookie = await signIns.end(request)
        return new Response(null, { status: 204, headers: { 'set-cookie': cookie } })
      },
      unparsed,
    )
    .post(
      '/api/reset-password',
      async ({ request }) => {
        requireSameOrigin(request)
        const { token, password } = await readFields(request, { token: 'text', password: 'text' })
        await resetPassword(services, request, token, password)
        return new Response(null, { status: 204 })
      },
      unparsed,
    )
    .get('/api/session', async ({ request }) => {
      readQuery(request, {})
      return json(sessionView(services, request, await signIns.requirePerson(request)))
    })
    .post(
      '/api/session/org',
      async ({ request }) => {
        const view = await signIns.requirePerson(request)
        const { orgId } = await readFields(request, { orgId: 'text' })
        const cookie = await signIns.switchOrg(request, view, orgId)
        return sessionResponse(services, request, cookie)
      },
      unparsed,
    )
}

/** Routes of signing in: by password, then by code if the account has a second factor; or by invitation link. */
interface SignInRoutesServices extends AuthRoutesServices {
  throttle: Throttle
  halfSignIns: HalfSignIns
  webhooks: { box: SecretBox } // encrypts seeds of second factors too
}

export function signInRoutes(services: SignInRoutesServices) {
  return new Elysia()
    .post(
      '/api/sign-in',
      async ({ request }) => {
        requireSameOrigin(request)
        const { email, password } = await readFields(request, { email: 'text', password: 'text' })
        const member = await signInWithPassword(
          services,
          email,
          password,
          contextOf(request).sender().address,
        )
        return begin(services, request, member)
      },
      unparsed,
    )
    .post(
      '/api/sign-in/code',
      async ({ request }) => {
        requireSameOrigin(request)
        const { token, code } = await readFields(request, { token: 'text', code: 'text' })
        return withCode(services, request, token, code)
      },
      unparsed,
    )
    .post(
      '/api/invitations/look',
      async ({ request }) => {
        requireSameOrigin(request)
        const { token } = await readFields(request, { token: 'text' })
        const { invitation, orgName, account } = await requireInvitation(services, request, token)
        const { email, role } = invitation
        return json({ email, role, orgName, hasAccount: account !== null })
      },
      unparsed,
    )
    .post(
      '/api/invitations/accept',
      async ({ request }) => {
        requireSameOrigin(request)
        const { token, password } = await readFields(request, { token: 'text', password: 'text' })
        return accept(services, request, await requireInvitation(services, request, token), password)
      },
      unparsed,
    )
}

async function requireInvitation(
  services: SignInRoutesServices,
  request: Request,
  token: string,
): Promise<OpenInvitation> {
  const open = await openInvitation(services, token)
  if (open === null) throw linkRefused(services, request, invitationOver())
  return open
}

/** Adds the membership and signs in; an account with a second factor must enter its code afterwards. */
async function accept(
  services: SignInRoutesServices,
  request: Request,
  open: OpenInvitation,
  password: string,
): Promise<Response> {
  const { account } = open
  // The link of an invitation alone must not give access to an existing account.
  if (account !== null) await checkPassword(services, account, password, contextOf(request).sender().address)
  const factor = account && (await services.store.secondFactors.find(account.id))
  const { signIn, cookie } = drafted(services.signIns, request)
  const joined = await acceptInvitation(services, open, password, factor === null ? signIn : null)
  if (factor !== null) return begin(services, request, joined)
  return sessionResponse(services, request, cookie())
}

/** Drafts a sign-in for another command to store; `cookie` is its Set-Cookie header afterwards. */
function drafted(signIns: SignIns, request: Request) {
  let cookie = ''
  const signIn = (member: { accountId: string; orgId: string }) => {
    const draft = signIns.draft(request, member)
    cookie = draft.cookie
    return draft
  }
  return { signIn, cookie: () => cookie }
}

/** A session, or for an account with a second factor a token that proves the password for five minutes. */
async function begin(services: SignInRoutesServices, request: Request, member: Who): Promise<Response> {
  if ((await services.store.secondFactors.find(member.accountId)) !== null)
    return json({ secondFactor: true, token: services.halfSignIns.begin(member) })
  const signInResult = await services.signIns.begin(request, member)
  if (signInResult.status !== 'done') throw passwordChanged()
  return sessionResponse(services, request, signInResult.cookie)
}

async function withCode(
  services: SignInRoutesServices,
  request: Request,
  token: string,
  code: string,
): Promise<Response> {
  const { store, clock, throttle, halfSignIns, signIns, webhooks } = services
  const half = halfSignIns.find(token)
  const account = half && (await store.accounts.find(half.accountId))
  const factor = half && (await store.secondFactors.find(half.accountId))
  if (half === null || factor === null || !account?.passwordHash) throw startAgain()
  if (sha256Hex(account.passwordHash) !== half.passwordDigest) throw startAgain()
  if (!account.memberships.some(({ orgId }) => orgId === half.orgId)) throw startAgain()
  const { accountId, orgId } = half
  const { email, passwordHash } = account
  const { address } = contextOf(request).sender()
  const { names } = await throttledNames(services, { account, email: accountId, address }, 'code')
  let signInResult: Begun | null = null
  const { right, refusedBefore } = await throttle.attempt(names, async () => {
    const proof = proofOf(factor, webhooks.box.decrypt(seedPurpose, factor.encryptedSeed), code, clock.now())
    if (proof === null || !halfSignIns.hold(token)) return false
    const method = 'step' in proof ? 'totp' : 'recovery_code'
    try {
      signInResult = await signIns.begin(
        request,
        { accountId, orgId, email, passwordHash },
        { proof, by: method },
      )
    } finally {
      if (signInResult?.status !== 'done') halfSignIns.release(token)
    }
    return signInResult.status !== 'used'
  })
  if (!right || signInResult === null) {
    const refused = refusedBefore > 0 ? { refusedBefore } : {}
    await signIns.noteFailure({ accountId, orgId }, { email, address, at: 'second factor', ...refused })
    throw new AppError('unauthorized', 'The code is wrong or was already used.', { reason: 'no_session' })
  }
  const { status, cookie } = signInResult as Begun
  if (status !== 'done') throw startAgain()
  return sessionResponse(services, request, cookie)
}

function startAgain(): AppError {
  return new AppError('unauthorized', 'This sign-in expired, or the password was changed. Sign in again.', {
    reason: 'no_session',
  })
}

function passwordChanged(): AppError {
  return new AppError('unauthorized', 'The password was changed. Sign in again.', {
    reason: 'no_session',
  })
}

/** Checks the link before the password is hashed, because hashing is expensive. */
async function resetPassword(
  services: AuthRoutesServices,
  request: Request,
  token: string,
  password: string,
): Promise<void> {
  const { accounts } = services.store
  const linkHash = sha256Hex(token)
  const link = await accounts.findLink({ hash: linkHash, now: services.clock.now() })
  if (link?.purpose !== 'password' || link.accountId === null)
    throw linkRefused(services, request, passwordLinkInvalid())
  const account = await accounts.find(link.accountId)
  checkPasswordRules(password, account?.email ?? '')
  const passwordHash = await hashPassword(password)
  const { address } = contextOf(request).sender()
  const reset = { linkHash, passwordHash, address, network: senderName(address) }
  const command = { ...reset, now: services.clock.now(), auditId: newId('aud') }
  if ((await accounts.resetPassword(command)) === 'link_invalid') throw passwordLinkInvalid()
}

/** Throttles guesses at links by sender, separately from sign-ins; a valid link is never throttled. */
function linkRefused({ linkThrottle }: AuthRoutesServices, request: Request, refusal: AppError): AppError {
  linkThrottle.unknown(senderName(contextOf(request).sender().address))
  return refusal
}

function passwordLinkInvalid(): AppError {
  return new AppError('forbidden', 'This password link has been used or has expired.', {
    hint: 'If you set a new password with it, sign in. Otherwise run “sightglass account reset-password” for a new link.',
  })
}

function linkInvalid(): AppError {
  return new AppError('forbidden', 'This link has been used or has expired.', {
    hint: 'On the server, restart the appliance for a new setup link, or run “sightglass account”.',
  })
}

type SessionViewServices = Pick<AuthRoutesServices, 'store' | 'version' | 'publicUrl' | 'basePath'>

/** The response that begins the session of `cookie`, a new Set-Cookie header. */
async function sessionResponse(
  services: SessionViewServices,
  request: Request,
  cookie: string,
  status = 200,
): Promise<Response> {
  const token = cookie.slice(cookie.indexOf('=') + 1, cookie.indexOf(';'))
  const view = await services.store.signIns.find(sha256Hex(token))
  if (!view) throw new Error('invariant: a new sign-in is stored')
  return json(sessionView(services, request, view), status, { 'set-cookie': cookie })
}

/** The session as the dashboard sees it. */
function sessionView(
  { version, ...addressServices }: SessionViewServices,
  request: Request,
  { account, org, role, lacksSecondFactor }: SignInView,
) {
  const { secure } = contextOf(request).sender()
  return {
    account: { id: account.id, email: account.email, operator: account.operator },
    org: { id: org.id, slug: org.slug, name: org.name },
    role,
    lacksSecondFactor, // until it has one, only routes of the account itself respond
    version,
    ingestUrl: addressOf(request, addressServices),
    insecure: !secure && !isLoopbackHost(request.headers.get('host')),
  }
}

export type SessionView = ReturnType<typeof sessionView>
