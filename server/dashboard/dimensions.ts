/** The filters of the dashboard's counts: `filter=vendor:GPTBot`, repeatable; values of one name are alternatives. */
import { eventFields, type EventFieldName, type FilterLists } from '../../db/contract/event-fields.ts'
import type { AlsoFilter, CountedMember, EventFilter } from '../../db/contract/store.ts'
import { invalidQuery, type Query } from '../http/request.ts'
import { isLongerThan } from '../text/text.ts'

interface Dimension {
  field: EventFieldName
  list: keyof FilterLists | null // null: filters counts only
  charsMax: number
}

/** Fields with few values: not sites, which pages choose in another way, sessions or subjects. */
const dimensions: { readonly [name: string]: Dimension } = Object.fromEntries(
  eventFields
    .filter(({ name, termsMax }) => termsMax > 0 && name !== 'siteId')
    .map(({ name, filter, charsMax }) => {
      const longest = name === 'type' ? charsMax + '.*'.length : charsMax
      return [name === 'ruleId' ? 'rule' : name, { field: name, list: filter, charsMax: longest }]
    }),
)

/** The filters of a URL, in the form of the store. */
export interface CountFilter {
  named: { name: string; value: string }[]
  filter: EventFilter
  also: AlsoFilter[]
}

/** Null when hourly counts do not suffice: they combine types and outcomes with one other field. */
export function hourlyFilter({ filter, also }: CountFilter): Pick<EventFilter, 'types' | 'outcomes'> | null {
  const { types, outcomes, ...others } = filter
  if (also.length > 0 || Object.keys(others).length > 0) return null
  return { ...(types && { types }), ...(outcomes && { outcomes }) }
}

/** The intersection of two type lists, where a trailing `.*` is a prefix; null means any type. */
export function sharedTypes(a: string[] | undefined, b: string[] | undefined): string[] | null {
  if (a === undefined || b === undefined) return a ?? b ?? null
  return [...new Set(a.flatMap((one) => b.flatMap((other) => narrower(one, other))))]
}

function narrower(one: string, other: string): string[] {
  if (one === other) return [one]
  if (other.endsWith('.*') && one.startsWith(other.slice(0, -1))) return [one]
  return one.endsWith('.*') && other.startsWith(one.slice(0, -1)) ? [other] : []
}

const filtersMax = 20

/** Null when there is none. Throws 400 `invalid_query`. */
export function readCountFilter(query: Query): CountFilter | null {
  const given = [...new Set(query.many('filter') ?? [])]
  if (given.length === 0) return null
  if (given.length > filtersMax)
    throw invalidQuery('filter', `at most ${filtersMax} filters are allowed`, 'too_many')
  const found: CountFilter = { named: [], filter: {}, also: [] }
  for (const text of given) addFilter(found, text)
  return found
}

function addFilter({ named, filter, also }: CountFilter, text: string): void {
  const colon = text.indexOf(':')
  const [name, value] = [text.slice(0, Math.max(0, colon)), text.slice(colon + 1)]
  const dimension = Object.hasOwn(dimensions, name) ? dimensions[name] : undefined
  if (dimension === undefined)
    throw invalidQuery(
      'filter',
      `filter must be NAME:VALUE with one of ${Object.keys(dimensions).join(', ')}`,
    )
  if (isLongerThan(value, dimension.charsMax))
    throw invalidQuery('filter', `${name} must have at most ${dimension.charsMax} characters`, 'too_long')
  named.push({ name, value })
  const { field, list } = dimension
  if (list !== null) {
    filter[list] = [...(filter[list] ?? []), value]
    return
  }
  const by = field as CountedMember
  const known = also.find((one) => one.by === by)
  if (known) known.values.push(value)
  else also.push({ by, values: [value] })
}
