/** Organizations, from creation to deletion after the grace period, with their sites and saved views. */
import { and, count, eq, ne, or } from 'drizzle-orm'
import { StoreError } from '../../contract/errors.ts'
import { columnsOf } from '../database.ts'
import { appendAudit } from '../audit/append.ts'
import { noteChange } from '../nodes/nodes.ts'
import { membership, org, orgDeletion, orgSignInRule, savedView, site } from './schema.ts'
import { takeDeliveries } from '../webhooks/deliveries.ts'
import { member } from '../events/blocks/fields.ts'
import type {
  AuditEntry,
  Org,
  OrgDeletion,
  OrgStore,
  SavedView,
  SignInRule,
  Site,
  SiteStore,
  ViewStore,
} from '../../contract/store.ts'
import type { ReadContext, WriteContext } from '../contexts.ts'

export function createOrg({ db, orm }: WriteContext, command: Parameters<OrgStore['create']>[0]): void {
  orm.insert(org).values(command.org).run()
  const { ownerId } = command
  if (ownerId !== undefined) {
    orm.insert(membership).values({ accountId: ownerId, orgId: command.org.id, role: 'owner' }).run()
  }
  appendAudit(db, command.audit)
}

/** Creates an organization if the database has none. Returns whether it did. */
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
  const orgRows = orm
    .select()
    .from(org)
    .where(or(eq(org.id, idOrSlug), eq(org.slug, idOrSlug)))
    .all()
  return orgRows.find((candidate) => candidate.id === idOrSlug) ?? orgRows[0] ?? null
}

export function renameOrg({ db, orm }: WriteContext, command: Parameters<OrgStore['rename']>[0]): void {
  const { orgId, name } = command
  const renamed = orm.update(org).set({ name }).where(eq(org.id, orgId)).returning({ id: org.id }).all()
  if (renamed.length === 0) throw new StoreError('not_found', `there is no organization ${orgId}`)
  appendAudit(db, command.audit)
}

export function signInRule({ orm }: ReadContext, orgId: string): SignInRule {
  const ruleRow = orm.select().from(orgSignInRule).where(eq(orgSignInRule.orgId, orgId)).get()
  return { secondFactorRequired: ruleRow?.secondFactorRequired ?? false }
}

export function changeSignInRule(
  { db }: WriteContext,
  { orgId, rule, audit }: Parameters<OrgStore['changeSignInRule']>[0],
): void {
  db.query(
    `INSERT INTO org_sign_in_rule (org_id, second_factor_required) VALUES (?, ?)
     ON CONFLICT (org_id) DO UPDATE SET second_factor_required = excluded.second_factor_required`,
  ).run(orgId, rule.secondFactorRequired ? 1 : 0)
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
  const [deletion] = orm.delete(orgDeletion).where(eq(orgDeletion.orgId, orgId)).returning().all()
  if (deletion === undefined) throw new StoreError('conflict', `the deletion of ${orgId} is not requested`)
  if (deletion.dueAtMs <= now) throw new StoreError('conflict', `${orgId} is being deleted`)
  appendAudit(db, command.audit)
}

/** The audit chain outlives its organization. The event engine keeps its number, in memory too. */
const keptTables = ['audit_checkpoint', 'audit_head', 'audit_trim', 'event_org']

/** Deliveries per step: at most half a megabyte each. */
const deliveriesMax = 64

/**
 * One step, as short as one of retention: with ten million events in one transaction every other write would wait five
 * seconds and the log would grow to 900 MB. A crash between two steps leaves an organization with fewer events.
 */
export function emptyOrg(
  context: WriteContext,
  { orgId, now }: Parameters<OrgStore['empty']>[0],
): { events: number; done: boolean } {
  requireDue(context, orgId, now)
  if (takeDeliveries(context, orgId, context.tight ? 1 : deliveriesMax) > 0) return { events: 0, done: false }
  const expired = context.events.expire({ orgId, receivedBeforeMs: Number.MAX_SAFE_INTEGER }, context.tight)
  if (!expired.done) return { events: expired.events, done: false }
  const { done: isDone } = context.events.dropRollups({ orgId, beforeMs: Number.MAX_SAFE_INTEGER })
  return { events: expired.events, done: isDone }
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
  db.run(db.dialect.deferKeys)
  for (const name of tablesWithOrg(context)) {
    if (!keptTables.includes(name)) db.query(`DELETE FROM "${name}" WHERE org_id = ?`).run(orgId)
  }
  orm.delete(org).where(eq(org.id, orgId)).run()
  for (const group of ['keys', 'sites'] as const) noteChange(db, group)
  appendAudit(db, audit)
}

