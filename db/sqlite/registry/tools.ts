/** Pushed tools in SQLite: one row per tool that refers to its newest version, with compressed descriptors. */
import type { Database } from 'bun:sqlite'
import type {
  StoredTool,
  ToolChange,
  ToolPush,
  ToolPushResult,
  ToolQuery,
  ToolRecord,
  ToolVersion,
} from '../../contract/registry.ts'
import type { ReadContext, WriteContext } from '../threads/contexts.ts'
import { compressed, decompressed, registerSite } from './pushed.ts'

interface Known {
  name: string
  version: number
  digest: string
  removedAtMs: number | null
}

/** All or nothing: limits are checked before anything is written. */
export function pushTools({ db }: WriteContext, push: ToolPush): ToolPushResult {
  const { orgId, siteId, tools, replace } = push
  const known = new Map(knownTools(db, orgId, siteId).map((tool) => [tool.name, tool]))
  const added = tools.filter(({ name }) => !known.has(name)).length
  if (known.size + added > push.toolsMax) return { over: 'tools' }
  if (tools.length > 0 && !registerSite(db, 'registry_tool', orgId, siteId, push.sitesMax))
    return { over: 'sites' }
  const counts = { added: 0, changed: 0, removed: 0, restored: 0 }
  for (const tool of tools) {
    const change = changeOf(known.get(tool.name), tool)
    if (change === null) continue
    counts[change]++
    writeVersion(db, push, tool, change, (known.get(tool.name)?.version ?? 0) + 1)
  }
  if (!replace) return counts
  const sent = new Set(tools.map(({ name }) => name))
  for (const { name, version, digest, removedAtMs } of known.values()) {
    if (sent.has(name) || removedAtMs !== null) continue
    counts.removed++
    const json = versionJson(db, orgId, siteId, name, version)
    writeVersion(db, push, { name, digest, json }, 'removed', version + 1)
  }
  return counts
}

function changeOf(known: Known | undefined, { digest }: ToolRecord): ToolChange | null {
  if (known === undefined) return 'added'
  if (known.removedAtMs !== null) return 'restored'
  return known.digest === digest ? null : 'changed'
}

function knownTools(db: Database, orgId: string, siteId: string): Known[] {
  return db
    .query<Known, [string, string]>(
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
     ON CONFLICT DO UPDATE SET version = ?4, digest = ?5, changed_at_ms = ?6, removed_at_ms = ?7`,
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

type Row = Omit<StoredTool, 'json'> & { descriptor: Uint8Array }

const toolColumns = `tool.site_id AS siteId, tool.name AS name, version, first_at_ms AS firstAtMs,
  changed_at_ms AS changedAtMs, removed_at_ms AS removedAtMs, descriptor
  FROM registry_tool AS tool JOIN registry_tool_version USING (org_id, site_id, name, version)`

function toolOf({ descriptor, ...tool }: Row): StoredTool {
  return { ...tool, json: decompressed(descriptor, tool.name) }
}

export function listTools({ db }: ReadContext, query: ToolQuery): { tools: StoredTool[]; hasMore: boolean } {
  const { orgId, siteIds, withRemoved, after, limit, bytesMax } = query
  const from = after ?? { siteId: '', name: '' }
  const rows = db
    .query<Row, [string, string, string, number, string, number]>(
      `SELECT ${toolColumns}
       WHERE org_id = ?1 AND (tool.site_id, tool.name) > (?2, ?3) AND (?4 = 1 OR removed_at_ms IS NULL)
         AND (?5 = '[]' OR tool.site_id IN (SELECT value FROM json_each(?5)))
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

export function findTool(
  { db }: ReadContext,
  { orgId, siteId, name, limit }: { orgId: string; siteId: string; name: string; limit: number },
): { tool: StoredTool; versions: ToolVersion[] } | null {
  const row = db
    .query<Row, [string, string, string]>(
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
