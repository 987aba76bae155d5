/** Filters of a page of counts (`filter=vendor:GPTBot` in the URL): values that set them, and links to Logs. */
import './filters.css'
import { place, query, withQuery } from '../app/router.ts'
import {
  pageFields,
  pageFilterName,
  traceParameter,
  type TraceParameter,
} from '../../db/contract/event-fields.ts'
import { vouchedJudges } from '../../db/contract/provenance.ts'
import { visibleText } from '../components/text.tsx'
import type { ComponentChildren } from 'preact'

/** The parameters of GET /v1/traces in links to Logs. */
export type LogsFilter = { [name in TraceParameter]?: string } & {
  siteIds?: string[]
  since?: string
  until?: string
}

export interface ChosenFilter {
  name: string
  value: string
}

interface PageFilter {
  word: string
  logs: TraceParameter | null // the parameter of Logs; null: Logs has none
}

/** The filters of pages by name. Types and outcomes come last, because segments of charts often share them. */
export const filterable: { readonly [name: string]: PageFilter } = Object.fromEntries(
  pageFields
    .toSorted((a, b) => Number(isShared(a.name)) - Number(isShared(b.name)))
    .map((field): [string, PageFilter] => {
      // Pages are about agents, so their words for an agent's class and name are shorter.
      const word = field.label.replace(/^agent /, '')
      const logs = field.filter === null ? null : traceParameter(field.name)
      return [pageFilterName(field.name), { word, logs }]
    }),
)

function isShared(name: string): boolean {
  return name === 'type' || name === 'outcome'
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
export function filterHref(filter: ChosenFilter, ...removedFields: string[]): string {
  const { path, search } = place.value
  const chosen = query.value.getAll('filter')
  const text = textOf(filter)
  const filters = chosen.includes(text)
    ? chosen.filter((chosenText) => chosenText !== text)
    : [...chosen, text]
  return (
    path +
    withQuery(search, { filter: filters, ...Object.fromEntries(removedFields.map((name) => [name, []])) })
  )
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
  const description = `${filterable[filter.name]?.word ?? filter.name} ${visibleText(filter.value).slice(0, shownMax)}`
  return (
    <span class="value-link">
      <a href={filterHref(filter)} title={`Filter by ${description}`}>
        {children}
      </a>
      {logs !== undefined && (
        <a class="to-logs" href={logs} aria-label={`Open ${description} in Logs`} title="Open in Logs" />
      )}
    </span>
  )
}
