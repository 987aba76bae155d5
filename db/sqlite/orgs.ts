/** Organizations in SQLite. */
import { eq, or } from 'drizzle-orm'
import type { AuditEntry, Org, OrgStore } from '../store.ts'
import { appendAudit } from './audit.ts'
import type { ReadContext, WriteContext } from './contexts.ts'
import { org } from './schema.ts'

export function createOrg({ db, orm }: WriteContext, command: Parameters<OrgStore['create']>[0]): void {
  orm.insert(org).values(command.org).run()
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
