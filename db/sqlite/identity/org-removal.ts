/** Takes an organization out for good, when its time has come: everything of it but the audit chain. */
import { eq } from 'drizzle-orm'
import { StoreError } from '../../contract/errors.ts'
import type { OrgStore } from '../../contract/store.ts'
import { appendAudit } from '../audit/append.ts'
import type { WriteContext } from '../threads/contexts.ts'
import { org, orgDeletion } from './schema.ts'
import { takeDeliveries } from '../webhooks/deliveries.ts'

/** The audit chain outlives its organization; the event engine keeps the number it gave, in memory too. */
const keptTables = ['audit_head', 'audit_trim', 'event_org']

/** Deliveries that one step takes: half a megabyte each at most. */
const deliveriesMax = 64

/**
 * One step, as short as one of retention: of ten million events in one transaction, every other write would wait five
 * seconds and the log would hold 900 MB. A crash between two steps leaves an organization with fewer events.
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

/** What is left of an organization, which is little when it was emptied before. */
export function removeOrg(context: WriteContext, command: Parameters<OrgStore['remove']>[0]): void {
  const { db, orm } = context
  const { orgId, now, audit } = command
  requireDue(context, orgId, now)
  context.events.removeOrg(orgId)
  db.query(
    'DELETE FROM webhook_attempt WHERE delivery_seq IN (SELECT seq FROM webhook_delivery WHERE org_id = ?)',
  ).run(orgId)
  // Tables of one noun refer to each other; what is asked is only that nothing is left over at the end.
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
    throw new StoreError('conflict', `the time to remove ${orgId} has not come`)
}

/** From the schema itself, so that a table of tomorrow is not forgotten. */
function tablesWithOrg({ db }: WriteContext): string[] {
  return db
    .query<{ name: string }, []>(
      `SELECT t.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
       WHERE t.type = 'table' AND c.name = 'org_id' ORDER BY t.name`,
    )
    .all()
    .map(({ name }) => name)
}
