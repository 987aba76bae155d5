/** Pushed tools and site memory: a row per object that refers to its newest version, and compressed texts. */
import { StoreError } from '../../contract/errors.ts'
import type { Database } from '../database.ts'
import type {
  MemoryPush,
  MemoryQuery,
  MemoryVersion,
  RegistryStore,
  StoredMemory,
  StoredTool,
  ToolChange,
  ToolPush,
  ToolPushResult,
  ToolQuery,
  ToolRecord,
  ToolVersion,
} from '../../contract/registry.ts'
import type { ReadContext, WriteContext } from '../contexts.ts'

/** The registry verbs of the writer and the readers, by name. */
export const registryWriteVerbs = {
  'registry.pushTools': pushTools,
  'registry.pushMemory': pushMemory,
}

export const registryReadVerbs = {
  'registry.tools': listTools,
  'registry.tool': findTool,
  'registry.memories': listMemories,
  'registry.memory': findMemory,
  'registry.memoryVersions': listMemoryVersions,
}

interface KnownTool {
  name: string
  version: number
  digest: string
  removedAtMs: number | null
}

/** All or nothing: limits are checked before anything is written. */
function pushTools({ db }: WriteContext, push: ToolPush): ToolPushResult {
  const { orgId, siteId, tools, replace } = push
  const toolsByName = new Map(knownTools(db, orgId, siteId).map((tool) => [tool.name, tool]))
  const added = tools.filter(({ name }) => !toolsByName.has(name)).length
  if (toolsByName.size + added > push.toolsMax) return { over: 'tools' }
  if (tools.length > 0 && !registerSite(db, 'registry_tool', orgId, siteId, push.sitesMax))
    return { over: 'sites' }
  const counts = { added: 0, changed: 0, removed: 0, restored: 0 }
  for (const tool of tools) {
    const change = changeOf(toolsByName.get(tool.name), tool)
    if (change === null) continue
    counts[change]++
    writeVersion(db, push, tool, change, (toolsByName.get(tool.name)?.version ?? 0) + 1)
  }
  if (!replace) return counts
  const sentNames = new Set(tools.map(({ name }) => name))
  for (const { name, version, digest, removedAtMs } of toolsByName.values()) {
    if (sentNames.has(name) || removedAtMs !== null) continue
    counts.removed++
    const json = versionJson(db, orgId, siteId, name, version)
    writeVersion(db, push, { name, digest, json }, 'removed', version + 1)
  }
  return counts
}

function changeOf(knownTool: KnownTool | undefined, { digest }: ToolRecord): ToolChange | null {
  if (knownTool === undefined) return 'added'
  if (knownTool.removedAtMs !== null) return 'restored'
  return knownTool.digest === digest ? null : 'changed'
}

function knownTools(db: Database, orgId: string, siteId: string): KnownTool[] {
  return db
    .query<KnownTool, [string, string]>(
      `SELECT name, version, digest, removed_at_ms AS removedAtMs FROM registry_tool
       WHERE org_id = ? AND site_id = ?`,
    )
    .all(orgId, siteId)
}

