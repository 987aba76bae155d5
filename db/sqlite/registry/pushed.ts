/** Shared by pushed tools and site memory: compressed JSON columns, and the sites that pushed. */
import { StoreError } from '../../contract/errors.ts'
import type { Database } from 'bun:sqlite'

const decoder = new TextDecoder()

export function compressed(json: string): Uint8Array {
  return Bun.zstdCompressSync(json)
}

/** `what` names the object in the error of a database that lost it. */
export function decompressed(blob: Uint8Array | undefined, what: string): string {
  if (blob === undefined) throw new StoreError('corrupt', `the text of ${what} is missing`)
  try {
    return decoder.decode(Bun.zstdDecompressSync(blob))
  } catch {
    throw new StoreError('corrupt', `the text of ${what} cannot be read`)
  }
}

/** Whether the table has the site, or one more is within the limit. */
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

/** Deletes all versions of what a site pushed. */
export function removePushed(db: Database, orgId: string, siteId: string): void {
  for (const table of tables)
    db.query(`DELETE FROM ${table} WHERE org_id = ? AND site_id = ?`).run(orgId, siteId)
}
