/** Routes of signing in: by password, then by code if the account has a second factor; or by invitation link. */
import { Elysia } from 'elysia'
import {
  acceptInvitation,
  invitationOver,
  openInvitation,
  type OpenInvitation,
} from '../people/invitations.ts'
import { AppError } from '../../errors.ts'
import { json } from '../../http/response.ts'
import { contextOf } from '../../http/request.ts'
import { readFields } from '../../http/validate.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { Provider } from './provider.ts'
import type { Throttle } from './throttle.ts'
import type { Clock } from '../../clock.ts'
import type { Webhooks } from '../../webhooks/start.ts'
import type { Who, HalfSignIns } from './half-sign-ins.ts'
import { linkRefused } from './routes.ts'
import { requireSameOrigin } from '../same-origin.ts'
import { proofOf, seedPurpose } from './second-factor.ts'
import { sessionOf } from './session-view.ts'
import { checkPassword, signInWithPassword, throttledNames } from './sign-in.ts'
import type { Begun, SignIns } from './sign-ins.ts'

export interface SignInRoutesServices {
  store: Store
  clock: Clock
  version: string
  publicUrl: string | null
  basePath: string
  signIns: SignIns
  throttle: Throttle
  linkThrottle: Throttle
  halfSignIns: HalfSignIns
  provider: Provider | null
  webhooks: Webhooks
}

const unparsed = { parse: 'none' } as const

export function signInRoutes(services: SignInRoutesServices) {
  return new Elysia()
    .post(
      '/api/sign-in',
      async ({ request }) => {
        requireSameOrigin(request)
        const { email, password } = await readFields(request, { email: 'text', password: 'text' })
        const who = await signInWithPassword(services, email, password, contextOf(request).address)
        return begin(services, request, who)
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
  if (open === null) throw await linkRefused(services, request, invitationOver())
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
  if (account !== null) await checkPassword(services, account, password, contextOf(request).address)
  const factor = account && (await services.store.secondFactors.find(account.id))
  let cookie = ''
  const signIn = (who: { accountId: string; orgId: string }) => {
    const draft = services.signIns.draft(request, who)
    cookie = draft.cookie
    return draft
  }
  const joined = await acceptInvitation(services, open, password, factor === null ? signIn : null)
  if (factor !== null) return begin(services, request, joined)
  return json(await sessionOf(services, request, cookie), 200, { 'set-cookie': cookie })
}

/** A session, or for an account with a second factor a token that proves the password for five minutes. */
async function begin(services: SignInRoutesServices, request: Request, who: Who): Promise<Response> {
  if ((await services.store.secondFactors.find(who.accountId)) !== null)
    return json({ secondFactor: true, token: services.halfSignIns.begin(who) })
  const begun = await services.signIns.begin(request, who)
  if (begun.status !== 'done') throw passwordChanged()
  return json(await sessionOf(services, request, begun.cookie), 200, { 'set-cookie': begun.cookie })
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
  if (half === null || factor === null || account?.passwordHash !== half.passwordHash) throw startAgain()
  if (!account.memberships.some(({ orgId }) => orgId === half.orgId)) throw startAgain()
  const { accountId, orgId, email } = half
  const { address } = contextOf(request)
  const { names } = await throttledNames(services, { account, email: accountId, address }, 'code')
  let begun: Begun | null = null
  const { right, refusedBefore } = await throttle.attempt(names, async () => {
    const proof = proofOf(factor, webhooks.box.decrypt(seedPurpose, factor.sealedSeed), code, clock.now())
    if (proof === null || !halfSignIns.hold(token)) return false
    const by = 'step' in proof ? 'totp' : 'recovery_code'
    try {
      begun = await signIns.begin(request, half, { proof, by })
    } finally {
      if (begun?.status !== 'done') halfSignIns.release(token)
    }
    return begun.status !== 'used'
  })
  if (!right || begun === null) {
    const refused = refusedBefore > 0 ? { refusedBefore } : {}
    await signIns.noteFailure({ accountId, orgId }, { email, address, at: 'second factor', ...refused })
    throw new AppError('unauthorized', 'The code is wrong or was already used.', { reason: 'no_session' })
  }
  const { status, cookie } = begun as Begun
  if (status !== 'done') throw startAgain()
  return json(await sessionOf(services, request, cookie), 200, { 'set-cookie': cookie })
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
