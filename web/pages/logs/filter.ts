/** The filters of Logs in the URL, and the choices in their menus. */
import type { EventFilter, ReceivedEvent } from '../../api/api.ts'
import { fieldFilters } from '../../api/field-filters.ts'
import { filterParams } from '../../api/event-shapes.ts'
import { hourMs } from '../../../db/contract/units.ts'

/** Fields that are filtered by their exact value, named as in GET /v1/traces, with their labels. */
export const fieldNames: { readonly [name: string]: string } = Object.fromEntries(
  fieldFilters.map(({ parameter, label }) => [parameter, label]),
)

const times = ['since', 'until'] as const

/** A search without a start is ignored, because the server would have to scan all events. */
export function filterOf(query: URLSearchParams): EventFilter {
  const readAll = (name: string): string[] => [...new Set(query.getAll(name).filter((value) => value !== ''))]
  const readFirst = (name: string): string[] => readAll(name).slice(0, 1)
  const conditions = [
    ...Object.keys(fieldNames).flatMap((name) => readAll(name).map((value) => ({ name, value }))),
    ...times.flatMap((name) => readFirst(name).map((value) => ({ name, value }))),
    ...(readFirst('since').length > 0 ? readFirst('q').map((value) => ({ name: 'q', value })) : []),
  ]
  return {
    types: readAll('type'),
    outcomes: readAll('outcome'),
    ...(conditions.length > 0 && { where: conditions }),
  }
}

export function isOpen(filter: EventFilter): boolean {
  return filter.types.length === 0 && filter.outcomes.length === 0 && filter.where === undefined
}

/** A text search reads page by page and cannot be followed live. */
export function isSearch(filter: EventFilter): boolean {
  return filter.where?.some(({ name }) => name === 'q') ?? false
}

export function hasText(query: URLSearchParams): boolean {
  return isSearch(filterOf(query))
}

/** The start of a search if no time is selected. */
export function textSinceMs(nowMs: number): number {
  return Math.floor(nowMs / hourMs) * hourMs - 24 * hourMs
}

/** The URL of a file with all events of the filter. */
export function exportHref(query: URLSearchParams, format: 'csv' | 'ndjson' | 'parquet'): string {
  const params = filterParams(filterOf(query))
  params.set('format', format)
  return `/api/export/events?${params}`
}

/** The part of a URL that a saved view contains: its filters, not the open event. */
export function viewSearch(search: string): string {
  const params = filterParams(filterOf(new URLSearchParams(search)))
  const text = params.toString().replaceAll('%2A', '*')
  return text === '' ? '' : `?${text}`
}

const seenMax = 200

/** Values of a field in the shown rows, as suggestions. */
export function seenValues(
  events: Iterable<Pick<ReceivedEvent, 'event' | 'record'>>,
  name: string,
): string[] {
  const values = new Set<string>()
  for (const event of events) {
    const value = fieldFilters.find(({ parameter }) => parameter === name)?.valueOf(event)
    if (typeof value === 'string' && value !== '') values.add(value)
    if (values.size >= seenMax) break
  }
  return [...values].sort()
}

export interface Choice {
  value: string
  count: number | null
}

/** Every stored type, and every prefix shared by several types, with their number of events. */
export function typeChoices(byType: { [type: string]: number }, chosen: string[]): Choice[] {
  const byPrefix = new Map<string, { types: number; count: number }>()
  for (const [type, count] of Object.entries(byType)) {
    const dot = type.indexOf('.')
    if (dot === -1) continue
    const prefix = `${type.slice(0, dot)}.*`
    const sum = byPrefix.get(prefix) ?? { types: 0, count: 0 }
    byPrefix.set(prefix, { types: sum.types + 1, count: sum.count + count })
  }
  const choices: Choice[] = Object.entries(byType).map(([value, count]) => ({ value, count }))
  for (const [value, sum] of byPrefix) if (sum.types > 1) choices.push({ value, count: sum.count })
  for (const value of chosen) {
    if (!choices.some((choice) => choice.value === value)) choices.push({ value, count: null })
  }
  // A prefix sorts before its types, because "*" comes before every letter.
  return choices.sort((a, b) => (a.value < b.value ? -1 : 1))
}

const knownOutcomes = ['success', 'blocked', 'error']

export function outcomeChoices(seenOutcomes: Iterable<string>, chosen: string[]): Choice[] {
  const values = new Set([...knownOutcomes, ...[...seenOutcomes].sort(), ...chosen])
  return [...values].map((value) => ({ value, count: null }))
}

/** A type filter is a type, or a prefix with `.*`. */
export function isTypeFilter(text: string): boolean {
  return text.length <= 66 && /^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*(\.\*)?$/.test(text)
}
