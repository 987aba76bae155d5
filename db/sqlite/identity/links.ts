/** One-time links in SQLite: made, used up, never kept in clear. */
import { and, eq, gt, isNull } from 'drizzle-orm'
import type { AccountStore, OneTimeLink } from '../../contract/store.ts'
import { changePassword, membershipsOf } from './accounts.ts'
import { appendAudit } from '../audit/append.ts'
import type { ReadContext, WriteContext } from '../threads/contexts.ts'
import { accountNetwork, oneTimeLink } from './schema.ts'
import { rememberNetwork } from './sign-ins.ts'

/** The chain for acts that belong to no organization (contract §8). */
const applianceOrgId = 'org_system'

export function createLink(
  { db, orm }: WriteContext,
  { link, audit }: Parameters<AccountStore['createLink']>[0],
): void {
  const sameAccount =
    link.accountId === null ? isNull(oneTimeLink.accountId) : eq(oneTimeLink.accountId, link.accountId)
  orm
    .delete(oneTimeLink)
    .where(and(eq(oneTimeLink.purpose, link.purpose), sameAccount))
    .run()
  orm.insert(oneTimeLink).values(link).run()
  if (audit !== null) appendAudit(db, audit)
}

export function findLink(
  { orm }: ReadContext,
  { hash, now }: Parameters<AccountStore['findLink']>[0],
): OneTimeLink | null {
  const live = and(eq(oneTimeLink.hash, hash), gt(oneTimeLink.expiresAtMs, now))
  return orm.select().from(oneTimeLink).where(live).get() ?? null
}

/** The audit entry is made here, because only this transaction knows whose link it was. */
export function resetPassword(
  { db, orm }: WriteContext,
  command: Parameters<AccountStore['resetPassword']>[0],
): Awaited<ReturnType<AccountStore['resetPassword']>> {
  const used = orm
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
  if (used === undefined || used.accountId === null) return 'link_invalid'
  const account = changePassword(orm, used.accountId, command.passwordHash)
  // Whoever knew the old password may have signed in from anywhere; the holder of the link is the person.
  orm.delete(accountNetwork).where(eq(accountNetwork.accountId, account.id)).run()
  if (command.network !== undefined) rememberNetwork(orm, account.id, command.network, command.now)
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
