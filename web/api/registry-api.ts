/** The calls for pushed tool registries, site memory and robots.txt. */
import type {
  Difference as DifferenceView,
  MemoryVersionView,
  ToolFacts,
} from '../../server/api/registry/record.ts'
import type { RobotsDetail, RobotsTestView, RobotsView, SetView } from '../../server/robots/robots.ts'
import { exchange, get, json, post } from './api.ts'

/** A JSON value as JSON.parse returns it. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json }
export interface JsonObject {
  [name: string]: Json
}

export type Tool = ToolFacts & { tool: JsonObject } // `tool` as it was pushed

export interface Difference extends Omit<DifferenceView, 'before' | 'after'> {
  before?: Json
  after?: Json
}

export interface ToolVersion {
  version: number
  at: string
  change: 'added' | 'changed' | 'removed' | 'restored'
  differences: Difference[]
  tool: JsonObject
}

export interface ToolHistory {
  tool: Tool
  versions: ToolVersion[] // newest first
}

export type MemoryVersion = MemoryVersionView

export interface Memory extends MemoryVersion {
  siteId: string
  firstSeenAt: string
  snapshot: JsonObject
}

export interface MemoryHistory {
  memory: Memory
  versions: MemoryVersion[] // newest first
}

export type RobotsVersion = RobotsView
export type RobotsTest = RobotsTestView
export type { RobotsDetail }

const pageMax = 200

const itemPath = (path: string, ...parts: string[]): string =>
  `/api/${path}/${parts.map(encodeURIComponent).join('/')}`

/** Reads pages of a list until its end or until it has `max` items. */
async function readAllPages<T>(
  siteIds: string[],
  max: number,
  signal: AbortSignal,
  ask: (params: URLSearchParams, signal: AbortSignal) => Promise<{ list: T[]; nextCursor: string | null }>,
): Promise<{ list: T[]; hasMore: boolean }> {
  const first = new URLSearchParams(siteIds.map((siteId) => ['siteId', siteId]))
  const items: T[] = []
  let cursor: string | null = null
  do {
    const params: URLSearchParams = cursor === null ? first : new URLSearchParams({ cursor })
    params.set('limit', `${pageMax}`)
    const page = await ask(params, signal)
    items.push(...page.list)
    cursor = page.nextCursor
  } while (cursor !== null && items.length < max)
  return { list: items, hasMore: cursor !== null }
}

export const registryApi = {
  /** All registered tools, by site and name. */
  tools: (siteIds: string[], max: number, signal: AbortSignal) =>
    readAllPages(siteIds, max, signal, async (params) => {
      const { tools, nextCursor } = await get<{ tools: Tool[]; nextCursor: string | null }>(
        `/api/tools?${params}`,
        signal,
      )
      return { list: tools, nextCursor }
    }),
  /** The response as text, because JSON.parse would round numbers. */
  toolText: async (siteId: string, name: string, signal: AbortSignal) =>
    (await exchange(itemPath('tools', siteId, name), { signal })).text(),
  memories: (siteIds: string[], max: number, signal: AbortSignal) =>
    readAllPages(siteIds, max, signal, async (params) => {
      const { memory, nextCursor } = await get<{ memory: Memory[]; nextCursor: string | null }>(
        `/api/memory?${params}`,
        signal,
      )
      return { list: memory, nextCursor }
    }),
  /** As text, because JSON.parse would round numbers. */
  memoryText: async (siteId: string, signal: AbortSignal) =>
    (await exchange(itemPath('memory', siteId), { signal })).text(),
  memoryVersion: (siteId: string, version: number, signal: AbortSignal) =>
    get<{ memory: Memory; differences: Difference[] }>(
      itemPath('memory', siteId, 'versions', `${version}`),
      signal,
    ),
  /** The version in force of each site that has a robots.txt. */
  robotsSites: async (signal: AbortSignal) =>
    (await get<{ sites: RobotsVersion[] }>('/api/robots', signal)).sites,
  robotsVersions: async (siteId: string, signal: AbortSignal) =>
    (await get<{ versions: RobotsVersion[] }>(itemPath('robots', siteId), signal)).versions,
  robotsDetail: (siteId: string, version: number, signal: AbortSignal) =>
    get<RobotsDetail>(itemPath('robots', siteId, 'versions', `${version}`), signal),
  setRobots: async (robots: { siteId: string; text: string; from?: string }) =>
    json<SetView>(await post('/api/robots', robots)),
  testRobots: async (robots: { siteId: string; text: string }) =>
    json<RobotsTest>(await post('/api/robots/test', robots)),
}
