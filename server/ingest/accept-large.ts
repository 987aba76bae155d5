/**
 * Parses a large body of events one event at a time, with a step after each, so that other requests run in between. It
 * accepts what `accept.ts` accepts, which parses a body in one piece; a test compares the two.
 */
import { isUtf8 } from 'node:buffer'
import { AppError, type Issue } from '../errors.ts'
import { notUtf8, parseJson } from '../http/body.ts'
import { limits } from '../limits.ts'
import { exactJson, hasMoreOpeners } from '../text/json-scan.ts'
import {
  hasSpace,
  longValue,
  partBytes,
  pastSpace,
  shortValue,
  signs,
  type Skip,
  type Steps,
} from '../text/json-steps.ts'
import {
  acceptLine,
  byteOrderMark,
  isBlank,
  isNamedEvents,
  lineText,
  noLines,
  notEvents,
  notObject,
  tooManyEvents,
  type EventsMediaType,
} from './accept.ts'
import { mayContainUnstorable, validateEvent } from './check-event.ts'
import { fieldName, observedDepthMax, observedOpenersMax } from './observed-text.ts'
import { overLimitIssue, rejected, type Accepted, type Observations, type OverLimit } from './rejected.ts'

/** Smaller bodies take a few milliseconds, whatever they hold. */
export const largeBodyBytes = 256 * 1024

export function acceptInSteps(
  body: Uint8Array,
  type: EventsMediaType,
  siteIds: readonly string[],
): Steps<Accepted> {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  return type === 'application/x-ndjson' ? linesInSteps(bytes, siteIds) : bodyInSteps(bytes, siteIds)
}

const lineFeed = 0x0a

function* linesInSteps(bytes: Buffer, siteIds: readonly string[]): Steps<Accepted> {
  const accepted: Accepted = { sent: 0, records: [], positions: [], rejected: [] }
  let first: unknown = null
  let offset = startsWithMark(bytes) ? byteOrderMark.length : 0
  for (;;) {
    offset = yield* pastSpace(bytes, offset)
    if (offset === bytes.length) break
    if (accepted.sent === limits.eventsPerRequestMax) throw tooManyEvents()
    const feed = bytes.indexOf(lineFeed, offset)
    const end = feed < 0 ? bytes.length : feed
    const event = acceptLargeLine(accepted, trimmed(bytes.subarray(offset, end)), siteIds)
    if (accepted.sent++ === 0) first = event
    offset = end
    yield null
  }
  if (accepted.sent === 0) throw noLines()
  accepted.sample ??= first
  return accepted
}

function startsWithMark(json: Buffer): boolean {
  return json.subarray(0, byteOrderMark.length).equals(byteOrderMark)
}

function trimmed(line: Buffer): Buffer {
  let end = line.length
  while (end > 0 && isBlank(line[end - 1]!)) end--
  return line.subarray(0, end)
}

function acceptLargeLine(accepted: Accepted, line: Buffer, siteIds: readonly string[]): unknown {
  if (line.length > limits.eventBytesMax && isUtf8(line)) {
    const start = line.toString('utf8', 0, limits.rejectedExcerptBytesMax)
    accepted.rejected.push(rejected(accepted.sent, null, [overLimitIssue('too_large')], start))
    return null
  }
  const text = lineText(line)
  const checks = { checkCharacters: mayContainUnstorable(text), isUtf8: false }
  return acceptLine(accepted, accepted.sent, text, siteIds, checks)
}

type Read = Accepted | 'missing' | 'no list'

function* bodyInSteps(json: Buffer, siteIds: readonly string[]): Steps<Accepted> {
  if (!isUtf8(json)) throw notUtf8()
  const start = yield* pastSpace(json, startsWithMark(json) ? byteOrderMark.length : 0)
  if (start === json.length) parseJson('') // throws that it is empty
  if (json[start] !== signs.openBrace) throw notObject()
  let read: Read = 'missing'
  let observed: Pick<Observations, 'entries' | 'isTooLarge'> | null = null
  let events: unknown[] = []
  let offset = yield* pastSpace(json, start + 1)
  let pausedAt = offset
  let fields = 0
  while (json[offset] === signs.quote) {
    if (++fields > fieldsMax) throw tooManyFields()
    const name = whole(shortValue(json, offset) ?? (yield* longValue(json, offset)))
    const nameText = overLimit(offset, name) === null ? textOf(json, offset, name.at) : '""'
    parseJson(nameText)
    const colon = hasSpace(json, name.at) ? yield* pastSpace(json, name.at) : name.at
    if (json[colon] !== signs.colon) throw invalidJson()
    const valueAt = hasSpace(json, colon + 1) ? yield* pastSpace(json, colon + 1) : colon + 1
    if (isNamedEvents(nameText) && json[valueAt] === signs.openBracket) {
      events = []
      const list = yield* listInSteps(json, valueAt, siteIds, events)
      read = list.accepted
      offset = list.end
    } else if (fieldName(nameText) === 'observed') {
      const value = whole(shortValue(json, valueAt) ?? (yield* longValue(json, valueAt)))
      observed = readObservations(json, valueAt, value)
      offset = value.at
    } else {
      const value = whole(shortValue(json, valueAt) ?? (yield* longValue(json, valueAt)))
      // What no event may be is passed over, here as in `accept.ts`.
      if (overLimit(valueAt, value) === null) parseJson(textOf(json, valueAt, value.at))
      if (isNamedEvents(nameText)) read = 'no list'
      offset = value.at
    }
    offset = hasSpace(json, offset) ? yield* pastSpace(json, offset) : offset
    if (json[offset] !== signs.comma) break
    offset = hasSpace(json, offset + 1) ? yield* pastSpace(json, offset + 1) : offset + 1
    if (json[offset] !== signs.quote) throw invalidJson()
    if (offset - pausedAt < partBytes) continue
    pausedAt = offset
    yield null
  }
  if (json[offset] !== signs.closeBrace || (yield* pastSpace(json, offset + 1)) !== json.length)
    throw invalidJson()
  const accepted = requireEvents(read)
  if (observed !== null) accepted.observations = { ...observed, events }
  return accepted
}

