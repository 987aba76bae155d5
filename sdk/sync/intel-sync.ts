/** `createIntelSync`: pushes the tool registry and the site memory, which trace events do not carry. */
import { nowMs } from '../platform/clock.ts'
import { connectionTo } from '../wire/connection.ts'
import type { Fetch } from '../wire/connection.ts'
import { callWithRetries } from '../wire/retry.ts'

export interface Tool {
  name: string
  title?: string
  description?: string
  group?: string
  /** The page the tool belongs to. */
  page?: string
  inputSchema?: object
  outputSchema?: object
  /** Token cost; the appliance estimates it when left out. */
  tokens?: number
  /** Disabled tools may be in the list: the dashboard shows them as such. */
  enabled?: boolean
  annotations?: object
  [member: string]: unknown
}

export interface MemorySnapshot {
  siteMap?: object
  policies?: object
  [member: string]: unknown
}

export interface IntelSyncOptions {
  url: string
  ingestKey: string
  siteId: string
  /** When a push gives up and rejects, 60,000 by default. */
  deadlineMs?: number
  requestTimeoutMs?: number
  fetch?: Fetch
}

export interface IntelSync {
  /**
   * Pushes the registry again as a whole; what did not change stays as it was. With `replace`, tools that are not in
   * the list are marked removed. Resolves with the number of tools taken.
   */
  pushTools(tools: Tool[], options?: { replace?: boolean }): Promise<number>
  /** Pushes the snapshot and its quality score, 0 to 100; the appliance computes a score when it is left out. */
  pushMemory(snapshot: MemorySnapshot, score?: number): Promise<void>
}

/** Throws on a wrong key or address. Pushes are tried again for a minute, then reject with an `IntelError`. */
export function createIntelSync(options: IntelSyncOptions): IntelSync {
  const { url, ingestKey, siteId, fetch, requestTimeoutMs, deadlineMs = 60_000 } = options
  if (typeof siteId !== 'string' || siteId === '') throw new TypeError('siteId must name the site')
  const connection = connectionTo({
    ...{ url, key: ingestKey, kind: 'ingest', option: 'ingestKey' },
    ...{ fetch, requestTimeoutMs },
  })
  const push = (path: string, body: object): Promise<{ [member: string]: unknown }> =>
    callWithRetries(connection, { method: 'POST', path, body: JSON.stringify(body) }, { nowMs, deadlineMs })
  return {
    async pushTools(tools, { replace = false } = {}) {
      const answer = await push(`/v1/sdk/tools${replace ? '?mode=replace' : ''}`, { siteId, tools })
      return typeof answer['tools'] === 'number' ? answer['tools'] : tools.length
    },
    async pushMemory(snapshot, score) {
      await push('/v1/sdk/memory', { siteId, snapshot, ...(score === undefined ? {} : { score }) })
    },
  }
}