function writeVersion(
  db: Database,
  { orgId, siteId, now, versionsMax }: ToolPush,
  { name, digest, json }: ToolRecord,
  change: ToolChange,
  version: number,
): void {
  db.query(
    `INSERT INTO registry_tool_version (org_id, site_id, name, version, at_ms, change, descriptor)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  ).run(orgId, siteId, name, version, now, change, compressed(json))
  db.query(
    `INSERT INTO registry_tool (org_id, site_id, name, version, digest, first_at_ms, changed_at_ms, removed_at_ms)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7)
     ON CONFLICT (org_id, site_id, name)
     DO UPDATE SET version = ?4, digest = ?5, changed_at_ms = ?6, removed_at_ms = ?7`,
  ).run(orgId, siteId, name, version, digest, now, change === 'removed' ? now : null)
  db.query(
    'DELETE FROM registry_tool_version WHERE org_id = ? AND site_id = ? AND name = ? AND version <= ?',
  ).run(orgId, siteId, name, version - versionsMax)
}

function versionJson(db: Database, orgId: string, siteId: string, name: string, version: number): string {
  const row = db
    .query<{ descriptor: Uint8Array }, [string, string, string, number]>(
      `SELECT descriptor FROM registry_tool_version
       WHERE org_id = ? AND site_id = ? AND name = ? AND version = ?`,
    )
    .get(orgId, siteId, name, version)
  return decompressed(row?.descriptor, `${siteId} ${name}`)
}

type ToolRow = Omit<StoredTool, 'json'> & { descriptor: Uint8Array }

const toolColumns = `tool.site_id AS siteId, tool.name AS name, version, first_at_ms AS firstAtMs,
  changed_at_ms AS changedAtMs, removed_at_ms AS removedAtMs, descriptor
  FROM registry_tool AS tool JOIN registry_tool_version USING (org_id, site_id, name, version)`

function toolOf({ descriptor, ...tool }: ToolRow): StoredTool {
  return { ...tool, json: decompressed(descriptor, tool.name) }
}

function listTools({ db }: ReadContext, query: ToolQuery): { tools: StoredTool[]; hasMore: boolean } {
  const { orgId, siteIds, withRemoved, after: lastTool, limit, bytesMax } = query
  const from = lastTool ?? { siteId: '', name: '' }
  const rows = db
    .query<ToolRow, [string, string, string, number, string, number]>(
      `SELECT ${toolColumns}
       WHERE org_id = ?1 AND (tool.site_id, tool.name) > (?2, ?3) AND (?4 = 1 OR removed_at_ms IS NULL)
         AND (?5 = '[]' OR tool.site_id IN ${db.dialect.textsOf('?5')})
       ORDER BY tool.site_id, tool.name LIMIT ?6`,
    )
    .all(orgId, from.siteId, from.name, withRemoved ? 1 : 0, JSON.stringify(siteIds), limit + 1)
  const tools: StoredTool[] = []
  let bytes = 0
  for (const row of rows.slice(0, limit)) {
    const tool = toolOf(row)
    bytes += tool.json.length
    if (tools.length > 0 && bytes > bytesMax) break
    tools.push(tool)
  }
  return { tools, hasMore: tools.length < rows.length }
}

function findTool(
  { db }: ReadContext,
  { orgId, siteId, name, limit }: { orgId: string; siteId: string; name: string; limit: number },
): { tool: StoredTool; versions: ToolVersion[] } | null {
  const row = db
    .query<ToolRow, [string, string, string]>(
      `SELECT ${toolColumns} WHERE org_id = ? AND tool.site_id = ? AND tool.name = ?`,
    )
    .get(orgId, siteId, name)
  if (row === null) return null
  const versions = db
    .query<Omit<ToolVersion, 'json'> & { descriptor: Uint8Array }, [string, string, string, number]>(
      `SELECT version, at_ms AS atMs, change, descriptor FROM registry_tool_version
       WHERE org_id = ? AND site_id = ? AND name = ? ORDER BY version DESC LIMIT ?`,
    )
    .all(orgId, siteId, name, limit)
    .map(({ descriptor, ...version }) => ({ ...version, json: decompressed(descriptor, name) }))
  return { tool: toolOf(row), versions }
}

function pushMemory(
  { db }: WriteContext,
  push: MemoryPush,
): Awaited<ReturnType<RegistryStore['pushMemory']>> {
  const { orgId, siteId, digest, json, score, computed, now } = push
  const storedMemory = db
    .query<{ version: number; digest: string }, [string, string]>(
      'SELECT version, digest FROM memory_site WHERE org_id = ? AND site_id = ?',
    )
    .get(orgId, siteId)
  if (storedMemory?.digest === digest) return 'same'
  if (!registerSite(db, 'memory_site', orgId, siteId, push.sitesMax)) return 'over'
  const version = (storedMemory?.version ?? 0) + 1
  db.query(
    `INSERT INTO memory_version (org_id, site_id, version, at_ms, score, computed, bytes, snapshot)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(orgId, siteId, version, now, score, computed ? 1 : 0, Buffer.byteLength(json), compressed(json))
  db.query(
    `INSERT INTO memory_site (org_id, site_id, version, digest, first_at_ms, changed_at_ms)
     VALUES (?1, ?2, ?3, ?4, ?5, ?5)
     ON CONFLICT (org_id, site_id) DO UPDATE SET version = ?3, digest = ?4, changed_at_ms = ?5`,
  ).run(orgId, siteId, version, digest, now)
  db.query('DELETE FROM memory_version WHERE org_id = ? AND site_id = ? AND version <= ?').run(
    orgId,
    siteId,
    version - push.versionsMax,
  )
  return storedMemory === null ? 'added' : 'changed'
}

