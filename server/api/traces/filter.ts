/** Reads the filters of contract §6 from a query string into an `EventFilter`. */
import { filterableFields, type FilterLists } from '../../../db/contract/event-fields.ts'
import type { EventFilter } from '../../../db/contract/store.ts'
import { invalidQuery, parseQueryTime, type ParameterKind, type Query } from '../../http/request.ts'
import { isLongerThan } from '../../text/text.ts'
import { limits } from '../../limits.ts'

interface ListParameter {
  list: keyof FilterLists
  charsMax: number
  form?: { pattern: RegExp; example: string }
}

/** The accepted form, where not every string is valid. */
const forms: { [name: string]: Pick<ListParameter, 'charsMax' | 'form'> } = {
  type: {
    charsMax: limits.typeCharsMax + '.*'.length,
    form: {
      pattern: /^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*(\.\*)?$/,
      example: 'a dotted type such as tool.executed, or a prefix such as tool.*',
    },
  },
  outcome: {
    charsMax: limits.outcomeCharsMax,
    form: { pattern: /^[a-z][a-z0-9_-]*$/, example: 'a word such as success, error or blocked' },
  },
}

const fieldParameters = filterableFields.map(({ name, filter, charsMax }): [string, ListParameter] => [
  name,
  { list: filter, charsMax, ...forms[name] },
])

/** Parameters named like fields: exact, repeated for any of, empty for events without the field. */
const listParameters: { readonly [name: string]: ListParameter } = {
  ...Object.fromEntries(fieldParameters),
  agentClass: { list: 'classes', charsMax: limits.classCharsMax }, // the name of `class` in contract §6
}

/** The filter parameters of traces, and whether they may repeat. */
export const filterParameters: Record<string, ParameterKind> = {
  ...Object.fromEntries(Object.keys(listParameters).map((name) => [name, 'many' as const])),
  since: 'one',
  until: 'one',
  q: 'one',
}

/** The filter of a query; throws 400 `invalid_query` that names the malformed parameter. */
export function readFilter(query: Query): EventFilter {
  const filter: EventFilter = {}
  for (const [name, parameter] of Object.entries(listParameters)) {
    const values = query.many(name)
    if (values === undefined) continue
    for (const value of values) checkValue(name, parameter, value)
    filter[parameter.list] = canonical([...(filter[parameter.list] ?? []), ...values])
  }
  const since = query.one('since')
  if (since !== undefined) filter.sinceMs = parseQueryTime('since', since)
  const until = query.one('until')
  if (until !== undefined) filter.untilMs = parseQueryTime('until', until)
  const text = query.one('q')
  if (text !== undefined) filter.text = readText(text, filter)
  requireSmall(query, filter)
  return filter
}

function checkValue(name: string, { charsMax, form }: ListParameter, value: string): void {
  if (value === '') return
  if (isLongerThan(value, charsMax))
    throw invalidQuery(name, `${name} must have at most ${charsMax} characters`, 'too_long')
  if (form !== undefined && !form.pattern.test(value))
    throw invalidQuery(name, `${name} must be ${form.example}`)
}

/** A search without `since` would scan every stored event. */
function readText(text: string, { sinceMs }: EventFilter): string {
  if (text === '' || isLongerThan(text, limits.searchCharsMax))
    throw invalidQuery('q', `q must have between 1 and ${limits.searchCharsMax} characters`, 'wrong_length')
  if (sinceMs === undefined)
    throw invalidQuery('since', 'q requires since, the oldest time to search', 'required')
  return text
}

/** A cursor contains its filters, and its URL must fit into a request line. */
function requireSmall(query: Query, filter: EventFilter): void {
  if (Buffer.byteLength(JSON.stringify(filter)) <= limits.filterBytesMax) return
  const sizes = Object.keys(listParameters).map((name) => ({
    name,
    chars: (query.many(name) ?? []).join().length,
  }))
  const { name } = sizes.reduce((most, one) => (one.chars > most.chars ? one : most))
  throw invalidQuery(
    name,
    `all filters together must have at most ${limits.filterBytesMax} bytes`,
    'too_long',
  )
}

/** Sorted and deduplicated, so that equal filters serialize equally (cursors compare them). */
function canonical(values: string[]): string[] {
  return [...new Set(values)].sort()
}
