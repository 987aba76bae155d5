/** Accounts and memberships in SQLite. */
import { and, eq, gt, ne } from 'drizzle-orm'
import { StoreError } from '../../contract/errors.ts'
import type { Account, AccountStore, Membership } from '../../contract/store.ts'
import { appendAudit } from '../audit/append.ts'
import type { ReadContext, WriteContext } from '../threads/contexts.ts'
import { account, membership, oneTimeLink, org, signIn } from './schema.ts'
import { rememberNetwork } from './sign-ins.ts'

type Command<K extends 'createFirstOwner' | 'create' | 'setPassword'> = Parameters<AccountStore[K]>[0]
type FirstOwnerResult = Awaited<ReturnType<AccountStore['createFirstOwner']>>

/** One transaction on the only writer: of any number of claims at once exactly one finds no owner. */
export function createFirstOwner(
  { db, orm }: WriteContext,
  command: Command<'createFirstOwner'>,
): FirstOwnerResult {
  if (ownerFound(orm)) return 'owner_exists'
  if (command.linkHash !== null) {
    const used = orm
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
    if (used.length === 0) return 'link_invalid'
  }
  orm.insert(account).values(command.account).run()
  orm.insert(membership).values({ accountId: command.account.id, orgId: command.orgId, role: 'owner' }).run()
  if (command.signIn !== undefined) orm.insert(signIn).values(command.signIn).run()
  if (command.network !== undefined)
    rememberNetwork(orm, command.account.id, command.network, command.account.createdAtMs)
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

/** Ends every other sign-in of the account too: whoever held the old password is out. */
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
  const found = orm.select().from(account).where(eq(account.id, accountId)).get()
  if (found === undefined) return null
  return { ...found, memberships: membershipsOf(orm, accountId) }
}

/** In the age of the organizations: the first is where an account is at home. */
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
  const byAccount = Map.groupBy(orm.select().from(membership).all(), (one) => one.accountId)
  return orm
    .select()
    .from(account)
    .orderBy(account.createdAtMs, account.id)
    .all()
    .map((one) => ({ ...one, memberships: byAccount.get(one.id) ?? [] }))
}

export function ownerExists({ orm }: ReadContext): boolean {
  return ownerFound(orm)
}

function ownerFound(orm: WriteContext['orm']): boolean {
  return orm.select().from(membership).where(eq(membership.role, 'owner')).limit(1).get() !== undefined
}
