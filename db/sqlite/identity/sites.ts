/** Sites in SQLite: named by events, with the settings that people chose. */
import { eq } from 'drizzle-orm'
import type { Site, SiteStore } from '../../contract/store.ts'
import { appendAudit } from '../audit/append.ts'
import type { ReadContext, WriteContext } from '../threads/contexts.ts'
import { member } from '../events/blocks/fields.ts'
import { site } from './schema.ts'

/** In order of their ids. */
export function listSites({ db, orm }: ReadContext, orgId: string): Site[] {
  const seen = db
    .query<{ text: string }, [string, number]>(
      `SELECT text FROM event_term JOIN event_org ON event_org.num = event_term.org
       WHERE org_id = ? AND member = ?`,
    )
    .all(orgId, member.siteId)
    .map(({ text }) => text)
  const chosen = orm.select().from(site).where(eq(site.orgId, orgId)).all()
  const sites = new Map<string, Site>()
  for (const siteId of seen)
    sites.set(siteId, { siteId, name: null, hidden: false, restricted: false, seen: true })
  for (const { siteId, name, hidden, restricted } of chosen)
    sites.set(siteId, { siteId, name, hidden, restricted, seen: sites.has(siteId) })
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

export function changeSite({ db, orm }: WriteContext, command: Parameters<SiteStore['change']>[0]): void {
  const { siteId, ...chosen } = command.site
  orm
    .insert(site)
    .values({ orgId: command.orgId, siteId, ...chosen })
    .onConflictDoUpdate({ target: [site.orgId, site.siteId], set: chosen })
    .run()
  appendAudit(db, command.audit)
}
