/** `createGateway`: reads traces, metrics and the audit log with a secret key, typed and page after page. */
import { nowMs } from '../platform/clock.ts'
import { IntelError, callWithRetries } from '../wire/retry.ts'
import { connectionTo, type Connection, type Fetch } from '../wire/connection.ts'
import { send } from '../wire/request.ts'
import type { CompleteEvent } from '../client/event.ts'

export interface GatewayOptions {
  url: string
  /** `agtx_sk_…`. It belongs on the server only. */
  secretKey: string
  /** When a call gives up on an appliance that is away, 60,000 by default. */
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
  metadata: { [member: string]: unknown }
  occurredAt: string
}

export interface AuditQuery {
  since?: string | Date
  until?: string | Date
  actor?: string
  action?: string
}

export interface Gateway {
  /** Every matching event, newest first, over all pages: `for await (const event of gateway.traces({ since }))`. */
  traces(query?: TracesQuery): AsyncGenerator<CompleteEvent, void, undefined>
  metrics(query?: MetricsQuery): Promise<Metrics>
  /** Newest first. */
  exportAudit(query?: AuditQuery): Promise<AuditEntry[]>
  /** The same as CSV, as it streams in. `raw` turns the guard against spreadsheet formulas off. */
  exportAuditCsv(query?: AuditQuery & { raw?: boolean }): Promise<ReadableStream<Uint8Array>>
}

/** Throws on a wrong key or address. Calls repeat while the appliance is away, then reject with an `IntelError`. */
export function createGateway(options: GatewayOptions): Gateway {
  const { url, secretKey, fetch, requestTimeoutMs, deadlineMs = 60_000 } = options
  const connection = connectionTo({
    ...{ url, key: secretKey, kind: 'secret', option: 'secretKey' },
    ...{ fetch, requestTimeoutMs },
  })
  const get = (path: string): Promise<{ [member: string]: unknown }> =>
    callWithRetries(connection, { method: 'GET', path }, { nowMs, deadlineMs })
  return {
    async *traces(query = {}) {
      let cursor: string | null = null
      do {
        const page = await get(`/v1/traces${queryText({ limit: 200, ...query }, cursor)}`)
        if (!Array.isArray(page['events']))
          throw new IntelError('the answer is no page of traces', { status: 200 })
        yield* page['events'] as CompleteEvent[]
        cursor = typeof page['nextCursor'] === 'string' ? page['nextCursor'] : null
      } while (cursor !== null)
    },
    async metrics(query = {}) {
      return (await get(`/v1/metrics${queryText(query, null)}`)) as unknown as Metrics
    },
    async exportAudit(query = {}) {
      const body = JSON.stringify(query)
      const call = { method: 'POST', path: '/v1/audit/export', body } as const
      const answer = await callWithRetries(connection, call, { nowMs, deadlineMs })
      if (!Array.isArray(answer['entries']))
        throw new IntelError('the answer is no audit export', { status: 200 })
      return answer['entries'] as AuditEntry[]
    },
    exportAuditCsv: (query = {}) => streamCsv(connection, query),
  }
}

/** One attempt and no timeout: an export of years may take its time. */
async function streamCsv(connection: Connection, query: object): Promise<ReadableStream<Uint8Array>> {
  const body = JSON.stringify({ ...query, format: 'csv' })
  const call = { method: 'POST', path: '/v1/audit/export', body } as const
  const response = await send(connection, call, new AbortController().signal)
  if (response.status === 200 && response.body !== null) return response.body
  const text = await response.text()
  throw new IntelError(`the audit export was answered ${response.status}: ${text.slice(0, 500)}`, response)
}

/** Several values mean any of them; '' means that the member is missing. `type` takes a trailing `.*`. */
type Filter = string | string[]

export interface TracesQuery {
  since?: string | Date // inclusive
  until?: string | Date // exclusive
  type?: Filter
  agentClass?: Filter
  vendor?: Filter
  name?: Filter // agent.name, such as GPTBot
  purpose?: Filter // agent.purpose
  trust?: Filter
  outcome?: Filter
  siteId?: Filter
  sessionId?: Filter
  tool?: Filter
  protocol?: Filter
  decision?: Filter
  subject?: Filter
  /** Any text of the event; needs `since`. */
  q?: string
  /** Events a page, at most and by default 200 here: fewer requests for the same events. */
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

/** With a cursor only the limit goes along: the cursor carries its filters. */
function queryText(query: TracesQuery | MetricsQuery, cursor: string | null): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || (cursor !== null && name !== 'limit')) continue
    for (const each of [value].flat())
      params.append(name, each instanceof Date ? each.toISOString() : String(each))
  }
  if (cursor !== null) params.set('cursor', cursor)
  const text = params.toString()
  return text === '' ? '' : `?${text}`
}