/** The field is parsed in one turn, so it has a limit of its own. */
function readObservations(
  json: Buffer,
  start: number,
  { at: end, depth }: Skip,
): Pick<Observations, 'entries' | 'isTooLarge'> {
  const isTooLarge = end - start > limits.observedBytesMax
  const text = isTooLarge || depth > observedDepthMax ? 'null' : textOf(json, start, end)
  return { entries: hasMoreOpeners(text, observedOpenersMax) ? null : parseJson(text), isTooLarge }
}

/** Beside the events. Each may be a list of events, of which only the last one counts. */
const fieldsMax = 1_000

function tooManyFields(): AppError {
  return new AppError('invalid_body', `A large body can have at most ${fieldsMax} fields beside the events.`)
}

function requireEvents(read: Read): Accepted {
  if (read === 'missing') throw notEvents('required', 'is required')
  if (read === 'no list') throw notEvents('wrong_type', 'must be an array')
  if (read.sent === 0) throw notEvents('required', 'must contain at least one event')
  return read
}

/** The events of the list at `open`, and where it ends. `events` gets the user agent of each, for `observed.ts`. */
function* listInSteps(
  json: Buffer,
  open: number,
  siteIds: readonly string[],
  events: unknown[],
): Steps<{ accepted: Accepted; end: number }> {
  const accepted: Accepted = { sent: 0, records: [], positions: [], rejected: [] }
  let first: unknown
  let offset = yield* pastSpace(json, open + 1)
  if (json[offset] === signs.closeBracket) return { accepted, end: offset + 1 }
  for (;;) {
    if (accepted.sent === limits.eventsPerRequestMax) throw tooManyEvents()
    const value = whole(shortValue(json, offset) ?? (yield* longValue(json, offset)))
    const event = acceptOne(json, offset, value, siteIds, accepted)
    events.push(agentOnly(event))
    if (accepted.sent++ === 0) first = event
    yield null
    offset = hasSpace(json, value.at) ? yield* pastSpace(json, value.at) : value.at
    if (json[offset] === signs.closeBracket) break
    if (json[offset] !== signs.comma) throw invalidJson()
    offset = hasSpace(json, offset + 1) ? yield* pastSpace(json, offset + 1) : offset + 1
  }
  accepted.sample ??= first
  return { accepted, end: offset + 1 }
}

/** The user agent of an event, without the rest of it. */
function agentOnly(event: unknown): unknown {
  const { agent } = (event ?? {}) as { agent?: { userAgent?: unknown } | null }
  return { agent: { userAgent: agent?.userAgent } }
}

/** Adds the event to those accepted or rejected. Returns it; null when it is over a limit. */
function acceptOne(
  json: Buffer,
  start: number,
  value: Skip,
  siteIds: readonly string[],
  accepted: Accepted,
): unknown {
  const exceededLimit = overLimit(start, value)
  const sentMax =
    exceededLimit === null ? value.at : Math.min(value.at, start + limits.rejectedExcerptBytesMax)
  const eventText = textOf(json, start, sentMax)
  const event = exceededLimit === null ? parseJson(eventText) : null
  const issues: Issue[] = exceededLimit === null ? [] : [overLimitIssue(exceededLimit)]
  const record =
    exceededLimit === null ? validateEvent(event, siteIds, mayContainUnstorable(eventText), issues) : null
  if (record === null) {
    accepted.rejected.push(rejected(accepted.sent, event, issues, eventText))
    return event
  }
  if (!value.isExact) record.json = exactJson(eventText)
  accepted.sample ??= event
  accepted.records.push(record)
  accepted.positions.push(accepted.sent)
  return event
}

function overLimit(start: number, { at: end, depth }: Skip): OverLimit | null {
  if (depth > limits.eventDepthMax) return 'too_deep'
  return end - start > limits.eventBytesMax ? 'too_large' : null
}

function textOf(json: Buffer, start: number, end: number): string {
  return json.toString('utf8', start, end)
}

function whole(value: Skip): Skip {
  if (value.at < 0) throw invalidJson()
  return value
}

function invalidJson(): AppError {
  return new AppError('invalid_json', 'The body is not valid JSON.')
}
