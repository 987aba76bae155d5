/** Invitations: one-time links that add a member, without a mail server. */
import type { Account, Invitation, Role, SignIn, Store } from '../../../db/contract/store.ts'
import { auditEntry } from '../../audit/entry.ts'
import { checkPasswordRules, hashPassword } from '../sign-in/password.ts'
import type { Clock } from '../../clock.ts'
import { isoTime } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { newId, newToken, sha256Hex } from '../../ids.ts'
import { limits } from '../../limits.ts'
import { readEmail } from './email.ts'
import { requireMayGrant, type Acting } from './members.ts'

interface Services {
  store: Pick<Store, 'invitations' | 'accounts' | 'orgs'>
  clock: Clock
}

/** Returns the token once; the store has its hash. 409 when the address already belongs to a member. */
export async function invite(
  { store, clock }: Services,
  who: Acting,
  asked: { email: string; role: Role },
): Promise<{ invitation: Invitation; token: string }> {
  requireMayGrant(who, asked.role)
  const email = readEmail(asked.email)
  const account = await store.accounts.findByEmail(email)
  const memberships = account === null ? [] : ((await store.accounts.find(account.id))?.memberships ?? [])
  if (memberships.some(({ orgId }) => orgId === who.orgId))
    throw new AppError('conflict', `${email} is already a member.`)
  const token = newToken()
  const now = clock.now()
  const invitation: Invitation = {
    id: newId('inv'),
    hash: sha256Hex(token),
    orgId: who.orgId,
    email,
    role: asked.role,
    invitedBy: who.actor,
    createdAtMs: now,
    expiresAtMs: now + limits.invitationMs,
  }
  const metadata = { email, role: asked.role, expiresAt: isoTime(invitation.expiresAtMs) }
  const audit = auditEntry(who, { action: 'invitation.created', target: invitation.id, metadata }, now)
  await store.invitations.create({ invitation, audit })
  return { invitation, token }
}

export async function revokeInvitation({ store, clock }: Services, who: Acting, id: string): Promise<void> {
  const found = (await store.invitations.list(who.orgId)).find((each) => each.id === id)
  if (!found) throw new AppError('not_found', 'This organization has no open invitation with this id.')
  requireMayGrant(who, found.role)
  const metadata = { email: found.email, role: found.role }
  const audit = auditEntry(who, { action: 'invitation.revoked', target: id, metadata }, clock.now())
  await store.invitations.revoke({ orgId: who.orgId, id, audit })
}

export interface OpenInvitation {
  invitation: Invitation
  orgName: string
  account: Account | null // with this address, if it exists
}

/** The invitation of a link; null when it was used, revoked, replaced or has expired. */
export async function openInvitation(
  { store, clock }: Services,
  token: string,
): Promise<OpenInvitation | null> {
  const invitation = await store.invitations.find(sha256Hex(token))
  if (invitation === null || invitation.expiresAtMs <= clock.now()) return null
  const org = await store.orgs.find(invitation.orgId)
  if (org === null) return null
  return { invitation, orgName: org.name, account: await store.accounts.findByEmail(invitation.email) }
}

/**
 * Creates the account with this password if there is none, adds the membership and begins the sign-in that `begin`
 * drafts, all in one transaction.
 */
export async function acceptInvitation(
  { store, clock }: Services,
  { invitation, account }: OpenInvitation,
  password: string,
  begin: ((who: { accountId: string; orgId: string }) => { signIn: SignIn; network: string }) | null,
): Promise<{ accountId: string; orgId: string; email: string; passwordHash: string }> {
  const { email, hash, orgId } = invitation
  const made = account ?? (await newAccount(email, password, clock))
  const { id: accountId, passwordHash } = made
  const begun = begin?.({ accountId, orgId })
  const signIn = begun === undefined ? {} : { signIn: begun.signIn, network: begun.network }
  const now = clock.now()
  const command = { hash, now, account: made, ...signIn, auditId: newId('aud') }
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
