/** Who belongs to an organization in which role; nobody can take away its last owner, nor the last operator. */
import { and, count, eq } from 'drizzle-orm'
import { StoreError } from '../../contract/errors.ts'
import type { AccountStore, Role } from '../../contract/store.ts'
import { appendAudit } from '../audit/append.ts'
import type { WriteContext } from '../threads/contexts.ts'
import { account, membership, signIn } from './schema.ts'

type Orm = WriteContext['orm']
type Command<K extends 'setRole' | 'removeMember' | 'setOperator'> = Parameters<AccountStore[K]>[0]
interface Who {
  orgId: string
  accountId: string
}

export function setRole({ db, orm }: WriteContext, command: Command<'setRole'>): 'done' | 'last_owner' {
  const { role } = command
  const before = roleOf(orm, command)
  if (before === 'owner' && role !== 'owner' && ownersOf(orm, command.orgId) === 1) return 'last_owner'
  orm.update(membership).set({ role }).where(memberIs(command)).run()
  endSignIns(orm, command)
  appendAudit(db, command.audit)
  return 'done'
}

export function removeMember(
  { db, orm }: WriteContext,
  command: Command<'removeMember'>,
): 'done' | 'last_owner' {
  if (roleOf(orm, command) === 'owner' && ownersOf(orm, command.orgId) === 1) return 'last_owner'
  orm.delete(membership).where(memberIs(command)).run()
  endSignIns(orm, command)
  appendAudit(db, command.audit)
  return 'done'
}

export function setOperator(
  { db, orm }: WriteContext,
  { accountId, operator, audit }: Command<'setOperator'>,
): 'done' | 'last_operator' {
  const found = orm.select().from(account).where(eq(account.id, accountId)).get()
  if (found === undefined) throw new StoreError('not_found', `there is no account ${accountId}`)
  const operators = orm.select({ n: count() }).from(account).where(eq(account.operator, true)).get()?.n ?? 0
  if (found.operator && !operator && operators === 1) return 'last_operator'
  orm.update(account).set({ operator }).where(eq(account.id, accountId)).run()
  appendAudit(db, audit)
  return 'done'
}

function memberIs({ orgId, accountId }: Who) {
  return and(eq(membership.accountId, accountId), eq(membership.orgId, orgId))
}

function roleOf(orm: Orm, who: Who): Role {
  const found = orm.select().from(membership).where(memberIs(who)).get()
  if (found === undefined) throw new StoreError('not_found', `${who.accountId} is no member of ${who.orgId}`)
  return found.role
}

function ownersOf(orm: Orm, orgId: string): number {
  const owners = and(eq(membership.orgId, orgId), eq(membership.role, 'owner'))
  return orm.select({ n: count() }).from(membership).where(owners).get()?.n ?? 0
}

/** A sign-in in hand must not outlive the rights it was given for. */
function endSignIns(orm: Orm, { orgId, accountId }: Who): void {
  orm
    .delete(signIn)
    .where(and(eq(signIn.accountId, accountId), eq(signIn.orgId, orgId)))
    .run()
}
