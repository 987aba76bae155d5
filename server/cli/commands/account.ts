/** `sightglass account`: creates accounts, lists them, and makes one-time links to set a password. */
import type { Account, Json, OneTimeLink, Role } from '../../../db/contract/store.ts'
import { readEmail } from '../../identity/people/email.ts'
import { checkPasswordRules, hashPassword } from '../../identity/sign-in/password.ts'
import { isoTime } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { newId, newToken, sha256Hex } from '../../ids.ts'
import { limits } from '../../limits.ts'
import { applianceOrgId, requireOrg } from './org.ts'
import { flagOf, textOf, textOrNull, type Params } from '../../runtime/params.ts'
import type { VerbContext } from '../../runtime/verb-context.ts'

/** Without a password the account gets one nobody knows, and a link with which its owner sets the real one. */
export async function createAccount(context: VerbContext, params: Params): Promise<Json> {
  const { store, clock } = context
  const email = readEmail(textOf(params, 'email'))
  const role = textOf(params, 'role') as Role
  const password = textOrNull(params, 'password')
  const org = await requireOrg(store, textOf(params, 'org'))
  if (password !== null) checkPasswordRules(password, email)
  if (await store.accounts.findByEmail(email)) throw emailTaken(email)
  // The first owner runs the appliance too: somebody has to.
  const operator = flagOf(params, 'operator') || (role === 'owner' && !(await store.accounts.ownerExists()))
  const passwordHash = await hashPassword(password ?? newToken())
  const now = clock.now()
  const account: Account = { id: newId('usr'), email, passwordHash, operator, createdAtMs: now }
  const made = password === null ? newPasswordLink(context, account.id) : null
  await store.accounts.create({
    account,
    orgId: org.id,
    role,
    ...(made === null ? {} : { link: made.link }),
    audit: {
      id: newId('aud'),
      orgId: org.id,
      actor: 'cli',
      action: 'account.created',
      target: account.id,
      metadata: { email, role, operator, passwordSet: password !== null },
      occurredAtMs: now,
    },
  })
  const link = made?.shown ?? { link: null, linkExpiresAt: null }
  return { id: account.id, email, role, orgId: org.id, operator, createdAt: isoTime(now), ...link }
}

export async function listAccounts({ store }: VerbContext): Promise<Json> {
  const slugs = new Map((await store.orgs.list()).map((org) => [org.id, org.slug]))
  const accounts = (await store.accounts.list()).map((account) => ({
    id: account.id,
    email: account.email,
    operator: account.operator,
    createdAt: isoTime(account.createdAtMs),
    memberships: account.memberships.map(({ orgId, role }) => ({
      orgId,
      orgSlug: slugs.get(orgId) ?? null,
      role,
    })),
  }))
  return { accounts }
}

export async function makeResetLink(context: VerbContext, params: Params): Promise<Json> {
  const { store, clock } = context
  const email = readEmail(textOf(params, 'email'))
  const known = await store.accounts.findByEmail(email)
  const account = known && (await store.accounts.find(known.id))
  if (!account) {
    throw new AppError('not_found', `There is no account with the e-mail ${email}.`, {
      hint: 'sightglass account list',
    })
  }
  const { link, shown } = newPasswordLink(context, account.id)
  await store.accounts.createLink({
    link,
    audit: {
      id: newId('aud'),
      orgId: account.memberships[0]?.orgId ?? applianceOrgId,
      actor: 'cli',
      action: 'account.reset_link_created',
      target: account.id,
      metadata: { email, expiresAt: shown.linkExpiresAt },
      occurredAtMs: clock.now(),
    },
  })
  return { accountId: account.id, email, ...shown }
}

function newPasswordLink({ clock, baseUrl }: VerbContext, accountId: string) {
  const token = newToken()
  const expiresAtMs = clock.now() + limits.setupLinkMs
  const link: OneTimeLink = { hash: sha256Hex(token), purpose: 'password', accountId, expiresAtMs }
  // Behind the # the token stays out of every request line and log on the way.
  return { link, shown: { link: `${baseUrl}/reset#${token}`, linkExpiresAt: isoTime(expiresAtMs) } }
}

function emailTaken(email: string): AppError {
  return new AppError('conflict', `There is already an account with the e-mail ${email}.`)
}
