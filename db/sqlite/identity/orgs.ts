/** Organizations in SQLite. */
import { eq, or } from 'drizzle-orm'
import { StoreError } from '../../contract/errors.ts'
import type { AuditEntry, Org, OrgDeletion, OrgStore, SignInRule } from '../../contract/store.ts'
import { appendAudit } from '../audit/append.ts'
import type { ReadContext, WriteContext } from '../threads/contexts.ts'
import { membership, org, orgDeletion, orgSignInRule } from './schema.ts'

export function createOrg({ db, orm }: WriteContext, command: Parameters<OrgStore['create']>[0]): void {
  orm.insert(org).values(command.org).run()
  const { ownerId } = command
  if (ownerId !== undefined) {
    orm.insert(membership).values({ accountId: ownerId, orgId: command.org.id, role: 'owner' }).run()
  }
  appendAudit(db, command.audit)
}

/** Creates the first organization while there is none; returns whether it did. */
export function bootstrapOrg(context: WriteContext, command: { org: Org; audit: AuditEntry }): boolean {
  if (context.orm.select({ id: org.id }).from(org).limit(1).get() !== undefined) return false
  createOrg(context, command)
  return true
}

export function listOrgs({ orm }: ReadContext): Org[] {
  return orm.select().from(org).orderBy(org.createdAtMs, org.id).all()
}

/** An id wins over an equal slug. */
export function findOrg({ orm }: ReadContext, idOrSlug: string): Org | null {
  const found = orm
    .select()
    .from(org)
    .where(or(eq(org.id, idOrSlug), eq(org.slug, idOrSlug)))
    .all()
  return found.find((candidate) => candidate.id === idOrSlug) ?? found[0] ?? null
}

export function renameOrg({ db, orm }: WriteContext, command: Parameters<OrgStore['rename']>[0]): void {
  const { orgId, name } = command
  const renamed = orm.update(org).set({ name }).where(eq(org.id, orgId)).returning({ id: org.id }).all()
  if (renamed.length === 0) throw new StoreError('not_found', `there is no organization ${orgId}`)
  appendAudit(db, command.audit)
}

export function signInRule({ orm }: ReadContext, orgId: string): SignInRule {
  const found = orm.select().from(orgSignInRule).where(eq(orgSignInRule.orgId, orgId)).get()
  return { secondFactorRequired: found?.secondFactorRequired ?? false }
}

export function changeSignInRule(
  { db, orm }: WriteContext,
  { orgId, rule, audit }: Parameters<OrgStore['changeSignInRule']>[0],
): void {
  orm
    .insert(orgSignInRule)
    .values({ orgId, ...rule })
    .onConflictDoUpdate({ target: orgSignInRule.orgId, set: rule })
    .run()
  appendAudit(db, audit)
}

export function listOrgDeletions({ orm }: ReadContext): OrgDeletion[] {
  return orm.select().from(orgDeletion).orderBy(orgDeletion.dueAtMs).all()
}

export function requestOrgDeletion(
  { db, orm }: WriteContext,
  { orgId, askedAtMs, dueAtMs, audit }: Parameters<OrgStore['requestDeletion']>[0],
): void {
  orm.insert(orgDeletion).values({ orgId, askedAtMs, dueAtMs }).run()
  appendAudit(db, audit)
}

export function cancelOrgDeletion(
  { db, orm }: WriteContext,
  command: Parameters<OrgStore['cancelDeletion']>[0],
): void {
  const { orgId, now } = command
  const [asked] = orm.delete(orgDeletion).where(eq(orgDeletion.orgId, orgId)).returning().all()
  if (asked === undefined) throw new StoreError('conflict', `the deletion of ${orgId} is not requested`)
  if (asked.dueAtMs <= now) throw new StoreError('conflict', `${orgId} is being deleted`)
  appendAudit(db, command.audit)
}
