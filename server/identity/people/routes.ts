/** Routes of Settings → Your account and Settings → People: password, second factor, sign-ins, members, invitations. */
import { Elysia } from 'elysia'
import { auditEntry } from '../../audit/entry.ts'
import { checkPasswordRules, hashPassword } from '../sign-in/password.ts'
import { newRecoveryCodes, newSeed, seedPurpose, stepOf } from '../sign-in/second-factor.ts'
import { confirmPassword } from '../sign-in/sign-in.ts'
import { isoTime, type Clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { json } from '../../http/response.ts'
import { contextOf, readQuery } from '../../http/request.ts'
import { readFields, wrongField } from '../../http/validate.ts'
import { limits } from '../../limits.ts'
import { rolesOf } from '../permissions.ts'
import { addressOf } from '../../http/address.ts'
import { canonicalPassword } from '../../text/secret-text.ts'
import {
  changeRole,
  invite,
  listMembers,
  readRole,
  removeMember,
  revokeInvitation,
  type Acting,
} from './members.ts'
import type { Invitation, Json, SignIn, SignInView, Store } from '../../../db/contract/store.ts'
import type { SignIns } from '../sign-in/sign-ins.ts'
import type { Throttle } from '../sign-in/throttle.ts'
import type { Cipher } from '../../system/encryption.ts'
import type { SecretBox } from '../../system/encryption.ts'

interface AccountRoutesServices {
  store: Store
  clock: Clock
  signIns: SignIns
  throttle: Throttle
  briefCipher: Cipher
  webhooks: { box: SecretBox } // encrypts seeds of second factors too
}

const unparsed = { parse: 'none' } as const
const noContent = () => new Response(null, { status: 204 })
const purpose = 'new-totp-seed'

interface Draft {
  accountId: string
  seed: string
  untilMs: number
}

export function accountRoutes(services: AccountRoutesServices) {
  const { store, signIns } = services
  return new Elysia()
    .get('/api/account', async ({ request }) => {
      const view = await signIns.requirePerson(request)
      readQuery(request, {})
      const factor = await store.secondFactors.find(view.account.id)
      const live = (await store.signIns.list(view.account.id)).map((listedSignIn) =>
        signInView(listedSignIn, view),
      )
      const secondFactor = factor && { since: isoTime(factor.sinceMs), recoveryLeft: factor.recoveryLeft }
      return json({ email: view.account.email, secondFactor, signIns: live })
    })
    .post('/api/account/password', ({ request }) => changePassword(services, request), unparsed)
    .post(
      '/api/account/sign-ins/:id/end',
      async ({ request, params }) => {
        const view = await signIns.requirePerson(request)
        await readFields(request, {})
        const accountId = view.account.id
        const audit = entry(services, view, 'session.revoked', params.id)
        await store.signIns.endById({ accountId, id: params.id, audit })
        return noContent()
      },
      unparsed,
    )
    .post(
      '/api/account/sign-ins/end-others',
      async ({ request }) => {
        const view = await signIns.requirePerson(request)
        await readFields(request, {})
        const { account, signIn } = view
        const audit = entry(services, view, 'session.others_revoked', account.id)
        const ended = await store.signIns.endOthers({
          accountId: account.id,
          keepTokenHash: signIn.tokenHash,
          audit,
        })
        return json({ ended })
      },
      unparsed,
    )
    .use(secondFactorRoutes(services))
}

function secondFactorRoutes(services: AccountRoutesServices) {
  const { store, signIns, briefCipher, clock, webhooks } = services
  return new Elysia()
    .post(
      '/api/account/second-factor/begin',
      async ({ request }) => {
        const { account } = await signIns.requirePerson(request)
        await readFields(request, {})
        const { seed, uri } = newSeed(account.email)
        const draft: Draft = { accountId: account.id, seed, untilMs: clock.now() + 4 * limits.secondFactorMs }
        return json({ seed, uri, token: briefCipher.encrypt(purpose, draft) })
      },
      unparsed,
    )
    .post(
      '/api/account/second-factor',
      async ({ request }) => {
        const view = await signIns.requirePerson(request)
        const fields = { token: 'text', code: 'text', password: 'text' } as const
        const { token, code, password } = await readFields(request, fields)
        await confirmPassword(services, view.account, password, contextOf(request).sender().address)
        const draft = briefCipher.decrypt(purpose, token) as Draft | null
        const now = clock.now()
        if (draft === null || draft.accountId !== view.account.id || draft.untilMs <= now)
          throw wrongField('token', 'This setup has expired. Start again.')
        const step = stepOf(draft.seed, code.replace(/\s/g, ''), now)
        if (step === null) throw wrongField('code', 'This is not the current code of the app.')
        const { codes, hashes } = newRecoveryCodes()
        const encryptedSeed = webhooks.box.encrypt(seedPurpose, draft.seed)
        await store.secondFactors.set({
          factor: { accountId: view.account.id, encryptedSeed, lastStep: step, sinceMs: now },
          recoveryHashes: hashes,
          audit: entry(services, view, 'account.second_factor_set', view.account.id),
        })
        return json({ recoveryCodes: codes })
      },
      unparsed,
    )
    .post(
      '/api/account/second-factor/recovery-codes',
      async ({ request }) => {
        const view = await withPassword(services, request)
        const { codes, hashes } = newRecoveryCodes()
        const audit = entry(services, view, 'account.recovery_codes_made', view.account.id)
        await store.secondFactors.setRecovery({ accountId: view.account.id, recoveryHashes: hashes, audit })
        return json({ recoveryCodes: codes })
      },
      unparsed,
    )
    .post(
      '/api/account/second-factor/remove',
      async ({ request }) => {
        const view = await withPassword(services, request)
        await requireRemovable(services, view.account.id)
        const audit = entry(services, view, 'account.second_factor_removed', view.account.id)
        await store.secondFactors.remove({ accountId: view.account.id, audit })
        return noContent()
      },
      unparsed,
    )
}

/** 409 while an organization of the account requires a second factor, because the account would lose access to it. */
async function requireRemovable({ store }: AccountRoutesServices, accountId: string): Promise<void> {
  for (const { orgId } of (await store.accounts.find(accountId))?.memberships ?? []) {
    if (!(await store.orgs.signInRule(orgId)).secondFactorRequired) continue
    const name = (await store.orgs.find(orgId))?.name ?? orgId
    throw new AppError('conflict', `The organization ${name} requires a second factor.`, {
      hint: 'Set up a new app to replace it instead.',
    })
  }
}

/** Requires the password, because an unattended browser must not be enough to change how an account is protected. */
async function withPassword(services: AccountRoutesServices, request: Request): Promise<SignInView> {
  const view = await services.signIns.requirePerson(request)
  const { password } = await readFields(request, { password: 'text' })
  await confirmPassword(services, view.account, password, contextOf(request).sender().address)
  return view
}

async function changePassword(services: AccountRoutesServices, request: Request): Promise<Response> {
  const view = await services.signIns.requirePerson(request)
  const { account, signIn } = view
  const { current, password } = await readFields(request, { current: 'text', password: 'text' })
  checkPasswordRules(password, account.email)
  if (canonicalPassword(current) === canonicalPassword(password))
    throw new AppError('conflict', 'The new password must differ from the current one.')
  await confirmPassword(services, account, current, contextOf(request).sender().address)
  await services.store.accounts.setPassword({
    accountId: account.id,
    passwordHash: await hashPassword(password, 'known'),
    keepTokenHash: signIn.tokenHash,
    audit: entry(services, view, 'account.password_changed', account.id),
  })
  return noContent()
}

function entry(
  { clock }: AccountRoutesServices,
  { account, org }: SignInView,
  action: string,
  target: string,
) {
  const metadata: { [name: string]: Json } = { email: account.email }
  return auditEntry({ orgId: org.id, actor: `user:${account.id}` }, { action, target, metadata }, clock.now())
}

function signInView(listedSignIn: SignIn, { signIn }: SignInView) {
  const { id, address, userAgent, createdAtMs, lastSeenAtMs, expiresAtMs } = listedSignIn
  return {
    id,
    address,
    userAgent,
    createdAt: isoTime(createdAtMs),
    lastSeenAt: isoTime(lastSeenAtMs),
    expiresAt: isoTime(expiresAtMs),
    current: id === signIn.id,
  }
}

export type OwnSignInView = ReturnType<typeof signInView>

/** Routes of Settings → People: members, their roles, invitations by one-time link. */
interface PeopleRoutesServices {
  store: Store
  clock: Clock
  publicUrl: string | null
  basePath: string
  signIns: SignIns
}

export function peopleRoutes(services: PeopleRoutesServices) {
  const { store, signIns, clock } = services
  const manager = async (request: Request): Promise<Acting> => {
    const { org, account, role } = await signIns.require(request, rolesOf('people.manage'))
    return { orgId: org.id, actor: `user:${account.id}`, role }
  }
  return new Elysia()
    .get('/api/people', async ({ request }) => {
      const { orgId } = await manager(request)
      readQuery(request, {})
      const open = (await store.invitations.list(orgId)).filter(
        (invitation) => invitation.expiresAtMs > clock.now(),
      )
      return json({ members: await listMembers(services, orgId), invitations: open.map(invitationView) })
    })
    .post(
      '/api/people/:id/role',
      async ({ request, params }) => {
        const actor = await manager(request)
        const { role } = await readFields(request, { role: 'text' })
        await changeRole(services, actor, params.id, readRole(role))
        return json({ members: await listMembers(services, actor.orgId) })
      },
      unparsed,
    )
    .post(
      '/api/people/:id/remove',
      async ({ request, params }) => {
        const actor = await manager(request)
        await readFields(request, {})
        await removeMember(services, actor, params.id)
        return json({ members: await listMembers(services, actor.orgId) })
      },
      unparsed,
    )
    .post(
      '/api/invitations',
      async ({ request }) => {
        const actor = await manager(request)
        const { email, role } = await readFields(request, { email: 'text', role: 'text' })
        const { invitation, token } = await invite(services, actor, { email, role: readRole(role) })
        // After the # the token appears in no request line and in no log.
        const link = `${addressOf(request, services)}/invitation#${token}`
        return json({ invitation: invitationView(invitation), link }, 201)
      },
      unparsed,
    )
    .post(
      '/api/invitations/:id/revoke',
      async ({ request, params }) => {
        const actor = await manager(request)
        await readFields(request, {})
        await revokeInvitation(services, actor, params.id)
        return new Response(null, { status: 204 })
      },
      unparsed,
    )
}

function invitationView({ id, email, role, createdAtMs, expiresAtMs }: Invitation) {
  return { id, email, role, createdAt: isoTime(createdAtMs), expiresAt: isoTime(expiresAtMs) }
}

export type InvitationView = ReturnType<typeof invitationView>
