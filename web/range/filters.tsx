/** Filters of a page of counts (`filter=vendor:GPTBot` in the URL): values that set them, and links to Logs. */
import './filters.css'
import { place, query, withQuery } from '../app/router.ts'
import { vouchedJudges } from '../../db/contract/provenance.ts'
import { visibleText } from '../components/text.tsx'
import type { ComponentChildren } from 'preact'

/** The parameters of GET /v1/traces in links to Logs. */
export interface LogsFilter {
  type?: string
  outcome?: string
  agentClass?: string
  vendor?: string
  name?: string
  purpose?: string
  robots?: string
  trust?: string
  verdict?: string
  judgedBy?: string
  observedBy?: string
  door?: string
  key?: string
  tool?: string
  protocol?: string
  decision?: string
  sessionId?: string
  siteIds?: string[]
  since?: string
  until?: string
}

export interface ChosenFilter {
  name: string
  value: string
}

/** The label of each filter and the matching parameter of Logs; null: Logs has none. */
export const filterable: { readonly [name: string]: { word: string; logs: keyof LogsFilter | null } } = {
  vendor: { word: 'vendor', logs: 'vendor' },
  name: { word: 'name', logs: 'name' },
  purpose: { word: 'purpose', logs: 'purpose' },
  robots: { word: 'robots.txt', logs: 'robots' },
  class: { word: 'class', logs: 'agentClass' },
  trust: { word: 'trust', logs: 'trust' },
  verdict: { word: 'verdict', logs: 'verdict' },
  judgedBy: { word: 'judged by', logs: 'judgedBy' },
  observedBy: { word: 'observed by', logs: 'observedBy' },
  door: { word: 'door', logs: 'door' },
  key: { word: 'ingest key', logs: 'key' },
  tool: { word: 'tool', logs: 'tool' },
  page: { word: 'page', logs: null },
  outcome: { word: 'outcome', logs: 'outcome' },
  type: { word: 'type', logs: 'type' },
  protocol: { word: 'protocol', logs: 'protocol' },
  decision: { word: 'decision', logs: 'decision' },
  rule: { word: 'rule', logs: null },
  reason: { word: 'reason', logs: null },
}

/** Pages that support filters. */
const filteredPages = new Set(['/detect', '/auth', '/authz', '/analytics', '/analytics/explore'])

export const canFilter = (): boolean => filteredPages.has(place.value.path)

/** Splits filters at the colon. The server rejects a filter without one. */
export function filtersOf(params: URLSearchParams): ChosenFilter[] {
  return params.getAll('filter').map((text) => {
    const colon = text.indexOf(':')
    return { name: text.slice(0, Math.max(0, colon)), value: text.slice(colon + 1) }
  })
}

const textOf = ({ name, value }: ChosenFilter): string => `${name}:${value}`

/** Adds a filter to the URL, or removes it if it is present. `left` names the fields to remove. */
export function filterHref(filter: ChosenFilter, ...left: string[]): string {
  const { path, search } = place.value
  const chosen = query.value.getAll('filter')
  const text = textOf(filter)
  const filters = chosen.includes(text) ? chosen.filter((one) => one !== text) : [...chosen, text]
  return path + withQuery(search, { filter: filters, ...Object.fromEntries(left.map((name) => [name, []])) })
}

/** The filter of a segment of a chart: the field that the segment has and the whole chart has not. */
export function filterOfPart(part: LogsFilter, whole: LogsFilter): ChosenFilter | null {
  for (const [name, { logs }] of Object.entries(filterable)) {
    const value = logs === null ? undefined : part[logs]
    if (typeof value === 'string' && logs !== null && value !== whole[logs]) return { name, value }
  }
  return null
}

/** Links to Logs with the events behind a number, named as in GET /v1/traces, plus the page's own filters. */
export function logsHref({ siteIds = [], ...fields }: LogsFilter): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) params.set(name, value)
  for (const { name, value } of canFilter() ? filtersOf(query.value) : []) {
    const field = filterable[name]?.logs
    // Omits the page's filter on a field that the link itself sets.
    if (field != null && !Object.hasOwn(fields, field)) params.append(field, value)
  }
  // Pages count the verdicts that the appliance vouches for.
  if (params.has('verdict') && !params.has('judgedBy'))
    for (const judge of vouchedJudges) params.append('judgedBy', judge)
  for (const siteId of siteIds) params.append('siteId', siteId)
  return `/logs?${params.toString().replaceAll('%2A', '*')}`
}

interface ValueLinkProps {
  filter: ChosenFilter
  logs?: string | undefined // where Logs has this filter
  children: ComponentChildren
}

const shownMax = 60

/** A value that filters the page when clicked, with a link to its events in Logs. */
export function ValueLink({ filter, logs, children }: ValueLinkProps) {
  if (!canFilter()) return logs === undefined ? <>{children}</> : <a href={logs}>{children}</a>
  const what = `${filterable[filter.name]?.word ?? filter.name} ${visibleText(filter.value).slice(0, shownMax)}`
  return (
    <span class="value-link">
      <a href={filterHref(filter)} title={`Filter by ${what}`}>
        {children}
      </a>
      {logs !== undefined && (
        <a class="to-logs" href={logs} aria-label={`Open ${what} in Logs`} title="Open in Logs" />
      )}
    </span>
  )
}
