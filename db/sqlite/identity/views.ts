/** Saved views in SQLite: named filters that the members of an organization share. */
import { and, count, eq, ne } from 'drizzle-orm'
import { StoreError } from '../../contract/errors.ts'
import type { SavedView, ViewStore } from '../../contract/store.ts'
import { appendAudit } from '../audit/append.ts'
import type { ReadContext, WriteContext } from '../threads/contexts.ts'
import { savedView } from './schema.ts'

export function listViews({ orm }: ReadContext, orgId: string): SavedView[] {
  return orm.select().from(savedView).where(eq(savedView.orgId, orgId)).orderBy(savedView.name).all()
}

export function createView(context: WriteContext, command: Parameters<ViewStore['create']>[0]): void {
  const { db, orm } = context
  const { view, viewsMax, audit } = command
  requireFree(context, view)
  const known = orm.select({ n: count() }).from(savedView).where(eq(savedView.orgId, view.orgId)).get()
  if ((known?.n ?? 0) >= viewsMax)
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
  const other = orm
    .select({ id: savedView.id })
    .from(savedView)
    .where(and(eq(savedView.orgId, orgId), eq(savedView.name, name), ne(savedView.id, id)))
    .get()
  if (other !== undefined) throw new StoreError('conflict', `${orgId} has a saved view of this name`)
}
