/** One-time links and invitations. Only hashes of their tokens are stored. */
import { applianceOrgId } from '../../contract/audit.ts'
import { and, eq, gt, isNull, lte } from 'drizzle-orm'
import { StoreError } from '../../contract/errors.ts'
import { appendAudit } from '../audit/append.ts'
import { account, accountNetwork, invitation, membership, oneTimeLink, signIn } from './schema.ts'
import { rememberNetwork } from './sign-ins.ts'
import { changePassword, membershipsOf } from './accounts.ts'
import type { Account, AccountStore, Invitation, InvitationStore, OneTimeLink } from '../../contract/store.ts'
import type { ReadContext, WriteContext } from '../contexts.ts'

/** The chain for actions that belong to no organization (contract §8). */

export function createLink(
  { db, orm }: WriteContext,
  { link, audit }: Parameters<AccountStore['createLink']>[0],
): void {
  orm.delete(oneTimeLink).where(sameKind(link)).run()
  orm.insert(oneTimeLink).values(link).run()
  if (audit !== null) appendAudit(db, audit)
}

function sameKind({ accountId, purpose }: OneTimeLink) {
  const ofAccount = accountId === null ? isNull(oneTimeLink.accountId) : eq(oneTimeLink.accountId, accountId)
  return and(eq(oneTimeLink.purpose, purpose), ofAccount)
}

export function shareSetupLink(
  { orm }: WriteContext,
  { link, sealedToken, now }: Parameters<AccountStore['shareSetupLink']>[0],
): string {
  const { expiresAtMs } = link
  const live = and(sameKind(link), gt(oneTimeLink.expiresAtMs, now))
  const liveLinks = orm.update(oneTimeLink).set({ expiresAtMs }).where(live).returning().all()
  const shared = liveLinks.find((candidate) => candidate.sealedToken !== null)?.sealedToken
  if (shared) return shared
  orm.delete(oneTimeLink).where(sameKind(link)).run()
  orm
    .insert(oneTimeLink)
    .values({ ...link, sealedToken })
    .run()
  return sealedToken
}

export function findLink(
  { orm }: ReadContext,
  { hash, now }: Parameters<AccountStore['findLink']>[0],
): OneTimeLink | null {
  const live = and(eq(oneTimeLink.hash, hash), gt(oneTimeLink.expiresAtMs, now))
  const { hash: linkHash, purpose, accountId, expiresAtMs } = oneTimeLink
  return (
    orm.select({ hash: linkHash, purpose, accountId, expiresAtMs }).from(oneTimeLink).where(live).get() ??
    null
  )
}

/** The audit entry is made here, because only this transaction knows the link's account. */
export function resetPassword(
  { db, orm }: WriteContext,
  command: Parameters<AccountStore['resetPassword']>[0],
): Awaited<ReturnType<AccountStore['resetPassword']>> {
  const usedLink = orm
    .delete(oneTimeLink)
    .where(
      and(
        eq(oneTimeLink.hash, command.linkHash),
        eq(oneTimeLink.purpose, 'password'),
        gt(oneTimeLink.expiresAtMs, command.now),
      ),
    )
    .returning()
    .all()[0]
  if (usedLink === undefined || usedLink.accountId === null) return 'link_invalid'
  const account = changePassword(orm, usedLink.accountId, command.passwordHash)
  // Anybody with the old password may have signed in from anywhere; the holder of the link is the person.
  orm.delete(accountNetwork).where(eq(accountNetwork.accountId, account.id)).run()
  if (command.network !== undefined) rememberNetwork({ db, orm }, account.id, command.network, command.now)
  const home = membershipsOf(orm, account.id)[0]
  appendAudit(db, {
    id: command.auditId,
    orgId: home?.orgId ?? applianceOrgId,
    actor: `user:${account.id}`,
    action: 'account.password_reset',
    target: account.id,
    metadata: { email: account.email, ...(command.address ? { address: command.address } : {}) },
    occurredAtMs: command.now,
  })
  return 'done'
}

type Command<K extends 'create' | 'revoke' | 'accept'> = Parameters<InvitationStore[K]>[0]

