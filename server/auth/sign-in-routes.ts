/** Signing in: by password, then by code where the account has a second factor; and by the link of an invitation. */
import { Elysia } from 'elysia'
import { acceptInvitation, openInvitation } from '../accounts/invitations.ts'
import { AppError } from '../errors.ts'
import { json } from '../http/answer.ts'
import { contextOf } from '../http/context.ts'
import { readMembers } from '../http/members.ts'
import { limits } from '../limits.ts'
import type { Parts } from '../parts.ts'
import { requireSameOrigin } from './same-origin.ts'
import { proofOf, seedPurpose } from './second-factor.ts'
import { sessionOf } from './session-view.ts'
import { checkPassword, signInWithPassword, type Who } from './sign-in.ts'
import { senderName } from './throttle.ts'

const unparsed = { parse: 'none' } as const
const purpose = 'second-factor'

interface Half extends Who {
  untilMs: number
}

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
        const { invitation, orgName, account } = await openInvitation(parts, token)
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
        const open = await openInvitation(parts, token)
        // Whoever holds the link of somebody else's invitation must not get into their account with it.
        if (open.account !== null)
          await checkPassword(parts, open.account, password, contextOf(request).address)
        const { email } = await acceptInvitation(parts, open, password)
        return json({ email, hadAccount: open.account !== null })
      },
      unparsed,
    )
}

/** A session, or, where a second factor is set, a token that stands for the password for five minutes. */
export async function begin(parts: Parts, request: Request, who: Who): Promise<Response> {
  if ((await parts.store.secondFactors.find(who.accountId)) !== null) {
    const half: Half = { ...who, untilMs: parts.clock.now() + limits.secondFactorMs }
    return json({ secondFactor: true, token: parts.seal.close(purpose, half) })
  }
  const { cookie } = await parts.signIns.begin(request, who)
  return json(await sessionOf(parts, request, cookie), 200, { 'set-cookie': cookie })
}

async function withCode(parts: Parts, request: Request, token: string, code: string): Promise<Response> {
  const { store, clock, throttle, seal, signIns, webhooks } = parts
  const half = seal.open(purpose, token) as Half | null
  const factor = half && half.untilMs > clock.now() ? await store.secondFactors.find(half.accountId) : null
  if (half === null || factor === null) {
    throw new AppError('unauthorized', 'The code was asked for too long ago; sign in again.', {
      reason: 'no_session',
    })
  }
  const names = [`code ${half.accountId}`, `sender ${senderName(contextOf(request).address)}`]
  throttle.require(names)
  const proof = proofOf(factor, webhooks.box.open(seedPurpose, factor.sealedSeed), code, clock.now())
  const begun =
    proof && (await signIns.begin(request, half, { proof, by: 'step' in proof ? 'totp' : 'recovery_code' }))
  if (!begun || begun.status === 'used') {
    for (const name of names) throttle.failed(name)
    const { accountId, orgId, email } = half
    const metadata = { email, address: contextOf(request).address, at: 'second factor' }
    await signIns.noteFailure({ accountId, orgId }, metadata)
    throw new AppError('unauthorized', 'The code is wrong or was used before.', { reason: 'no_session' })
  }
  for (const name of names) throttle.succeeded(name)
  const { cookie } = begun
  return json(await sessionOf(parts, request, cookie), 200, { 'set-cookie': cookie })
}
