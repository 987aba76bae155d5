/** The sites that have pushed: how many there may be, since hostile ones must not grow without end, and their going. */
import type { Database } from 'bun:sqlite'

/** Whether the site is among those of the table, or there is room for one more. */
export function registerSite(
  db: Database,
  table: 'registry_tool' | 'memory_site',
  orgId: string,
  siteId: string,
  sitesMax: number,
): boolean {
  const known = db.query(`SELECT 1 FROM ${table} WHERE org_id = ? AND site_id = ? LIMIT 1`).get(orgId, siteId)
  if (known !== null) return true
  const row = db
    .query<{ sites: number }, [string]>(
      `SELECT count(DISTINCT site_id) AS sites FROM ${table} WHERE org_id = ?`,
    )
    .get(orgId)
  return (row?.sites ?? 0) < sitesMax
}

const tables = ['registry_tool', 'registry_tool_version', 'memory_site', 'memory_version']

/** Takes away what a site pushed, all versions of it. */
export function removePushed(db: Database, orgId: string, siteId: string): void {
  for (const table of tables)
    db.query(`DELETE FROM ${table} WHERE org_id = ? AND site_id = ?`).run(orgId, siteId)
}