export function createInvitation({ db, orm }: WriteContext, command: Command<'create'>): void {
  const { orgId, email } = command.invitation
  const existingMember = orm
    .select({ id: account.id })
    .from(account)
    .innerJoin(membership, and(eq(membership.accountId, account.id), eq(membership.orgId, orgId)))
    .where(eq(account.email, email))
    .get()
  if (existingMember !== undefined) throw new StoreError('conflict', `${email} is already a member`)
  orm
    .delete(invitation)
    .where(and(eq(invitation.orgId, orgId), eq(invitation.email, email)))
    .run()
  orm.insert(invitation).values(command.invitation).run()
  appendAudit(db, command.audit)
}

/** Expired ones too, newest first. */
export function listInvitations({ orm }: ReadContext, orgId: string): Invitation[] {
  return orm
    .select()
    .from(invitation)
    .where(eq(invitation.orgId, orgId))
    .all()
    .sort((a, b) => b.createdAtMs - a.createdAtMs)
}

export function findInvitation({ orm }: ReadContext, hash: string): Invitation | null {
  return orm.select().from(invitation).where(eq(invitation.hash, hash)).get() ?? null
}

export function revokeInvitation({ db, orm }: WriteContext, command: Command<'revoke'>): void {
  const deletedInvitations = orm
    .delete(invitation)
    .where(and(eq(invitation.id, command.id), eq(invitation.orgId, command.orgId)))
    .returning({ id: invitation.id })
    .all()
  if (deletedInvitations.length === 0)
    throw new StoreError('not_found', `there is no invitation ${command.id}`)
  appendAudit(db, command.audit)
}

/** The audit entry is made here, because only this transaction knows whether the account is new. */
export function acceptInvitation(
  { db, orm }: WriteContext,
  command: Command<'accept'>,
): Awaited<ReturnType<InvitationStore['accept']>> {
  const usedInvitation = orm
    .delete(invitation)
    .where(and(eq(invitation.hash, command.hash), gt(invitation.expiresAtMs, command.now)))
    .returning()
    .all()[0]
  if (usedInvitation === undefined || usedInvitation.email !== command.account.email) {
    if (usedInvitation !== undefined)
      throw new StoreError('conflict', 'the invitation is for another address')
    return 'link_invalid'
  }
  const existingAccount = orm.select().from(account).where(eq(account.email, usedInvitation.email)).get()
  // The password was checked against, or hashed for, the account as the caller read it.
  const isUnchanged = existingAccount === undefined || sameAccount(existingAccount, command.account)
  if (command.signIn !== undefined && !isUnchanged)
    throw new StoreError('conflict', `${usedInvitation.email} changed meanwhile`)
  if (existingAccount === undefined) orm.insert(account).values(command.account).run()
  const accountId = existingAccount?.id ?? command.account.id
  orm.insert(membership).values({ accountId, orgId: usedInvitation.orgId, role: usedInvitation.role }).run()
  if (command.signIn !== undefined)
    orm
      .insert(signIn)
      .values({ ...command.signIn, accountId })
      .run()
  if (command.network !== undefined) rememberNetwork({ db, orm }, accountId, command.network, command.now)
  const session = command.signIn && { session: command.signIn.id, address: command.signIn.address }
  appendAudit(db, {
    id: command.auditId,
    orgId: usedInvitation.orgId,
    actor: `user:${accountId}`,
    action: 'invitation.accepted',
    target: usedInvitation.id,
    metadata: {
      email: usedInvitation.email,
      role: usedInvitation.role,
      invitedBy: usedInvitation.invitedBy,
      newAccount: !existingAccount,
      ...session,
    },
    occurredAtMs: command.now,
  })
  return 'done'
}

function sameAccount(a: Account, b: Account): boolean {
  return a.id === b.id && a.passwordHash === b.passwordHash
}

export function pruneInvitations({ orm }: WriteContext, { now }: { now: number }): number {
  return orm.delete(invitation).where(lte(invitation.expiresAtMs, now)).returning({ id: invitation.id }).all()
    .length
}
