/** Addresses of the Logs page that show the events behind a number. */

export interface LogsFilter {
  type?: string
  outcome?: string
  agentClass?: string
  vendor?: string
  name?: string
  purpose?: string
  trust?: string
  tool?: string
  protocol?: string
  decision?: string
  sessionId?: string
  siteIds?: string[]
  since?: string
  until?: string
}

/** The members are named as in GET /v1/traces. */
export function logsHref({ siteIds = [], ...members }: LogsFilter): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(members)) if (value !== undefined) params.set(name, value)
  for (const siteId of siteIds) params.append('siteId', siteId)
  return `/logs?${params.toString().replaceAll('%2A', '*')}`
}
