/** The members of an organization: lists, changes, removes and invites them, by one-time link without a mail server. */
import { auditEntry, type Actor } from '../../audit/entry.ts'
import { isoTime, type Clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { wrongField } from '../../http/validate.ts'
import { limits } from '../../limits.ts'
import { rolesOf } from '../permissions.ts'
import { canonicalEmail, findAccountByEmail } from '../sign-in/email.ts'
import { checkPasswordRules, hashPassword } from '../sign-in/password.ts'
import { unseenProblem } from '../../text/names.ts'
import { newId, newToken, sha256Hex } from '../../ids.ts'
import type { Account, Invitation, Role, SignIn, Store } from '../../../db/contract/store.ts'

const roles: readonly Role[] = ['owner', 'admin', 'analyst', 'viewer']

interface Services {
  store: Pick<Store, 'accounts'>
  clock: Clock
}

interface InvitationServices {
  store: Pick<Store, 'invitations' | 'accounts' | 'orgs'>
  clock: Clock
}

export interface Acting extends Actor {
  role: Role | 'machine' // the command line has every permission
}

export function readRole(text: string): Role {
  const role = roles.find((knownRole) => knownRole === text)
  if (role === undefined) throw wrongField('role', `role must be one of ${roles.join(', ')}`)
  return role
}

/** Strict enough to catch typing errors, not a parser of RFC 5322. */
const emailForm = /^[^\s@,;:<>()[\]\\"\u0000-\u001f\u007f]+@[^\s@,;:<>()[\]\\"\u0000-\u001f\u007f]+$/u

/** The address trimmed, composed and in lower case; throws 400 `invalid_body` when it is invalid. */
export function readEmail(text: string): string {
  const email = canonicalEmail(text)
  const isForm = [...email].length <= limits.emailCharsMax && emailForm.test(email)
  const problem = isForm ? unseenProblem(email) : 'must be an address such as name@example.com'
  if (problem === null) return email
  const message = `email ${problem}.`
  throw new AppError('invalid_body', message, { issues: [{ path: 'email', message, code: 'wrong_format' }] })
}

/** Admins manage members, but only owners manage owners. */
function requireMayGrant({ role }: Acting, ...touched: Role[]): void {
  if (role !== 'admin' || !touched.includes('owner')) return
  throw new AppError('forbidden', 'Only owners can add, change or remove owners.', {
    reason: 'wrong_role',
  })
}

export async function listMembers({ store, clock }: { store: Store; clock: Clock }, orgId: string) {
  const now = clock.now()
  const links = (await store.shareLinks.list(orgId)).filter(
    ({ revokedAtMs, expiresAtMs }) => revokedAtMs === null && expiresAtMs > now,
  )
  const members = (await store.accounts.list()).flatMap((account) => {
    const membership = account.memberships.find((candidate) => candidate.orgId === orgId)
    return membership === undefined ? [] : [{ account, role: membership.role }]
  })
  return Promise.all(
    members.map(async ({ account, role }) => {
      const [factor, signIns] = await Promise.all([
        store.secondFactors.find(account.id),
        store.signIns.list(account.id),
      ])
      const lastSeenAt = signIns[0] === undefined ? null : isoTime(signIns[0].lastSeenAtMs)
      const { id, email, operator, createdAtMs } = account
      return {
        id,
        email,
        role,
        operator,
        createdAt: isoTime(createdAtMs),
        secondFactor: factor !== null,
        lastSeenAt,
        shareLinks: links.filter(({ createdBy }) => createdBy === id).length, // open ones
      }
    }),
  )
}

export type MemberView = Awaited<ReturnType<typeof listMembers>>[number]

/** 409 for the last owner; no effect when the role does not change. Ends the member's sign-ins in the organization. */
export async function changeRole(
  { store, clock }: Services,
  actor: Acting,
  accountId: string,
  role: Role,
): Promise<void> {
  const { account, before: oldRole } = await requireMember(store, actor.orgId, accountId)
  requireMayGrant(actor, oldRole, role)
  if (oldRole === role) return
  const metadata = { email: account.email, before: { role: oldRole }, after: { role } }
  const audit = auditEntry(actor, { action: 'member.role_changed', target: accountId, metadata }, clock.now())
  const endsShareLinks = !rolesOf('share.manage').includes(role)
  const command = { orgId: actor.orgId, accountId, role, endsShareLinks, audit }
  if ((await store.accounts.setRole(command)) === 'last_owner') throw lastOwner()
}

export async function removeMember(
  { store, clock }: Services,
  actor: Acting,
  accountId: string,
): Promise<void> {
  const { account, before: memberRole } = await requireMember(store, actor.orgId, accountId)
  requireMayGrant(actor, memberRole)
  const metadata = { email: account.email, role: memberRole }
  const audit = auditEntry(actor, { action: 'member.removed', target: accountId, metadata }, clock.now())
  if ((await store.accounts.removeMember({ orgId: actor.orgId, accountId, audit })) === 'last_owner')
    throw lastOwner()
}

async function requireMember(
  store: Pick<Store, 'accounts'>,
  orgId: string,
  accountId: string,
): Promise<{ account: Account; before: Role }> {
  const account = await store.accounts.find(accountId)
  const membership = account?.memberships.find((candidate) => candidate.orgId === orgId)
  if (!account || !membership)
    throw new AppError('not_found', 'This organization has no member with this id.')
  return { account, before: membership.role }
}

function lastOwner(): AppError {
  return new AppError('conflict', 'An organization needs at least one owner.', {
    hint: 'Make another member an owner first.',
  })
}

/** Returns the token once; the store has its hash. 409 when the address already belongs to a member. */
export async function invite(
  { store, clock }: InvitationServices,
  actor: Acting,
  { email: address, role }: { email: string; role: Role },
): Promise<{ invitation: Invitation; token: string }> {
  requireMayGrant(actor, role)
  const email = readEmail(address)
  const account = await findAccountByEmail(store, email)
  const memberships = account === null ? [] : ((await store.accounts.find(account.id))?.memberships ?? [])
  if (memberships.some(({ orgId }) => orgId === actor.orgId))
    throw new AppError('conflict', `${email} is already a member.`)
  const token = newToken()
  const now = clock.now()
  const invitation: Invitation = {
    id: newId('inv'),
    hash: sha256Hex(token),
    orgId: actor.orgId,
    email,
    role,
    invitedBy: actor.actor,
    createdAtMs: now,
    expiresAtMs: now + limits.invitationMs,
  }
  const metadata = { email, role, expiresAt: isoTime(invitation.expiresAtMs) }
  const audit = auditEntry(actor, { action: 'invitation.created', target: invitation.id, metadata }, now)
  await store.invitations.create({ invitation, audit })
  return { invitation, token }
}

export async function revokeInvitation(
  { store, clock }: InvitationServices,
  actor: Acting,
  id: string,
): Promise<void> {
  const invitation = (await store.invitations.list(actor.orgId)).find((candidate) => candidate.id === id)
  if (!invitation) throw new AppError('not_found', 'This organization has no open invitation with this id.')
  requireMayGrant(actor, invitation.role)
  const metadata = { email: invitation.email, role: invitation.role }
  const audit = auditEntry(actor, { action: 'invitation.revoked', target: id, metadata }, clock.now())
  await store.invitations.revoke({ orgId: actor.orgId, id, audit })
}

export interface OpenInvitation {
  invitation: Invitation
  orgName: string
  account: Account | null // with this address, if it exists
}

/** The invitation of a link; null when it was used, revoked, replaced or has expired. */
export async function openInvitation(
  { store, clock }: InvitationServices,
  token: string,
): Promise<OpenInvitation | null> {
  const invitation = await store.invitations.find(sha256Hex(token))
  if (invitation === null || invitation.expiresAtMs <= clock.now()) return null
  const org = await store.orgs.find(invitation.orgId)
  if (org === null) return null
  return { invitation, orgName: org.name, account: await findAccountByEmail(store, invitation.email) }
}

/**
 * Creates the account with this password if none exists, adds the membership and begins the sign-in that `begin`
 * drafts, all in one transaction.
 */
export async function acceptInvitation(
  { store, clock }: InvitationServices,
  { invitation, account }: OpenInvitation,
  password: string,
  begin: ((member: { accountId: string; orgId: string }) => { signIn: SignIn; network: string }) | null,
): Promise<{ accountId: string; orgId: string; email: string; passwordHash: string }> {
  const { email, hash, orgId } = invitation
  const memberAccount = account ?? (await newAccount(email, password, clock))
  const { id: accountId, passwordHash } = memberAccount
  const draft = begin?.({ accountId, orgId })
  const signIn = draft === undefined ? {} : { signIn: draft.signIn, network: draft.network }
  const now = clock.now()
  const command = { hash, now, account: memberAccount, ...signIn, auditId: newId('aud') }
  if ((await store.invitations.accept(command)) === 'link_invalid') throw invitationOver()
  return { accountId, orgId, email, passwordHash }
}

async function newAccount(email: string, password: string, clock: Clock): Promise<Account> {
  checkPasswordRules(password, email)
  const passwordHash = await hashPassword(password)
  return { id: newId('usr'), email, passwordHash, operator: false, createdAtMs: clock.now() }
}

export function invitationOver(): AppError {
  return new AppError('forbidden', 'This invitation has been used or has expired.', {
    hint: 'If you accepted it, sign in. Otherwise ask for a new invitation.',
  })
}
