/** Accounts and memberships. An organization always has an owner, and the appliance an operator. */
import { and, count, eq, gt, ne } from 'drizzle-orm'
import { StoreError } from '../../contract/errors.ts'
import { appendAudit } from '../audit/append.ts'
import { endLinksOf } from './share-links.ts'
import { account, membership, oneTimeLink, org, signIn } from './schema.ts'
import { forgetVisit } from './overview-visits.ts'
import { rememberNetwork } from './sign-ins.ts'
import type { Account, AccountStore, AuditEntry, Membership, Role } from '../../contract/store.ts'
import type { ReadContext, WriteContext } from '../contexts.ts'

type Command<
  K extends 'createFirstOwner' | 'create' | 'setPassword' | 'setRole' | 'removeMember' | 'setOperator',
> = Parameters<AccountStore[K]>[0]
type FirstOwnerResult = Awaited<ReturnType<AccountStore['createFirstOwner']>>

/** One transaction on the only writer: of any number of concurrent claims exactly one finds no owner. */
export function createFirstOwner(
  { db, orm }: WriteContext,
  command: Command<'createFirstOwner'>,
): FirstOwnerResult {
  if (ownerFound(orm)) return 'owner_exists'
  if (command.linkHash !== null) {
    const usedLinks = orm
      .delete(oneTimeLink)
      .where(
        and(
          eq(oneTimeLink.hash, command.linkHash),
          eq(oneTimeLink.purpose, 'setup'),
          gt(oneTimeLink.expiresAtMs, command.now),
        ),
      )
      .returning({ hash: oneTimeLink.hash })
      .all()
    if (usedLinks.length === 0) return 'link_invalid'
  }
  orm.insert(account).values(command.account).run()
  orm.insert(membership).values({ accountId: command.account.id, orgId: command.orgId, role: 'owner' }).run()
  if (command.signIn !== undefined) orm.insert(signIn).values(command.signIn).run()
  if (command.network !== undefined)
    rememberNetwork({ db, orm }, command.account.id, command.network, command.account.createdAtMs)
  orm.delete(oneTimeLink).where(eq(oneTimeLink.purpose, 'setup')).run()
  appendAudit(db, command.audit)
  return 'created'
}

export function createAccount({ db, orm }: WriteContext, command: Command<'create'>): void {
  orm.insert(account).values(command.account).run()
  orm
    .insert(membership)
    .values({ accountId: command.account.id, orgId: command.orgId, role: command.role })
    .run()
  if (command.link !== undefined) orm.insert(oneTimeLink).values(command.link).run()
  appendAudit(db, command.audit)
}

export function setPassword({ db, orm }: WriteContext, command: Command<'setPassword'>): void {
  changePassword(orm, command.accountId, command.passwordHash, command.keepTokenHash)
  appendAudit(db, command.audit)
}

/** Ends every other sign-in of the account too, which excludes anybody with the old password. */
export function changePassword(
  orm: WriteContext['orm'],
  accountId: string,
  passwordHash: string,
  keepTokenHash = '',
): Account {
  const changed = orm
    .update(account)
    .set({ passwordHash })
    .where(eq(account.id, accountId))
    .returning()
    .all()[0]
  if (changed === undefined) throw new StoreError('not_found', `there is no account ${accountId}`)
  orm
    .delete(signIn)
    .where(and(eq(signIn.accountId, accountId), ne(signIn.tokenHash, keepTokenHash)))
    .run()
  return changed
}

export function findAccountByEmail({ orm }: ReadContext, email: string): Account | null {
  return orm.select().from(account).where(eq(account.email, email)).get() ?? null
}

export function findAccount(
  { orm }: ReadContext,
  accountId: string,
): (Account & { memberships: Membership[] }) | null {
  const accountRow = orm.select().from(account).where(eq(account.id, accountId)).get()
  if (accountRow === undefined) return null
  return { ...accountRow, memberships: membershipsOf(orm, accountId) }
}

