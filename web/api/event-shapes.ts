/** Events as the appliance returns them, and their filters. */

/** A trace event as the client sent it. The server validated these fields; others can be anything. */
export interface TraceEvent {
  id: string
  siteId: string
  sessionId: string
  occurredAt: string
  type: string
  outcome: string
  tool?: string | null
  durationMs?: number | null
  error?: string | null
  agent?: {
    class?: string | null
    trust?: string | null
    vendor?: string | null
    name?: unknown // not validated before schema 13
    purpose?: unknown
    verdict?: unknown // not validated before schema 19
    evidence?: unknown
    userAgent?: string | null
    robots?: unknown // by the robots.txt in force: allowed, disallowed
    robotsRule?: unknown // the version and its line
  } | null
  policy?: { decision?: string | null; ruleId?: string | null; reason?: string | null } | null
  metadata?: {
    page?: unknown
    method?: unknown // of a request, as the next two
    status?: unknown
    bytes?: unknown
    address?: unknown
    protocol?: unknown
    subject?: unknown
    traceId?: unknown // of OpenTelemetry, as the next ones
    spanId?: unknown
    parentSpanId?: unknown
    span?: unknown // its name
  } | null
}

/** The record of an event: what the appliance alone knows of it. */
export interface EventProvenance {
  door: string | null
  key: string | null
  receivedAt: string
  verdict: string | null
  judgedBy: 'appliance' | 'sender' | 'unknown' | null
  observedBy: string | null
  evidence: { [name: string]: unknown } | null
  network: string | null
}

export interface ReceivedEvent {
  receivedAt: string
  event: TraceEvent
  record?: EventProvenance | undefined // absent from a node of the release before
}

export interface EventFilter {
  types: string[]
  outcomes: string[]
  /** Any other filter of GET /v1/traces by its name: `vendor`, `siteId`, `since` and so on. */
  where?: { name: string; value: string }[]
}

/** A filter as query parameters. */
export function filterParams(filter: EventFilter): URLSearchParams {
  const params = new URLSearchParams()
  for (const type of filter.types) params.append('type', type)
  for (const outcome of filter.outcomes) params.append('outcome', outcome)
  for (const { name, value } of filter.where ?? []) params.append(name, value)
  return params
}
