/** One-time links in SQLite: made, used up, never kept in clear. */
import { and, eq, gt, isNull } from 'drizzle-orm'
import type { AccountStore } from '../store.ts'
import { changePassword, membershipsOf } from './accounts.ts'
import { appendAudit } from './audit.ts'
import type { WriteContext } from './contexts.ts'
import { oneTimeLink } from './schema.ts'

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
  const home = membershipsOf(orm, account.id)[0]
  appendAudit(db, {
    id: command.auditId,
    orgId: home?.orgId ?? applianceOrgId,
    actor: `user:${account.id}`,
    action: 'account.password_reset',
    target: account.id,
    metadata: { email: account.email },
    occurredAtMs: command.now,
  })
  return 'done'
}
