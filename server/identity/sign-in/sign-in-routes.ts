/** Signing in: by password, then by code where the account has a second factor; and by the link of an invitation. */
import { Elysia } from 'elysia'
import { acceptInvitation, invitationOver, openInvitation } from '../people/invitations.ts'
import type { OpenInvitation } from '../people/invitations.ts'
import { AppError } from '../../errors.ts'
import { json } from '../../http/response.ts'
import { contextOf } from '../../http/request-context.ts'
import { readMembers } from '../../http/body-fields.ts'
import type { Parts } from '../../services.ts'
import type { Who } from './half-sign-ins.ts'
import { linkRefused } from './routes.ts'
import { requireSameOrigin } from '../same-origin.ts'
import { proofOf, seedPurpose } from './second-factor.ts'
import { sessionOf } from './session-view.ts'
import { checkPassword, signInWithPassword, throttledNames } from './sign-in.ts'
import type { Begun } from './sign-ins.ts'

const unparsed = { parse: 'none' } as const

export function signInRoutes(parts: Parts) {
  return new Elysia()
    .post(
      '/api/sign-in',
      async ({ request }) => {
        requireSameOrigin(request)
        const { email, password } = await readMembers(request, { email: 'text', password: 'text' })
        const who = await signInWithPassword(parts, email, password, contextOf(request).address)
        return begin(parts, request, who)
      },
      unparsed,
    )
    .post(
      '/api/sign-in/code',
      async ({ request }) => {
        requireSameOrigin(request)
        const { token, code } = await readMembers(request, { token: 'text', code: 'text' })
        return withCode(parts, request, token, code)
      },
      unparsed,
    )
    .post(
      '/api/invitations/look',
      async ({ request }) => {
        requireSameOrigin(request)
        const { token } = await readMembers(request, { token: 'text' })
        const { invitation, orgName, account } = await requireInvitation(parts, request, token)
        const { email, role } = invitation
        return json({ email, role, orgName, hasAccount: account !== null })
      },
      unparsed,
    )
    .post(
      '/api/invitations/accept',
      async ({ request }) => {
        requireSameOrigin(request)
        const { token, password } = await readMembers(request, { token: 'text', password: 'text' })
        return accept(parts, request, await requireInvitation(parts, request, token), password)
      },
      unparsed,
    )
}

async function requireInvitation(parts: Parts, request: Request, token: string): Promise<OpenInvitation> {
  const open = await openInvitation(parts, token)
  if (open === null) throw await linkRefused(parts, request, invitationOver())
  return open
}

/** Joins and signs in; an account with a second factor joins, and is asked for its code. */
async function accept(
  parts: Parts,
  request: Request,
  open: OpenInvitation,
  password: string,
): Promise<Response> {
  const { account } = open
  // Whoever holds the link of somebody else's invitation must not get into their account with it.
  if (account !== null) await checkPassword(parts, account, password, contextOf(request).address)
  const factor = account && (await parts.store.secondFactors.find(account.id))
  let cookie = ''
  const signIn = (who: { accountId: string; orgId: string }) => {
    const draft = parts.signIns.draft(request, who)
    cookie = draft.cookie
    return draft
  }
  const joined = await acceptInvitation(parts, open, password, factor === null ? signIn : null)
  if (factor !== null) return begin(parts, request, joined)
  return json(await sessionOf(parts, request, cookie), 200, { 'set-cookie': cookie })
}

/** A session, or, where a second factor is set, a token that stands for the password for five minutes. */
export async function begin(parts: Parts, request: Request, who: Who): Promise<Response> {
  if ((await parts.store.secondFactors.find(who.accountId)) !== null)
    return json({ secondFactor: true, token: parts.halfSignIns.begin(who) })
  const begun = await parts.signIns.begin(request, who)
  if (begun.status !== 'done') throw passwordChanged()
  return json(await sessionOf(parts, request, begun.cookie), 200, { 'set-cookie': begun.cookie })
}

async function withCode(parts: Parts, request: Request, token: string, code: string): Promise<Response> {
  const { store, clock, throttle, halfSignIns, signIns, webhooks } = parts
  const half = halfSignIns.find(token)
  const account = half && (await store.accounts.find(half.accountId))
  const factor = half && (await store.secondFactors.find(half.accountId))
  if (half === null || factor === null || account?.passwordHash !== half.passwordHash) throw startAgain()
  if (!account.memberships.some(({ orgId }) => orgId === half.orgId)) throw startAgain()
  const { accountId, orgId, email } = half
  const { address } = contextOf(request)
  const { names } = await throttledNames(parts, { account, email: accountId, address }, 'code')
  let begun: Begun | null = null
  const { right, refusedBefore } = await throttle.attempt(names, async () => {
    const proof = proofOf(factor, webhooks.box.open(seedPurpose, factor.sealedSeed), code, clock.now())
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
    throw new AppError('unauthorized', 'The code is wrong or was used before.', { reason: 'no_session' })
  }
  const { status, cookie } = begun as Begun
  if (status !== 'done') throw startAgain()
  return json(await sessionOf(parts, request, cookie), 200, { 'set-cookie': cookie })
}

function startAgain(): AppError {
  return new AppError('unauthorized', 'This sign-in took too long or its password changed. Sign in again.', {
    reason: 'no_session',
  })
}

function passwordChanged(): AppError {
  return new AppError('unauthorized', 'The password was changed meanwhile. Sign in again.', {
    reason: 'no_session',
  })
}
