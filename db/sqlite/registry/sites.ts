/** Bounds the sites that pushes may name: hostile ones must not grow the registry without end. */
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