function requireDue({ orm }: WriteContext, orgId: string, now: number): void {
  const deletion = orm.select().from(orgDeletion).where(eq(orgDeletion.orgId, orgId)).get()
  if (deletion === undefined || deletion.dueAtMs > now)
    throw new StoreError('conflict', `the deletion of ${orgId} is not due yet`)
}

/** From the schema itself, so that a future table is included. */
function tablesWithOrg({ db }: WriteContext): string[] {
  return columnsOf(db).flatMap(({ table, column }) => (column === 'org_id' ? [table] : []))
}

/** In order of their ids. */
export function listSites({ db, orm }: ReadContext, orgId: string): Site[] {
  const eventSiteIds = db
    .query<{ text: string }, [string, number]>(
      `SELECT text FROM event_term JOIN event_org ON event_org.num = event_term.org
       WHERE org_id = ? AND member = ?`,
    )
    .all(orgId, member.siteId)
    .map(({ text }) => text)
  const chosen = orm.select().from(site).where(eq(site.orgId, orgId)).all()
  const sites = new Map<string, Site>()
  for (const siteId of eventSiteIds)
    sites.set(siteId, { siteId, name: null, hidden: false, restricted: false, hosts: [], seen: true })
  for (const { siteId, name, hidden, restricted, hosts } of chosen)
    sites.set(siteId, { siteId, name, hidden, restricted, hosts, seen: sites.has(siteId) })
  return [...sites.values()].sort((a, b) => (a.siteId < b.siteId ? -1 : 1))
}

/** Of every organization, for the calling thread's cache. */
export function restrictedSites({ orm }: ReadContext): { orgId: string; siteId: string }[] {
  return orm
    .select({ orgId: site.orgId, siteId: site.siteId })
    .from(site)
    .where(eq(site.restricted, true))
    .all()
}

export function changeSite({ db }: WriteContext, command: Parameters<SiteStore['change']>[0]): void {
  const { siteId, name, hidden, restricted, hosts } = command.site
  db.query(
    `INSERT INTO site (org_id, site_id, name, hidden, restricted, hosts) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT (org_id, site_id)
     DO UPDATE SET name = excluded.name, hidden = excluded.hidden, restricted = excluded.restricted,
       hosts = excluded.hosts`,
  ).run(command.orgId, siteId, name, hidden ? 1 : 0, restricted ? 1 : 0, JSON.stringify(hosts))
  noteChange(db, 'sites')
  appendAudit(db, command.audit)
}

/** Saved views: named filters that the members of an organization share. */
export function listViews({ orm }: ReadContext, orgId: string): SavedView[] {
  return orm.select().from(savedView).where(eq(savedView.orgId, orgId)).orderBy(savedView.name).all()
}

export function createView(context: WriteContext, command: Parameters<ViewStore['create']>[0]): void {
  const { db, orm } = context
  const { view, viewsMax, audit } = command
  requireFree(context, view)
  const countRow = orm.select({ n: count() }).from(savedView).where(eq(savedView.orgId, view.orgId)).get()
  if ((countRow?.n ?? 0) >= viewsMax)
    throw new StoreError('conflict', `${view.orgId} has ${viewsMax} saved views, the maximum`)
  orm.insert(savedView).values(view).run()
  appendAudit(db, audit)
}

export function changeView(context: WriteContext, command: Parameters<ViewStore['change']>[0]): void {
  const { db, orm } = context
  const { orgId, id, name, search, audit } = command
  requireFree(context, { orgId, id, name })
  const changed = orm
    .update(savedView)
    .set({ name, search })
    .where(and(eq(savedView.orgId, orgId), eq(savedView.id, id)))
    .returning({ id: savedView.id })
    .all()
  if (changed.length === 0) throw new StoreError('not_found', `${id} is not a saved view of ${orgId}`)
  appendAudit(db, audit)
}

export function removeView({ db, orm }: WriteContext, command: Parameters<ViewStore['remove']>[0]): void {
  const { orgId, id, audit } = command
  const removed = orm
    .delete(savedView)
    .where(and(eq(savedView.orgId, orgId), eq(savedView.id, id)))
    .returning({ id: savedView.id })
    .all()
  if (removed.length === 0) throw new StoreError('not_found', `${id} is not a saved view of ${orgId}`)
  appendAudit(db, audit)
}

function requireFree(
  { orm }: WriteContext,
  { orgId, id, name }: Pick<SavedView, 'orgId' | 'id' | 'name'>,
): void {
  const existingView = orm
    .select({ id: savedView.id })
    .from(savedView)
    .where(and(eq(savedView.orgId, orgId), eq(savedView.name, name), ne(savedView.id, id)))
    .get()
  if (existingView !== undefined) throw new StoreError('conflict', `${orgId} has a saved view of this name`)
}
