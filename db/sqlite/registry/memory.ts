/** Site memory in SQLite: one row per site that refers to its newest version, with compressed snapshots. */
import type {
  MemoryPush,
  MemoryQuery,
  MemoryVersion,
  RegistryStore,
  StoredMemory,
} from '../../contract/registry.ts'
import type { ReadContext, WriteContext } from '../threads/contexts.ts'
import { compressed, decompressed, registerSite } from './pushed.ts'

export function pushMemory(
  { db }: WriteContext,
  push: MemoryPush,
): Awaited<ReturnType<RegistryStore['pushMemory']>> {
  const { orgId, siteId, digest, json, score, computed, now } = push
  const known = db
    .query<{ version: number; digest: string }, [string, string]>(
      'SELECT version, digest FROM memory_site WHERE org_id = ? AND site_id = ?',
    )
    .get(orgId, siteId)
  if (known?.digest === digest) return 'same'
  if (!registerSite(db, 'memory_site', orgId, siteId, push.sitesMax)) return 'over'
  const version = (known?.version ?? 0) + 1
  db.query(
    `INSERT INTO memory_version (org_id, site_id, version, at_ms, score, computed, bytes, snapshot)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(orgId, siteId, version, now, score, computed ? 1 : 0, Buffer.byteLength(json), compressed(json))
  db.query(
    `INSERT INTO memory_site (org_id, site_id, version, digest, first_at_ms, changed_at_ms)
     VALUES (?1, ?2, ?3, ?4, ?5, ?5)
     ON CONFLICT DO UPDATE SET version = ?3, digest = ?4, changed_at_ms = ?5`,
  ).run(orgId, siteId, version, digest, now)
  db.query('DELETE FROM memory_version WHERE org_id = ? AND site_id = ? AND version <= ?').run(
    orgId,
    siteId,
    version - push.versionsMax,
  )
  return known === null ? 'added' : 'changed'
}

type Row = Omit<StoredMemory, 'json' | 'computed'> & { computed: number; snapshot: Uint8Array }

const versionColumns = 'version, at_ms AS atMs, score, computed, bytes'
const siteColumns = `site_id AS siteId, first_at_ms AS firstAtMs, memory_version.version AS version,
  at_ms AS atMs, score, computed, bytes, snapshot`

function memoryOf({ snapshot, computed, ...memory }: Row): StoredMemory {
  return { ...memory, computed: computed === 1, json: decompressed(snapshot, memory.siteId) }
}

/** Snapshots are large, so their sizes decide how many fit before any is read. */
export function listMemories(
  context: ReadContext,
  { orgId, siteIds, after, limit, bytesMax }: MemoryQuery,
): { memories: StoredMemory[]; hasMore: boolean } {
  const rows = context.db
    .query<{ siteId: string; bytes: number }, [string, string, string, number]>(
      `SELECT site_id AS siteId, bytes FROM memory_site JOIN memory_version USING (org_id, site_id, version)
       WHERE org_id = ?1 AND site_id > ?2 AND (?3 = '[]' OR site_id IN (SELECT value FROM json_each(?3)))
       ORDER BY site_id LIMIT ?4`,
    )
    .all(orgId, after ?? '', JSON.stringify(siteIds), limit + 1)
  const memories: StoredMemory[] = []
  let bytes = 0
  for (const row of rows.slice(0, limit)) {
    bytes += row.bytes
    if (memories.length > 0 && bytes > bytesMax) break
    const memory = findMemory(context, { orgId, siteId: row.siteId, version: null })
    if (memory !== null) memories.push(memory)
  }
  return { memories, hasMore: memories.length < rows.length }
}

export function findMemory(
  { db }: ReadContext,
  { orgId, siteId, version }: { orgId: string; siteId: string; version: number | null },
): StoredMemory | null {
  const row = db
    .query<Row, [string, string, number | null]>(
      `SELECT ${siteColumns} FROM memory_site JOIN memory_version USING (org_id, site_id)
       WHERE org_id = ? AND site_id = ? AND memory_version.version = coalesce(?, memory_site.version)`,
    )
    .get(orgId, siteId, version)
  return row === null ? null : memoryOf(row)
}

export function listMemoryVersions(
  { db }: ReadContext,
  { orgId, siteId, limit }: { orgId: string; siteId: string; limit: number },
): MemoryVersion[] {
  return db
    .query<Omit<MemoryVersion, 'computed'> & { computed: number }, [string, string, number]>(
      `SELECT ${versionColumns} FROM memory_version WHERE org_id = ? AND site_id = ?
       ORDER BY version DESC LIMIT ?`,
    )
    .all(orgId, siteId, limit)
    .map((row) => ({ ...row, computed: row.computed === 1 }))
}
