/** Takes an organization out for good, when its time has come: everything of it but the audit chain. */
import { eq } from 'drizzle-orm'
import { StoreError } from '../errors.ts'
import type { OrgStore } from '../store.ts'
import { appendAudit } from './audit.ts'
import type { WriteContext } from './contexts.ts'
import { org, orgDeletion } from './schema.ts'

/** The audit chain outlives its organization; the event engine keeps the number it gave, in memory too. */
const keptTables = ['audit_head', 'audit_trim', 'event_org']

export function removeOrg(context: WriteContext, command: Parameters<OrgStore['remove']>[0]): void {
  const { db, orm } = context
  const { orgId, now, audit } = command
  const asked = orm.select().from(orgDeletion).where(eq(orgDeletion.orgId, orgId)).get()
  if (asked === undefined || asked.dueAtMs > now) {
    throw new StoreError('conflict', `the time to remove ${orgId} has not come`)
  }
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