type MemoryRow = Omit<StoredMemory, 'json' | 'computed'> & { computed: number; snapshot: Uint8Array }

const versionColumns = 'version, at_ms AS atMs, score, computed, bytes'
const siteColumns = `site_id AS siteId, first_at_ms AS firstAtMs, memory_version.version AS version,
  at_ms AS atMs, score, computed, bytes, snapshot`

function memoryOf({ snapshot, computed, ...memory }: MemoryRow): StoredMemory {
  return { ...memory, computed: computed === 1, json: decompressed(snapshot, memory.siteId) }
}

/** Snapshots are large, so their sizes decide how many fit before any is read. */
function listMemories(
  context: ReadContext,
  { orgId, siteIds, after: lastSiteId, limit, bytesMax }: MemoryQuery,
): { memories: StoredMemory[]; hasMore: boolean } {
  const rows = context.db
    .query<{ siteId: string; bytes: number }, [string, string, string, number]>(
      `SELECT site_id AS siteId, bytes FROM memory_site JOIN memory_version USING (org_id, site_id, version)
       WHERE org_id = ?1 AND site_id > ?2 AND (?3 = '[]' OR site_id IN ${context.db.dialect.textsOf('?3')})
       ORDER BY site_id LIMIT ?4`,
    )
    .all(orgId, lastSiteId ?? '', JSON.stringify(siteIds), limit + 1)
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

function findMemory(
  { db }: ReadContext,
  { orgId, siteId, version }: { orgId: string; siteId: string; version: number | null },
): StoredMemory | null {
  const row = db
    .query<MemoryRow, [string, string, number | null]>(
      `SELECT ${siteColumns} FROM memory_site JOIN memory_version USING (org_id, site_id)
       WHERE org_id = ? AND site_id = ? AND memory_version.version = coalesce(?, memory_site.version)`,
    )
    .get(orgId, siteId, version)
  return row === null ? null : memoryOf(row)
}

function listMemoryVersions(
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

const decoder = new TextDecoder()

export function compressed(json: string): Uint8Array {
  return Bun.zstdCompressSync(json)
}

/** `label` names the object in the error of a database that lost it. */
export function decompressed(blob: Uint8Array | undefined, label: string): string {
  if (blob === undefined) throw new StoreError('corrupt', `the text of ${label} is missing`)
  try {
    return decoder.decode(Bun.zstdDecompressSync(blob))
  } catch {
    throw new StoreError('corrupt', `the text of ${label} cannot be read`)
  }
}

/** Whether the table has the site, or one more is within the limit. */
function registerSite(
  db: Database,
  table: 'registry_tool' | 'memory_site',
  orgId: string,
  siteId: string,
  sitesMax: number,
): boolean {
  const siteRow = db
    .query(`SELECT 1 FROM ${table} WHERE org_id = ? AND site_id = ? LIMIT 1`)
    .get(orgId, siteId)
  if (siteRow !== null) return true
  const row = db
    .query<{ sites: number }, [string]>(
      `SELECT count(DISTINCT site_id) AS sites FROM ${table} WHERE org_id = ?`,
    )
    .get(orgId)
  return (row?.sites ?? 0) < sitesMax
}

const tables = ['registry_tool', 'registry_tool_version', 'memory_site', 'memory_version', 'robots_version']

/** Deletes all versions of what a site pushed, and of its robots.txt. */
export function removePushed(db: Database, orgId: string, siteId: string): void {
  for (const table of tables)
    db.query(`DELETE FROM ${table} WHERE org_id = ? AND site_id = ?`).run(orgId, siteId)
}
