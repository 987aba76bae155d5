/** Routes of the first owner's setup, password reset, the current session and sign-out. */
import { Elysia } from 'elysia'
import { createFirstOwner, type FirstOwnerRequest } from '../people/first-owner.ts'
import { AppError } from '../../errors.ts'
import { json } from '../../http/response.ts'
import { contextOf, readQuery } from '../../http/request.ts'
import { readFields } from '../../http/validate.ts'
import { newId, sha256Hex } from '../../ids.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { Provider } from './provider.ts'
import type { SignIns } from './sign-ins.ts'
import type { Clock } from '../../clock.ts'
import { checkPasswordRules, hashPassword } from './password.ts'
import { requireSameOrigin } from '../same-origin.ts'
import { sessionOf, sessionView } from './session-view.ts'
import { senderName } from '../../http/address.ts'
import type { Throttle } from './throttle.ts'

export interface AuthRoutesServices {
  store: Store
  clock: Clock
  version: string
  publicUrl: string | null
  basePath: string
  signIns: SignIns
  linkThrottle: Throttle
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
        const members = { token: 'text', email: 'text', password: 'text' } as const
        const { token, email, password } = await readFields(request, members)
        let cookie = ''
        const signIn: FirstOwnerRequest['signIn'] = (who) => {
          const draft = signIns.draft(request, who)
          cookie = draft.cookie
          return draft
        }
        const claim = { email, password, linkHash: sha256Hex(token), signIn, actor: 'system' }
        const made = await createFirstOwner(store, claim, clock)
        if (made.status === 'link_invalid') throw await linkRefused(services, request, linkInvalid())
        if (made.status === 'owner_exists')
          throw new AppError('conflict', 'This setup link was used. The appliance already has an owner.', {
            hint: 'Sign in. If the password is lost, run “sightglass account reset-password” on the server.',
          })
        return json(await sessionOf(services, request, cookie), 201, { 'set-cookie': cookie })
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
        return json(await sessionOf(services, request, cookie), 200, { 'set-cookie': cookie })
      },
      unparsed,
    )
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
    throw await linkRefused(services, request, passwordLinkInvalid())
  const account = await accounts.find(link.accountId)
  checkPasswordRules(password, account?.email ?? '')
  const passwordHash = await hashPassword(password)
  const { address } = contextOf(request)
  const reset = { linkHash, passwordHash, address, network: senderName(address) }
  const command = { ...reset, now: services.clock.now(), auditId: newId('aud') }
  if ((await accounts.resetPassword(command)) === 'link_invalid') throw passwordLinkInvalid()
}

/** Throttles guesses at links by sender, separately from sign-ins; a valid link is never throttled. */
export async function linkRefused(
  { linkThrottle }: AuthRoutesServices,
  request: Request,
  refusal: AppError,
): Promise<AppError> {
  await linkThrottle.attempt([senderName(contextOf(request).address)], () => Promise.resolve(false))
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
