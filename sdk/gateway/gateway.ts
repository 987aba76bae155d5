/** `createGateway`: a typed client for traces, counts, Explore and the audit log, which follows pages and retries. */
import { nowMs } from '../platform/clock.ts'
import { IntelError, callWithRetries } from '../wire/retry.ts'
import { connectionTo, type Connection, type Fetch } from '../wire/connection.ts'
import { send } from '../wire/request.ts'
import type { CompleteEvent } from '../client/event.ts'

export interface GatewayOptions {
  url: string
  /** `agtx_sk_…`. Use it on servers only. */
  secretKey: string
  /** How long a call retries before it rejects. Default: 60,000. */
  deadlineMs?: number
  requestTimeoutMs?: number
  fetch?: Fetch
}

export interface AuditEntry {
  id: string
  orgId: string
  actor: string
  action: string
  target: string
  metadata: { [field: string]: unknown }
  occurredAt: string
}

export interface AuditQuery {
  since?: string | Date
  until?: string | Date
  actor?: string
  action?: string
}

export interface Gateway {
  /** All matching events, newest first: `for await (const event of gateway.traces({ since }))`. */
  traces(query?: TracesQuery): AsyncGenerator<CompleteEvent, void, undefined>
  metrics(query?: MetricsQuery): Promise<Metrics>
  /** Requests by agents, people and other programs in access logs. */
  requests(query?: MetricsQuery): Promise<RequestCounts>
  /** One measure of the stored events, by any field: `gateway.explore({ measure: 'p95', by: 'tool' })`. */
  explore(query?: ExploreQuery): Promise<Explored>
  /** Newest first. */
  exportAudit(query?: AuditQuery): Promise<AuditEntry[]>
  /** The audit log as a CSV stream. `raw` disables the escaping of spreadsheet formulas. */
  exportAuditCsv(query?: AuditQuery & { raw?: boolean }): Promise<ReadableStream<Uint8Array>>
}

/** Throws on an invalid key or address. Calls are retried until the deadline, then reject with an `IntelError`. */
export function createGateway(options: GatewayOptions): Gateway {
  const { url, secretKey, fetch, requestTimeoutMs, deadlineMs = 60_000 } = options
  const connection = connectionTo({
    url,
    key: secretKey,
    kind: 'secret',
    option: 'secretKey',
    fetch,
    requestTimeoutMs,
  })
  const get = (path: string): Promise<{ [field: string]: unknown }> =>
    callWithRetries(connection, { method: 'GET', path }, { nowMs, deadlineMs })
  return {
    async *traces(query = {}) {
      let cursor: string | null = null
      do {
        const page = await get(`/v1/traces${queryText({ limit: 200, ...query }, cursor)}`)
        if (!Array.isArray(page['events']))
          throw new IntelError('the response is not a page of traces', { status: 200 })
        yield* page['events'] as CompleteEvent[]
        cursor = typeof page['nextCursor'] === 'string' ? page['nextCursor'] : null
      } while (cursor !== null)
    },
    async metrics(query = {}) {
      return (await get(`/v1/metrics${queryText(query, null)}`)) as unknown as Metrics
    },
    async requests(query = {}) {
      return (await get(`/v1/requests${queryText(query, null)}`)) as unknown as RequestCounts
    },
    async explore(query = {}) {
      const answer = await get(`/v1/explore${queryText(query, null)}`)
      if (!Array.isArray(answer['rows']))
        throw new IntelError('the response is not an answer of Explore', { status: 200 })
      return answer as unknown as Explored
    },
    async exportAudit(query = {}) {
      const body = JSON.stringify(query)
      const call = { method: 'POST', path: '/v1/audit/export', body } as const
      const answer = await callWithRetries(connection, call, { nowMs, deadlineMs })
      if (!Array.isArray(answer['entries']))
        throw new IntelError('the response is not an audit export', { status: 200 })
      return answer['entries'] as AuditEntry[]
    },
    exportAuditCsv: (query = {}) => streamCsv(connection, query),
  }
}

/** One attempt without a timeout, because a long export takes time. */
async function streamCsv(connection: Connection, query: object): Promise<ReadableStream<Uint8Array>> {
  const body = JSON.stringify({ ...query, format: 'csv' })
  const call = { method: 'POST', path: '/v1/audit/export', body } as const
  const response = await send(connection, call, new AbortController().signal)
  if (response.status === 200 && response.body !== null) return response.body
  const text = await response.text()
  throw new IntelError(`the audit export failed (${response.status}): ${text.slice(0, 500)}`, response)
}

