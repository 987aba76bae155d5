/** Filters of a page of counts (`filter=vendor:GPTBot` in the address), and links to the same events in Logs. */
import { place, query, withQuery } from '../app/router.ts'

/** The fields of GET /v1/traces by which links filter Logs. */
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

export interface ChosenFilter {
  name: string
  value: string
}

/** How each filter is called, and the field of Logs that is filtered alike; null: Logs has none. */
export const filterable: { readonly [name: string]: { word: string; logs: keyof LogsFilter | null } } = {
  vendor: { word: 'vendor', logs: 'vendor' },
  name: { word: 'name', logs: 'name' },
  purpose: { word: 'purpose', logs: 'purpose' },
  class: { word: 'class', logs: 'agentClass' },
  trust: { word: 'trust', logs: 'trust' },
  tool: { word: 'tool', logs: 'tool' },
  page: { word: 'page', logs: null },
  outcome: { word: 'outcome', logs: 'outcome' },
  type: { word: 'type', logs: 'type' },
  protocol: { word: 'protocol', logs: 'protocol' },
  decision: { word: 'decision', logs: 'decision' },
  rule: { word: 'rule', logs: null },
  reason: { word: 'reason', logs: null },
}

/** Pages whose numbers obey filters. */
const filteredPages = new Set(['/detect', '/auth', '/authz', '/analytics'])

export const canFilter = (): boolean => filteredPages.has(place.value.path)

/** As the server reads them: what has no colon is left to it to refuse. */
export function filtersOf(params: URLSearchParams): ChosenFilter[] {
  return params.getAll('filter').map((text) => {
    const colon = text.indexOf(':')
    return { name: text.slice(0, Math.max(0, colon)), value: text.slice(colon + 1) }
  })
}

const textOf = ({ name, value }: ChosenFilter): string => `${name}:${value}`

/** The address with one more filter, or without it where it is there; `left` are fields of the address that go. */
export function filterHref(filter: ChosenFilter, ...left: string[]): string {
  const { path, search } = place.value
  const chosen = query.value.getAll('filter')
  const text = textOf(filter)
  const filters = chosen.includes(text) ? chosen.filter((one) => one !== text) : [...chosen, text]
  return path + withQuery(search, { filter: filters, ...Object.fromEntries(left.map((name) => [name, []])) })
}

/** The filter of a part of a chart: the one field that the part has and the whole has not. */
export function filterOfPart(part: LogsFilter, whole: LogsFilter): ChosenFilter | null {
  for (const [name, { logs }] of Object.entries(filterable)) {
    const value = logs === null ? undefined : part[logs]
    if (typeof value === 'string' && logs !== null && value !== whole[logs]) return { name, value }
  }
  return null
}

/** Addresses of the Logs page that show the events behind a number. */
/** The fields are named as in GET /v1/traces. The filters of the page go along, as far as Logs has them. */
export function logsHref({ siteIds = [], ...fields }: LogsFilter): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) params.set(name, value)
  for (const { name, value } of canFilter() ? filtersOf(query.value) : []) {
    const field = filterable[name]?.logs
    // Of a value that the link names itself, the page shows what passes the filter already.
    if (field != null && !Object.hasOwn(fields, field)) params.append(field, value)
  }
  for (const siteId of siteIds) params.append('siteId', siteId)
  return `/logs?${params.toString().replaceAll('%2A', '*')}`
}