/** In order of creation: the first is the account's default. */
export function membershipsOf(orm: WriteContext['orm'], accountId: string): Membership[] {
  return orm
    .select({ accountId: membership.accountId, orgId: membership.orgId, role: membership.role })
    .from(membership)
    .innerJoin(org, eq(org.id, membership.orgId))
    .where(eq(membership.accountId, accountId))
    .orderBy(org.createdAtMs, org.id)
    .all()
}

export function listAccounts({ orm }: ReadContext): (Account & { memberships: Membership[] })[] {
  const byAccount = Map.groupBy(orm.select().from(membership).all(), (row) => row.accountId)
  return orm
    .select()
    .from(account)
    .orderBy(account.createdAtMs, account.id)
    .all()
    .map((row) => ({ ...row, memberships: byAccount.get(row.id) ?? [] }))
}

export function ownerExists({ orm }: ReadContext): boolean {
  return ownerFound(orm)
}

function ownerFound(orm: WriteContext['orm']): boolean {
  return orm.select().from(membership).where(eq(membership.role, 'owner')).limit(1).get() !== undefined
}

type Orm = WriteContext['orm']
interface Who {
  orgId: string
  accountId: string
}

export function setRole({ db, orm }: WriteContext, command: Command<'setRole'>): 'done' | 'last_owner' {
  const { role } = command
  const previousRole = roleOf(orm, command)
  if (previousRole === 'owner' && role !== 'owner' && ownersOf(orm, command.orgId) === 1) return 'last_owner'
  orm.update(membership).set({ role }).where(memberIs(command)).run()
  endSignIns(orm, command)
  appendAudit(db, command.endsShareLinks ? endShareLinks(db, command) : command.audit)
  return 'done'
}

export function removeMember(
  { db, orm }: WriteContext,
  command: Command<'removeMember'>,
): 'done' | 'last_owner' {
  if (roleOf(orm, command) === 'owner' && ownersOf(orm, command.orgId) === 1) return 'last_owner'
  orm.delete(membership).where(memberIs(command)).run()
  endSignIns(orm, command)
  forgetVisit(db, command)
  appendAudit(db, endShareLinks(db, command))
  return 'done'
}

export function setOperator(
  { db, orm }: WriteContext,
  { accountId, operator, audit }: Command<'setOperator'>,
): 'done' | 'last_operator' {
  const accountRow = orm.select().from(account).where(eq(account.id, accountId)).get()
  if (accountRow === undefined) throw new StoreError('not_found', `there is no account ${accountId}`)
  const operators = orm.select({ n: count() }).from(account).where(eq(account.operator, true)).get()?.n ?? 0
  if (accountRow.operator && !operator && operators === 1) return 'last_operator'
  orm.update(account).set({ operator }).where(eq(account.id, accountId)).run()
  appendAudit(db, audit)
  return 'done'
}

function memberIs({ orgId, accountId }: Who) {
  return and(eq(membership.accountId, accountId), eq(membership.orgId, orgId))
}

function roleOf(orm: Orm, membershipKey: Who): Role {
  const membershipRow = orm.select().from(membership).where(memberIs(membershipKey)).get()
  if (membershipRow === undefined)
    throw new StoreError('not_found', `${membershipKey.accountId} is not a member of ${membershipKey.orgId}`)
  return membershipRow.role
}

function ownersOf(orm: Orm, orgId: string): number {
  const owners = and(eq(membership.orgId, orgId), eq(membership.role, 'owner'))
  return orm.select({ n: count() }).from(membership).where(owners).get()?.n ?? 0
}

/** Returns the entry with their number, if there were any. */
function endShareLinks(
  db: WriteContext['db'],
  { orgId, accountId, audit }: Who & { audit: AuditEntry },
): AuditEntry {
  const shareLinksEnded = endLinksOf(db, orgId, accountId, audit.occurredAtMs)
  return shareLinksEnded === 0 ? audit : { ...audit, metadata: { ...audit.metadata, shareLinksEnded } }
}

/** A sign-in must not outlive the rights that it was created with. */
function endSignIns(orm: Orm, { orgId, accountId }: Who): void {
  orm
    .delete(signIn)
    .where(and(eq(signIn.accountId, accountId), eq(signIn.orgId, orgId)))
    .run()
}
