/** Lists the members of an organization, changes their roles and removes them. */
import type { Account, Role, Store } from '../../../db/contract/store.ts'
import { auditEntry, type Actor } from '../../audit/entry.ts'
import { isoTime, type Clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { wrongField } from '../../http/validate.ts'

const roles: readonly Role[] = ['owner', 'admin', 'analyst', 'viewer']

interface Services {
  store: Pick<Store, 'accounts'>
  clock: Clock
}

export interface Acting extends Actor {
  role: Role | 'machine' // the command line has every permission
}

export function readRole(text: string): Role {
  const role = roles.find((known) => known === text)
  if (role === undefined) throw wrongField('role', `role must be one of ${roles.join(', ')}`)
  return role
}

/** Admins manage members, but only owners manage owners. */
export function requireMayGrant({ role }: Acting, ...touched: Role[]): void {
  if (role !== 'admin' || !touched.includes('owner')) return
  throw new AppError('forbidden', 'Only owners can add, change or remove owners.', {
    reason: 'wrong_role',
  })
}

export async function listMembers({ store }: { store: Store }, orgId: string) {
  const members = (await store.accounts.list()).flatMap((account) => {
    const membership = account.memberships.find((each) => each.orgId === orgId)
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
      }
    }),
  )
}

export type MemberView = Awaited<ReturnType<typeof listMembers>>[number]

/** 409 for the last owner; no effect when the role does not change. Ends the member's sign-ins in the organization. */
export async function changeRole(
  { store, clock }: Services,
  who: Acting,
  accountId: string,
  role: Role,
): Promise<void> {
  const { account, before } = await requireMember(store, who.orgId, accountId)
  requireMayGrant(who, before, role)
  if (before === role) return
  const metadata = { email: account.email, before: { role: before }, after: { role } }
  const audit = auditEntry(who, { action: 'member.role_changed', target: accountId, metadata }, clock.now())
  if ((await store.accounts.setRole({ orgId: who.orgId, accountId, role, audit })) === 'last_owner')
    throw lastOwner()
}

export async function removeMember(
  { store, clock }: Services,
  who: Acting,
  accountId: string,
): Promise<void> {
  const { account, before } = await requireMember(store, who.orgId, accountId)
  requireMayGrant(who, before)
  const metadata = { email: account.email, role: before }
  const audit = auditEntry(who, { action: 'member.removed', target: accountId, metadata }, clock.now())
  if ((await store.accounts.removeMember({ orgId: who.orgId, accountId, audit })) === 'last_owner')
    throw lastOwner()
}

async function requireMember(
  store: Pick<Store, 'accounts'>,
  orgId: string,
  accountId: string,
): Promise<{ account: Account; before: Role }> {
  const account = await store.accounts.find(accountId)
  const membership = account?.memberships.find((each) => each.orgId === orgId)
  if (!account || !membership)
    throw new AppError('not_found', 'This organization has no member with this id.')
  return { account, before: membership.role }
}

function lastOwner(): AppError {
  return new AppError('conflict', 'An organization needs at least one owner.', {
    hint: 'Make another member an owner first.',
  })
}
