/** Organizations in SQLite, from creation to deletion after the grace period. */
import { eq, or } from 'drizzle-orm'
import { StoreError } from '../../contract/errors.ts'
import { appendAudit } from '../audit/append.ts'
import { membership, org, orgDeletion, orgSignInRule } from './schema.ts'
import { takeDeliveries } from '../webhooks/deliveries.ts'
import type { AuditEntry, Org, OrgDeletion, OrgStore, SignInRule } from '../../contract/store.ts'
import type { ReadContext, WriteContext } from '../threads/contexts.ts'

export function createOrg({ db, orm }: WriteContext, command: Parameters<OrgStore['create']>[0]): void {
  orm.insert(org).values(command.org).run()
  const { ownerId } = command
  if (ownerId !== undefined) {
    orm.insert(membership).values({ accountId: ownerId, orgId: command.org.id, role: 'owner' }).run()
  }
  appendAudit(db, command.audit)
}

/** Creates the first organization while there is none. Returns whether it did. */
export function bootstrapOrg(context: WriteContext, command: { org: Org; audit: AuditEntry }): boolean {
  if (context.orm.select({ id: org.id }).from(org).limit(1).get() !== undefined) return false
  createOrg(context, command)
  return true
}

export function listOrgs({ orm }: ReadContext): Org[] {
  return orm.select().from(org).orderBy(org.createdAtMs, org.id).all()
}

/** An id takes precedence over an equal slug. */
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

/** The audit chain outlives its organization. The event engine keeps its number, in memory too. */
const keptTables = ['audit_head', 'audit_trim', 'event_org']

/** Deliveries per step: at most half a megabyte each. */
const deliveriesMax = 64

/**
 * One step, as short as one of retention: with ten million events in one transaction every other write would wait five
 * seconds and the log would grow to 900 MB. A crash between two steps leaves an organization with fewer events.
 */
export function emptyOrg(
  context: WriteContext,
  { orgId, now, small = false }: Parameters<OrgStore['empty']>[0],
): { events: number; done: boolean } {
  requireDue(context, orgId, now)
  if (takeDeliveries(context, orgId, small ? 1 : deliveriesMax) > 0) return { events: 0, done: false }
  const expired = context.events.expire({ orgId, receivedBeforeMs: Number.MAX_SAFE_INTEGER, small })
  if (!expired.done) return { events: expired.events, done: false }
  const { done } = context.events.dropRollups({ orgId, beforeMs: Number.MAX_SAFE_INTEGER })
  return { events: expired.events, done }
}

/** Deletes the rest of an organization, which is little after it was emptied. */
export function removeOrg(context: WriteContext, command: Parameters<OrgStore['remove']>[0]): void {
  const { db, orm } = context
  const { orgId, now, audit } = command
  requireDue(context, orgId, now)
  context.events.removeOrg(orgId)
  db.query(
    'DELETE FROM webhook_attempt WHERE delivery_seq IN (SELECT seq FROM webhook_delivery WHERE org_id = ?)',
  ).run(orgId)
  // Tables of one noun refer to each other, so only the end of the transaction must be consistent.
  db.run('PRAGMA defer_foreign_keys = ON')
  for (const name of tablesWithOrg(context)) {
    if (!keptTables.includes(name)) db.query(`DELETE FROM "${name}" WHERE org_id = ?`).run(orgId)
  }
  orm.delete(org).where(eq(org.id, orgId)).run()
  appendAudit(db, audit)
}

function requireDue({ orm }: WriteContext, orgId: string, now: number): void {
  const asked = orm.select().from(orgDeletion).where(eq(orgDeletion.orgId, orgId)).get()
  if (asked === undefined || asked.dueAtMs > now)
    throw new StoreError('conflict', `the deletion of ${orgId} is not due yet`)
}

/** From the schema itself, so that a future table is included. */
function tablesWithOrg({ db }: WriteContext): string[] {
  return db
    .query<{ name: string }, []>(
      `SELECT t.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
       WHERE t.type = 'table' AND c.name = 'org_id' ORDER BY t.name`,
    )
    .all()
    .map(({ name }) => name)
}
