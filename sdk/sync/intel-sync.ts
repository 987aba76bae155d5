/** `createIntelSync`: pushes the tool registry and the site memory to the appliance. */
import { nowMs } from '../platform/clock.ts'
import { connectionTo, type Fetch } from '../wire/connection.ts'
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
  /** Token cost. Default: estimated by the appliance. */
  tokens?: number
  /** The dashboard marks disabled tools. */
  enabled?: boolean
  annotations?: object
  [field: string]: unknown
}

export interface MemorySnapshot {
  siteMap?: object
  policies?: object
  [field: string]: unknown
}

export interface IntelSyncOptions {
  url: string
  ingestKey: string
  siteId: string
  /** How long a push retries before it rejects. Default: 60,000. */
  deadlineMs?: number
  requestTimeoutMs?: number
  fetch?: Fetch
}

export interface IntelSync {
  /**
   * Adds and updates tools. With `replace`, tools that are not in the list are marked as removed. Resolves with the
   * number of tools received.
   */
  pushTools(tools: Tool[], options?: { replace?: boolean }): Promise<number>
  /** Pushes a snapshot with its quality score, 0 to 100. Default: computed by the appliance. */
  pushMemory(snapshot: MemorySnapshot, score?: number): Promise<void>
}

/** Throws on an invalid key or address. Pushes are retried until the deadline, then reject with an `IntelError`. */
export function createIntelSync(options: IntelSyncOptions): IntelSync {
  const { url, ingestKey, siteId, fetch, requestTimeoutMs, deadlineMs = 60_000 } = options
  if (typeof siteId !== 'string' || siteId === '') throw new TypeError('siteId must be a non-empty string')
  const connection = connectionTo({
    url,
    key: ingestKey,
    kind: 'ingest',
    option: 'ingestKey',
    fetch,
    requestTimeoutMs,
  })
  const push = (path: string, body: object): Promise<{ [field: string]: unknown }> =>
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
