/** The tools that read single events: find_events, get_event and explain_refusal. */
import { explainDecision } from '../counts/details.ts'
import { encodeCursor, readCursor } from '../http/request.ts'
import { AppError } from '../errors.ts'
import { isoTime } from '../clock.ts'
import { limits } from '../limits.ts'
import { textFields, type EventPosition } from '../../db/contract/event-fields.ts'
import { countEvents, type Counting } from './counting.ts'
import {
  answerOf,
  numberArg,
  readQuestion,
  textArg,
  type Args,
  type Asking,
  type Question,
  type Run,
} from './question.ts'
import { clean, cleanJson, uncleaned } from './untrusted.ts'
import { hourMs } from '../../db/contract/units.ts'

interface Fields {
  [name: string]: unknown
}

const fieldsIn = (value: unknown): Fields =>
  typeof value === 'object' && value !== null ? (value as Fields) : {}

/** In lists texts are shorter, because an assistant reads all of them; get_event has them whole. */
const briefCharsMax = 120

/** An event in a list: times and durations, and everything that strangers wrote in `untrusted`. */
export function briefEvent(event: Fields, occurredAtMs: number) {
  const named = Object.fromEntries(textFields.map(({ name, path }) => [name, valueAt(event, path)]))
  const texts: Fields = {
    ...pick(event, ['id']),
    ...pick(named, Object.keys(named)),
    ...pick(event, ['error']),
  }
  const durationMs = event['durationMs']
  return {
    occurredAt: isoTime(occurredAtMs),
    ...(typeof durationMs === 'number' ? { durationMs } : {}),
    untrusted: texts,
  }
}

function valueAt(event: Fields, path: readonly string[]): unknown {
  let value: unknown = event
  for (const name of path) value = fieldsIn(value)[name]
  return value
}

const idNames = new Set(['id', 'sessionId'])

function pick(from: Fields, names: string[]): Fields {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = from[name]
      return typeof value === 'string' && value !== ''
        ? [[name, clean(value, idNames.has(name) ? undefined : briefCharsMax)]]
        : []
    }),
  )
}

const countingOf = ({ orgId, clock }: Asking, { filter }: Question): Counting => ({
  orgId,
  filter,
  nowMs: clock.now(),
})

/** The matches that a walk gives. Counts of hours include expired events, so they serve only where none has expired. */
export async function countStored(asking: Asking, question: Question) {
  const { store, orgId } = asking
  const { events } = await store.events.tail({ orgId, filter: {}, afterSeq: 0, limit: 1 })
  const [oldest] = events
  const storedSinceMs = oldest === undefined || oldest.seq === 1 ? -Infinity : oldest.receivedAtMs + hourMs
  return countEvents(store.events, { ...countingOf(asking, question), storedSinceMs })
}

interface Walk extends EventPosition {
  ceilingSeq: number
}

async function findEvents(asking: Asking, args: Args) {
  const { store, cursorCipher, orgId } = asking
  const { limit: _limit, cursor: _cursor, ...filters } = args
  const cursor = walkOf(asking, 'mcp-events', args)
  const question = readQuestion(asking, cursor?.filters.asked ?? filters)
  const [page, counts] = await Promise.all([
    store.events.page({
      orgId,
      filter: question.filter,
      limit: numberArg(args, 'limit', 10),
      bytesMax: limits.mcpListBytesMax,
      before: cursor?.position ?? null,
      ceilingSeq: cursor?.position.ceilingSeq ?? null,
    }),
    cursor === null ? countStored(asking, question) : cursor.filters,
  ])
  const { next, ceilingSeq } = page
  const { total, complete } = counts ?? { total: null, complete: false }
  const walked = { asked: cursor?.filters.asked ?? fixedTimes(filters, question), total, complete }
  const nextCursor = next && encodeCursor(cursorCipher, 'mcp-events', orgId, walked, { ...next, ceilingSeq })
  return {
    ...answerOf(question, {
      count: total,
      complete: next === null && complete,
      link: question.link('/logs'),
    }),
    events: page.events.map(({ json, occurredAtMs }) => briefEvent(JSON.parse(json) as Fields, occurredAtMs)),
    nextCursor,
  }
}

/** A walk over pages: its first question with the count, and where it continues. */
interface Walked {
  asked: Args
  total: number | null
  complete: boolean
}

export function walkOf({ cursorCipher, orgId }: Asking, list: string, args: Args) {
  const query = { one: (name: string) => textArg(args, name), many: () => undefined }
  return readCursor<Walked, Walk>(cursorCipher, list, orgId, query, null)
}

