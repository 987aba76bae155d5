/** Sign in, sign out, the first owner's set-up, password reset, and who is signed in. */
import { Elysia } from 'elysia'
import type { SignInView } from '../../db/store.ts'
import { createFirstOwner } from '../accounts/first-owner.ts'
import { AppError, type Issue } from '../errors.ts'
import { json } from '../http/answer.ts'
import { contextOf } from '../http/context.ts'
import { readJsonObject } from '../http/body.ts'
import { readQuery } from '../http/query.ts'
import { newId, sha256Hex } from '../ids.ts'
import { limits } from '../limits.ts'
import type { Parts } from '../parts.ts'
import { checkPasswordRules, hashPassword } from './password.ts'
import { requireSameOrigin } from './same-origin.ts'
import { signInWithPassword } from './sign-in.ts'

export function authRoutes(parts: Parts) {
  const { store, clock, signIns } = parts
  return new Elysia()
    .get('/api/setup', async ({ request }) => {
      readQuery(request, {})
      // `signedIn` spares a visitor's browser the 401 of /api/session, which it would report as an error of the page.
      const signedIn = await signIns.isLive(request)
      return json({ needsOwner: !(await store.accounts.ownerExists()), signedIn })
    })
    .post(
      '/api/setup',
      async ({ request }) => {
        requireSameOrigin(request)
        const { token, email, password } = await readTexts(request, ['token', 'email', 'password'])
        const linkHash = sha256Hex(token!)
        const made = await createFirstOwner(
          store,
          { email: email!, password: password!, linkHash, actor: 'system' },
          clock,
        )
        if (made.status === 'link_invalid') throw linkInvalid()
        if (made.status === 'owner_exists')
          throw new AppError('conflict', 'This appliance already has an owner.')
        const who = { accountId: made.account.id, orgId: made.orgId, email: made.account.email }
        const cookie = await signIns.begin(request, who)
        return json(await sessionOf(parts, request, cookie), 201, { 'set-cookie': cookie })
      },
      { parse: 'none' },
    )
    .post(
      '/api/sign-in',
      async ({ request }) => {
        requireSameOrigin(request)
        const { email, password } = await readTexts(request, ['email', 'password'])
        const who = await signInWithPassword(parts, email!, password!, contextOf(request).address)
        const cookie = await signIns.begin(request, who)
        return json(await sessionOf(parts, request, cookie), 200, { 'set-cookie': cookie })
      },
      { parse: 'none' },
    )
    .post(
      '/api/sign-out',
      async ({ request }) => {
        const cookie = await signIns.end(request)
        return new Response(null, { status: 204, headers: { 'set-cookie': cookie } })
      },
      { parse: 'none' },
    )
    .post(
      '/api/reset-password',
      async ({ request }) => {
        requireSameOrigin(request)
        const { token, password } = await readTexts(request, ['token', 'password'])
        checkPasswordRules(password!, '')
        const passwordHash = await hashPassword(password!)
        const command = { linkHash: sha256Hex(token!), passwordHash, now: clock.now(), auditId: newId('aud') }
        if ((await store.accounts.resetPassword(command)) === 'link_invalid') throw linkInvalid()
        return new Response(null, { status: 204 })
      },
      { parse: 'none' },
    )
    .get('/api/session', async ({ request }) => {
      readQuery(request, {})
      return json(sessionView(parts, request, await signIns.require(request)))
    })
}

/** The session as the dashboard sees it, right after its cookie was made. */
async function sessionOf(parts: Parts, request: Request, cookie: string) {
  const token = cookie.slice(cookie.indexOf('=') + 1, cookie.indexOf(';'))
  const view = await parts.store.signIns.find(sha256Hex(token))
  if (!view) throw new Error('a sign-in just made is not there')
  return sessionView(parts, request, view)
}

function sessionView({ publicUrl, version }: Parts, request: Request, { account, org, role }: SignInView) {
  const { secure, local } = contextOf(request)
  return {
    account: { id: account.id, email: account.email, operator: account.operator },
    org: { id: org.id, slug: org.slug, name: org.name },
    role,
    version,
    ingestUrl: publicUrl ?? new URL(request.url).origin,
    insecure: !secure && !local,
  }
}

function linkInvalid(): AppError {
  return new AppError('forbidden', 'This link has been used or has expired.', {
    hint: 'On the machine itself: restart the appliance for a new set-up link, or run “sightglass account”.',
  })
}

/** Reads the named text members of a small JSON body; throws 400 `invalid_body` naming each that is missing or odd. */
async function readTexts<Name extends string>(
  request: Request,
  names: Name[],
): Promise<Record<Name, string>> {
  const body = await readJsonObject(request, { bytesMax: limits.jsonBodyBytesMax })
  const issues: Issue[] = []
  const out = {} as Record<Name, string>
  for (const name of names) {
    const value = body[name]
    if (value === undefined) issues.push({ path: name, code: 'required', message: `${name} is missing` })
    else if (typeof value !== 'string')
      issues.push({ path: name, code: 'wrong_type', message: `${name} must be text` })
    else if (value.length > 1_000)
      issues.push({ path: name, code: 'too_long', message: `${name} is too long` })
    else out[name] = value
  }
  if (issues.length > 0) throw new AppError('invalid_body', issues[0]!.message, { issues })
  return out
}