/** An array matches any of its values. '' matches events without the field. `type` accepts a trailing `.*`. */
type Filter = string | string[]

export interface TracesQuery {
  since?: string | Date // inclusive
  until?: string | Date // exclusive
  type?: Filter
  agentClass?: Filter
  vendor?: Filter
  name?: Filter // agent.name, such as GPTBot
  purpose?: Filter // agent.purpose
  robots?: Filter // agent.robots: allowed or disallowed
  trust?: Filter
  verdict?: Filter // such as contradicted, whoever gave it
  judgedBy?: Filter // who gave the verdict: appliance, sender or unknown
  observedBy?: Filter // who saw what was judged: appliance, or the id of an ingest key
  door?: Filter // how the event came in, such as events or access-log
  key?: Filter // the id of the ingest key
  network?: Filter // of contradicted requests, such as 192.0.2.0/24
  outcome?: Filter
  siteId?: Filter
  sessionId?: Filter
  tool?: Filter
  protocol?: Filter
  decision?: Filter
  subject?: Filter
  /** Text in any string of the event. Requires `since`. */
  q?: string
  /** Events per page, at most 200. Default: 200. */
  limit?: number
}

export interface MetricsQuery {
  since?: string | Date
  until?: string | Date
  siteId?: string
}

export interface Metrics {
  since: string
  until: string | null
  total: number
  byType: { [type: string]: number }
  byOutcome: { [outcome: string]: number }
  byHour: { hour: string; count: number }[]
  rows: {
    orgId: string
    siteId: string
    bucketStart: string
    type: string
    outcome: string
    count: number
  }[]
  truncated?: boolean
}

type RequestKind = 'agent' | 'person' | 'asset' | 'bot'
type Requests = { [kind in RequestKind]: number }

export interface RequestCounts {
  since: string
  until: string | null
  byKind: { [kind in RequestKind]: { requests: number; bytes: number } }
  byHour: ({ hour: string } & Requests)[]
  bySite: ({ siteId: string } & Requests)[]
}

export interface ExploreQuery {
  /** Default: events. Quantiles are of `durationMs`, `sessions` and `subjects` are distinct values. */
  measure?: 'events' | 'errors' | 'sessions' | 'subjects' | 'p50' | 'p95' | 'p99' | 'bytes' | 'tokens'
  /** A field such as `vendor`, or a path in metadata such as `metadata.cart.currency`. Default: all events together. */
  by?: string
  /** At most 1,000. Default: 10. The rest is one row, `other`. */
  rows?: number
  /** `vendor:GPTBot`, `metadata.plan:pro`. Values of one name are alternatives. */
  filter?: Filter
  siteId?: Filter
  /** Only events with this text in any string value, ignoring case. */
  q?: string
  since?: string | Date // inclusive; default: 30 days ago
  until?: string | Date // exclusive
  /** Default: one step. */
  step?: 'hour' | 'day' | 'week' | 'month'
  /** The time zone of the steps. Default: UTC. */
  zone?: string
}

export interface ExploredNumbers {
  events: number
  total: number | null // null: nothing to measure
  steps: (number | null)[] // between two of the edges
  error: number // the relative error of `total`; 0 for exact numbers
}

export interface Explored {
  measure: NonNullable<ExploreQuery['measure']>
  by: string | null
  zone: string
  edges: string[]
  rows: (ExploredNumbers & { value: string })[] // the largest first; quantiles by their number of events
  missing: ExploredNumbers | null // events without the field
  other: (ExploredNumbers & { values: number }) | null // all further values together
  all: ExploredNumbers
  truncated: boolean // more values than can be counted individually
  expired: number // upper bound of the matching events that retention deleted
}

/** With a cursor only the limit is sent, because the cursor contains the filters. */
function queryText(query: TracesQuery | MetricsQuery | ExploreQuery, cursor: string | null): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || (cursor !== null && name !== 'limit')) continue
    for (const item of [value].flat())
      params.append(name, item instanceof Date ? item.toISOString() : String(item))
  }
  if (cursor !== null) params.set('cursor', cursor)
  const text = params.toString()
  return text === '' ? '' : `?${text}`
}