/** The same question later: its range does not move. */
export function fixedTimes({ last: _last, ...args }: Args, { filter }: Question): Args {
  const { sinceMs, untilMs } = filter
  return { ...args, since: isoTime(sinceMs), ...(untilMs === undefined ? {} : { until: isoTime(untilMs) }) }
}

/** As sent, or with the escapes that an answer has shown. */
async function eventWithId({ store, orgId }: Asking, id: string) {
  const storedEvent = await store.events.byId({ orgId, id })
  const plain = uncleaned(id)
  return storedEvent ?? (plain === id ? null : store.events.byId({ orgId, id: plain }))
}

async function getEvent(asking: Asking, args: Args) {
  const id = textArg(args, 'id') ?? ''
  const storedEvent = await eventWithId(asking, id)
  if (storedEvent === null) throw new AppError('not_found', 'No event has this id.')
  const event = JSON.parse(storedEvent.json) as Fields
  const { value, isCut } = cleanJson(event, limits.mcpEventCharsMax)
  const eventId = String(event['id'])
  return {
    filter: { id: clean(id) },
    range: { since: isoTime(storedEvent.occurredAtMs), until: isoTime(storedEvent.occurredAtMs + 1) },
    count: 1,
    complete: !isCut,
    link: eventLink(asking, eventId),
    receivedAt: isoTime(storedEvent.receivedAtMs),
    untrusted: value,
  }
}

const whyLink = ({ baseUrl }: Asking, id: string): string =>
  `${baseUrl}/authz?${new URLSearchParams({ why: id })}`

const eventLink = ({ baseUrl }: Asking, id: string): string =>
  `${baseUrl}/logs?${new URLSearchParams({ event: id })}`

const earlierMax = 4

/** A refusal by its id, or the newest one that matches. */
async function explainRefusal(asking: Asking, args: Args) {
  const { store, orgId } = asking
  const { id: givenId, ...filters } = args
  const question = readQuestion(asking, { type: ['authz.*'], ...filters, decision: ['deny'] })
  const counts = await countStored(asking, question)
  const page = { orgId, filter: question.filter, limit: 1, before: null, ceilingSeq: null }
  const stored =
    typeof givenId === 'string'
      ? await eventWithId(asking, givenId)
      : (await store.events.page(page)).events[0]
  if (stored == null) throw new AppError('not_found', 'No refusal matches.')
  const event = JSON.parse(stored.json) as Fields
  const id = String(event['id'])
  const {
    event: _event,
    receivedAt: _at,
    earlier,
    earlierComplete,
    tool,
  } = await explainDecision(store, orgId, id)
  const rule = fieldsIn(event['policy'])['ruleId']
  return {
    ...answerOf(question, {
      count: counts?.total ?? null,
      complete: counts?.complete === true,
      // Without an id the link has no text of the event.
      link: givenId === undefined ? question.link('/logs') : whyLink(asking, id),
    }),
    refusal: briefEvent(event, stored.occurredAtMs),
    sameRule: typeof rule === 'string' ? await refusalsBy(asking, question, rule, stored.occurredAtMs) : null,
    toolThen:
      tool === null
        ? null
        : { version: tool.version, since: tool.since, untrusted: clean(tool.description ?? '') },
    earlier: earlier.slice(0, earlierMax).map((earlierEvent) => {
      const fields = earlierEvent.event as Fields
      return briefEvent(fields, Date.parse(String(fields['occurredAt'])))
    }),
    earlierEvents: earlier.length,
    earlierComplete,
  }
}

/** Refusals by the same rule in the 24 hours up to one, itself included; null: too many to count. */
async function refusalsBy({ store, orgId }: Asking, { filter }: Question, rule: string, atMs: number) {
  const { sinceMs: _since, untilMs: _until, text: _text, ...fields } = filter
  const { rows, complete } = await store.events.filteredCounts({
    orgId,
    filter: fields,
    also: [{ by: 'ruleId', values: [rule] }],
    breakdowns: [],
    edges: [atMs - 24 * hourMs, atMs + 1],
    budgetMs: 1_000,
  })
  return complete ? rows.reduce((sum, { count }) => sum + count, 0) : null
}

export const eventTools: { readonly [name: string]: Run } = {
  find_events: findEvents,
  get_event: getEvent,
  explain_refusal: explainRefusal,
}
