/** Reads the filters of contract §6 from a query string, and one page of the events that match them. */
import { filterableFields, traceParameter, type FilterLists } from '../../../db/contract/event-fields.ts'
import {
  invalidQuery,
  parseQueryTime,
  readLimit,
  type ParameterKind,
  type Query,
} from '../../http/request.ts'
import { isLongerThan } from '../../text/text.ts'
import { limits } from '../../limits.ts'
import type { EventFilter, EventPage, EventPosition, EventStore } from '../../../db/contract/store.ts'
import type { Cipher } from '../../system/encryption.ts'

interface ListParameter {
  list: keyof FilterLists | 'networks'
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

/** Parameters of contract §6 whose names are not those of the fields. */
const aliases = filterableFields.map(({ name, filter, charsMax }): [string, ListParameter] => [
  traceParameter(name),
  { list: filter, charsMax, ...forms[name] },
])

/** Parameters named like fields: exact, repeated for any of, empty for events without the field. */
const listParameters: { readonly [name: string]: ListParameter } = {
  ...Object.fromEntries(fieldParameters),
  ...Object.fromEntries(aliases),
  network: {
    list: 'networks',
    charsMax: limits.networkCharsMax,
    form: { pattern: /^[0-9a-f.:]+\/(?:24|48)$/, example: 'a network such as 192.0.2.0/24 or 2001:db8::/48' },
  },
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
    if (name === 'network' && values.includes(''))
      throw invalidQuery(name, 'network must name a network: most events have none')
    filter[parameter.list] = canonical([...(filter[parameter.list] ?? []), ...values])
  }
  const since = query.one('since')
  if (since !== undefined) filter.sinceMs = parseQueryTime('since', since)
  const until = query.one('until')
  if (until !== undefined) filter.untilMs = parseQueryTime('until', until)
  const text = query.one('q')
  if (text !== undefined) {
    filter.text = readText(text)
    // Otherwise it would scan every stored event.
    if (since === undefined)
      throw invalidQuery('since', 'q requires since, the oldest time to search', 'required')
  }
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

/** The text to search, the parameter `q`. */
export function readText(text: string): string {
  if (text === '' || isLongerThan(text, limits.searchCharsMax))
    throw invalidQuery('q', `q must have between 1 and ${limits.searchCharsMax} characters`, 'wrong_length')
  return text
}

/** A cursor contains its filters, and its URL must fit into a request line. */
function requireSmall(query: Query, filter: EventFilter): void {
  if (Buffer.byteLength(JSON.stringify(filter)) <= limits.filterBytesMax) return
  const sizes = Object.keys(listParameters).map((name) => ({
    name,
    chars: (query.many(name) ?? []).join().length,
  }))
  const { name } = sizes.reduce((largest, size) => (size.chars > largest.chars ? size : largest))
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

export const pageParameters: Record<string, ParameterKind> = {
  limit: 'one',
  cursor: 'one',
  ...filterParameters,
}

interface TracePage extends EventPage {
  nextCursor: string | null
}

/** A page of `orgId`'s events, newest first; throws 400 `invalid_query` that names the wrong parameter. */
export async function readPage(
  services: { events: Pick<EventStore, 'page'>; cursorCipher: Cipher },
  orgId: string,
  query: Query,
  provenance = false, // adds to each event who says so
): Promise<TracePage> {
  const requestFilter = readFilter(query)
  const limit = readLimit(query, limits.tracesPageDefault, limits.tracesPageMax)
  const cursor = query.one('cursor')
  const walk =
    cursor === undefined
      ? { filter: requestFilter, before: null, ceilingSeq: null }
      : decodeCursor(services.cursorCipher, cursor, orgId, requestFilter)
  const { filter, before: position, ceilingSeq } = walk
  const bytesMax = limits.pageBytesMax
  const page = await services.events.page({
    orgId,
    filter,
    limit,
    bytesMax,
    before: position,
    ceilingSeq,
    provenance,
  })
  const next = page.next
  const nextCursor =
    next && encodeCursor(services.cursorCipher, { orgId, filter, before: next, ceilingSeq: page.ceilingSeq })
  return { ...page, nextCursor }
}

/** The contents of a cursor: the position, its filters, and the newest arrival that the walk covers. */
interface Walk {
  orgId: string
  filter: EventFilter
  before: EventPosition
  ceilingSeq: number
}

const purpose = 'traces-cursor'

function encodeCursor(cursorCipher: Cipher, { orgId, filter, before: position, ceilingSeq }: Walk): string {
  return cursorCipher.encrypt(purpose, [orgId, filter, position.occurredAtMs, position.seq, ceilingSeq])
}

/**
 * Decodes a cursor for `orgId`. `requestFilter` is the filter of the request: empty or equal to the cursor's own.
 * Throws 400 for another filter, another organization or an invalid cursor (contract §6).
 */
function decodeCursor(cursorCipher: Cipher, text: string, orgId: string, requestFilter: EventFilter): Walk {
  const opened = cursorCipher.decrypt(purpose, text) as [string, EventFilter, number, number, number] | null
  if (!opened || opened[0] !== orgId) throw invalidQuery('cursor', 'Invalid cursor.')
  const [, filter, occurredAtMs, seq, ceilingSeq] = opened
  if (Object.keys(requestFilter).length > 0 && fingerprint(requestFilter) !== fingerprint(filter)) {
    throw invalidQuery(
      'cursor',
      'This cursor was issued for other filters. Send it without filters or with the same ones.',
    )
  }
  return { orgId, filter, before: { occurredAtMs, seq }, ceilingSeq }
}

function fingerprint(filter: EventFilter): string {
  return JSON.stringify(Object.entries(filter).sort(([a], [b]) => (a < b ? -1 : 1)))
}
