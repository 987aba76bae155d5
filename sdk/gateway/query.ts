/** The questions of the gateway, their answers, and how a question becomes a query string. */

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
export function queryText(query: TracesQuery | MetricsQuery, cursor: string | null): string {
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
