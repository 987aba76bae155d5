/** The store's interface for tool registries and site memory, with their versions. */

/** A pushed descriptor. `json` is the text as sent; equal values have an equal `digest`. */
export interface ToolRecord {
  name: string
  digest: string
  json: string
}

export interface ToolPush {
  orgId: string
  siteId: string
  tools: ToolRecord[] // unique names
  replace: boolean // marks the site's other tools removed
  now: number
  sitesMax: number // limit per organization
  toolsMax: number // limit per site, removed tools included
  versionsMax: number // versions stored per tool, the newest
}

export type ToolChange = 'added' | 'changed' | 'removed' | 'restored'

/** What a push changed, or the limit that rejected it. */
export type ToolPushResult = { [change in ToolChange]: number } | { over: 'sites' | 'tools' }

export interface StoredTool {
  siteId: string
  name: string
  version: number
  firstAtMs: number
  changedAtMs: number
  removedAtMs: number | null
  json: string
}

export interface ToolQuery {
  orgId: string
  siteIds: string[] // any of; [] = every site
  withRemoved: boolean
  after: { siteId: string; name: string } | null // in the order (siteId, name)
  limit: number
  bytesMax: number // bytes of JSON per page; a page has at least one tool
}

export interface ToolVersion {
  version: number
  atMs: number
  change: ToolChange
  json: string
}

export interface MemoryPush {
  orgId: string
  siteId: string
  digest: string
  json: string // the snapshot as sent
  score: number
  computed: boolean
  now: number
  sitesMax: number
  versionsMax: number
}

export interface MemoryVersion {
  version: number
  atMs: number
  score: number
  computed: boolean
  bytes: number
}

export interface StoredMemory extends MemoryVersion {
  siteId: string
  firstAtMs: number
  json: string
}

export interface MemoryQuery {
  orgId: string
  siteIds: string[]
  after: string | null // site id
  limit: number
  bytesMax: number
}

export interface RegistryStore {
  pushTools(push: ToolPush): Promise<ToolPushResult>
  tools(query: ToolQuery): Promise<{ tools: StoredTool[]; hasMore: boolean }>
  /** A tool and its newest versions, newest first; null for an unknown tool. */
  tool(query: {
    orgId: string
    siteId: string
    name: string
    limit: number
  }): Promise<{ tool: StoredTool; versions: ToolVersion[] } | null>
  pushMemory(push: MemoryPush): Promise<'added' | 'changed' | 'same' | 'over'>
  memories(query: MemoryQuery): Promise<{ memories: StoredMemory[]; hasMore: boolean }>
  /** One version of a site's memory; the newest when `version` is null. */
  memory(query: { orgId: string; siteId: string; version: number | null }): Promise<StoredMemory | null>
  /** Newest first. */
  memoryVersions(query: { orgId: string; siteId: string; limit: number }): Promise<MemoryVersion[]>
}
