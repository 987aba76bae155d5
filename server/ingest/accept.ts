/** Parses the body of an ingest request into records to store and rejected events with their issues (contract §4). */
import { decodeBody, mediaType, parseJson } from '../http/body.ts'
import {
  exactJson,
  hasMoreOpeners,
  isDeeperThan,
  skipSpace,
  skipString,
  skipValue,
  type Scan,
} from '../text/json-scan.ts'
import { limits } from '../limits.ts'
import { mayContainUnstorable, validateEvent } from './check-event.ts'
import { fieldName, observedDepthMax, observedOpenersMax } from './observed-text.ts'
import { overLimitIssue, rejected, type Accepted, type OverLimit } from './rejected.ts'
import { AppError, type Issue } from '../errors.ts'
import { isUtf8 } from 'node:buffer'
import type { EventRecord } from '../../db/contract/store.ts'

export type { Accepted }
export type EventsMediaType = 'application/json' | 'application/x-ndjson'

/** The media type of an ingest body; 415 for any other. */
export function eventsMediaType(header: string | null): EventsMediaType {
  return mediaType(header, ['application/json', 'application/x-ndjson'])
}

/**
 * Validates every event of a request. `siteIds` are the sites its key is limited to; [] means all. Throws when the body
 * is not a list of 1 to 1,000 events; invalid events are listed in `rejected`. Repeated ids pass: the store
 * deduplicates.
 */
export function acceptEvents(text: string, type: EventsMediaType, siteIds: readonly string[]): Accepted {
  return type === 'application/x-ndjson' ? acceptLines(text, siteIds) : acceptBody(text, siteIds)
}

/** The list of events of a JSON body, parsed so that deep nesting or one giant event cannot block the thread. */
interface ParsedEvents {
  events: unknown[] // 1 to 1,000; null where the outline marks an event as over a limit
  observed: unknown // the field of this name, see observed.ts
  outline: Outline | null // set when it was needed to parse
}

/** Longer bodies are scanned before they are parsed; shorter ones parse within 2 ms even if they are all brackets. */
const scannedLength = 8 * 1024

/** Ordinary events have one bracket per 100 characters; parsing costs 0.2 µs per bracket, more when they nest. */
const charsPerOpenerMin = 32

/** Throws 400 when the body is not a list of events or the list is empty, 413 above 1,000 events. */
function parseEvents(text: string): ParsedEvents {
  const isDense = text.length > scannedLength && hasMoreOpeners(text, text.length / charsPerOpenerMin)
  if (isDense && text[skipSpace(text, 0)] !== '{') throw notObject()
  const outline = isDense ? outlineBody(text) : null
  if (isDense && outline === null) throw new AppError('invalid_json', 'The body is not valid JSON.')
  if (outline !== null && outline.events.length > limits.eventsPerRequestMax) throw tooManyEvents()
  const body = parseJson(outline === null ? text : withoutOver(text, outline))
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw notObject()
  }
  const events = Object.hasOwn(body, 'events') ? body['events'] : undefined
  if (events === undefined) throw notEvents('required', 'is required')
  if (!Array.isArray(events)) throw notEvents('wrong_type', 'must be an array')
  if (events.length === 0) throw notEvents('required', 'must contain at least one event')
  if (events.length > limits.eventsPerRequestMax) throw tooManyEvents()
  const observed = Object.hasOwn(body, 'observed') ? body['observed'] : undefined
  return { events, observed, outline }
}

const hint = `Send {"events": [ … ]} with 1 to ${limits.eventsPerRequestMax} events.`

export function notObject(): AppError {
  return new AppError('invalid_body', 'The body must be a JSON object.', { hint })
}

export function notEvents(code: string, message: string): AppError {
  const issues = [{ path: 'events', code, message }]
  return new AppError('invalid_body', `The field "events" ${message}.`, { hint, issues })
}

export function tooManyEvents(): AppError {
  const message = `A request can contain at most ${limits.eventsPerRequestMax} events.`
  return new AppError('payload_too_large', message, { hint: 'Split them into several requests.' })
}

/** The text with each value that is too deep or too large replaced by `null`, so it is never parsed. */
function withoutOver(text: string, { over: largeSlices }: Outline): string {
  if (largeSlices.length === 0) return text
  const parts: string[] = []
  let offset = 0
  for (const { start, end } of largeSlices) {
    parts.push(text.slice(offset, start))
    offset = end
  }
  return parts.join('null') + 'null' + text.slice(offset)
}

const plainHead = '{"events":['
const canonicalHead = /^\{(?:"publishableKey":"[^"\\]*",)?"events":\[/

/** A fast path for text as JSON.stringify writes it, and a slower one for any other spelling. */
function acceptBody(text: string, siteIds: readonly string[]): Accepted {
  const { events, observed, outline } = parseEvents(text)
  const quick = outline === null ? acceptCanonical(text, events, observed, siteIds) : null
  const bodyOutline = outline ?? (quick === null ? outlineBody(text) : null)
  if (quick === null && bodyOutline === null)
    throw new Error('invariant: text that parses as an object has an outline')
  const accepted = quick ?? acceptOutlined(text, events, bodyOutline!, siteIds)
  if (observed !== undefined) accepted.observations = { entries: observed, events }
  return accepted
}

/**
 * Almost every client sends the output of JSON.stringify. Then each event, stringified again, is found in the text at
 * its position: no number changed, its size is known, and the text need not be scanned. Null at the first event that
 * is spelled differently, too deep or too large. The list must start the text and end at its last bracket, or only
 * `observed` may follow it, so that no later field of the same name, which would win, can be a list.
 */
function acceptCanonical(
  text: string,
  events: unknown[],
  observed: unknown,
  siteIds: readonly string[],
): Accepted | null {
  const head = text.startsWith(plainHead) ? plainHead : canonicalHead.exec(text)?.[0]
  if (head === undefined) return null
  const end = text.lastIndexOf(']')
  const checkCharacters = mayContainUnstorable(text)
  const accepted: Accepted = { sent: events.length, records: [], positions: [], rejected: [] }
  let issues: Issue[] = []
  let offset = head.length
  for (let i = 0; i < events.length; i++) {
    const record = validateEvent(events[i], siteIds, checkCharacters, issues)
    const json = record === null ? rewritten(events[i]) : record.json
    if (json === null || !text.startsWith(json, offset) || sizeOver(json, 0, json.length) !== null)
      return null
    offset += json.length + 1 // the comma
    if (record === null) {
      accepted.rejected.push(rejected(i, events[i], issues, json))
      issues = []
    } else {
      accepted.sample ??= events[i]
      accepted.records.push(record)
      accepted.positions.push(i)
    }
  }
  accepted.sample ??= events[0]
  return offset === end + 1 || endsWithObserved(text, offset, observed) ? accepted : null
}

/** Whether only `observed` follows the list of events, as JSON.stringify writes it. Signed texts contain brackets. */
function endsWithObserved(text: string, offset: number, observed: unknown): boolean {
  if (observed === undefined || !text.startsWith('],"observed":', offset - 1)) return false
  if (isDeeperThan(observed, observedDepthMax)) return false
  const tail = `],"observed":${JSON.stringify(observed)}}`
  return text.length === offset - 1 + tail.length && text.endsWith(tail)
}

/** A rejected event as JSON.stringify writes it; null when it is too deep to write. */
function rewritten(event: unknown): string | null {
  return isDeeperThan(event, limits.eventDepthMax) ? null : JSON.stringify(event)
}

function acceptOutlined(
  text: string,
  events: unknown[],
  outline: Outline,
  siteIds: readonly string[],
): Accepted {
  const checkCharacters = mayContainUnstorable(text)
  const accepted: Accepted = { sent: events.length, records: [], positions: [], rejected: [] }
  for (let i = 0; i < events.length; i++) {
    const slice = outline.events[i]
    if (slice === undefined) throw new Error('invariant: the outline has every event')
    const issues: Issue[] = slice.over === null ? [] : [overLimitIssue(slice.over)]
    const record = slice.over === null ? validateEvent(events[i], siteIds, checkCharacters, issues) : null
    const readSlice = (): string => text.slice(slice.start, slice.end)
    if (record === null) {
      accepted.rejected.push(rejected(i, events[i], issues, readSlice()))
      continue
    }
    if (!slice.isExact) record.json = exactJson(readSlice())
    accepted.sample ??= events[i]
    accepted.records.push(record)
    accepted.positions.push(i)
  }
  accepted.sample ??= events[0]
  return accepted
}

/** Marks a line that was not UTF-8: an unpaired surrogate, which no decoded text contains. */
const mark = '\udfff'

const lineFeed = 0x0a
export const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

/** The text of an NDJSON body; a line that was not UTF-8 is not well-formed in it, so only that line is rejected. */
export function linesText(bytes: Uint8Array): string {
  return isUtf8(bytes)
    ? decodeBody(bytes)
    : decodeLines(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length))
}

/** Decodes line by line, and stops one line after the limit. */
function decodeLines(bytes: Buffer): string {
  const lines: string[] = []
  let offset = bytes.subarray(0, 3).equals(byteOrderMark) ? 3 : 0
  while (lines.length <= limits.eventsPerRequestMax) {
    while (offset < bytes.length && isBlank(bytes[offset]!)) offset++
    if (offset === bytes.length) break
    const lineFeedIndex = bytes.indexOf(lineFeed, offset)
    const end = lineFeedIndex < 0 ? bytes.length : lineFeedIndex
    const line = bytes.subarray(offset, end)
    lines.push(lineText(line))
    offset = end
  }
  return lines.join('\n')
}

/** Of a line that is not UTF-8 only an excerpt, because decoding it costs ten times as much as decoding text. */
export function lineText(line: Buffer): string {
  return isUtf8(line) ? line.toString() : `${line.subarray(0, excerptBytesMax).toString()}${mark}`
}

const excerptBytesMax = limits.rejectedExcerptBytesMax

export function isBlank(byte: number): boolean {
  return byte === lineFeed || byte === 0x20 || byte === 0x09 || byte === 0x0d
}

const notUtf8: Issue = { path: '', code: 'wrong_format', message: 'is not valid UTF-8' }

/** NDJSON: one event per line; blank lines are skipped; an invalid line rejects only itself. */
export function acceptLines(text: string, siteIds: readonly string[]): Accepted {
  const lines = splitLines(text)
  const checkCharacters = mayContainUnstorable(text)
  const isUtf8 = text.isWellFormed() // `linesText` marks lines that were not
  const accepted: Accepted = { sent: lines.length, records: [], positions: [], rejected: [] }
  let first: unknown = null
  for (let i = 0; i < lines.length; i++) {
    const event = acceptLine(accepted, i, lines[i] ?? '', siteIds, { checkCharacters, isUtf8 })
    if (i === 0) first = event
  }
  accepted.sample ??= first
  return accepted
}

/** What is known of all lines. */
interface LineChecks {
  checkCharacters: boolean
  isUtf8: boolean
}

/** Adds the event of a line to those accepted or rejected. Returns it; null when it was not parsed. */
export function acceptLine(
  accepted: Accepted,
  index: number,
  line: string,
  siteIds: readonly string[],
  { checkCharacters, isUtf8 }: LineChecks,
): unknown {
  if (!isUtf8 && !line.isWellFormed()) {
    accepted.rejected.push(rejected(index, null, [notUtf8], line.slice(0, -1)))
    return null
  }
  const issues: Issue[] = []
  const event = parseLine(line, issues)
  const record = issues.length === 0 ? validateEvent(event, siteIds, checkCharacters, issues) : null
  if (record === null) {
    accepted.rejected.push(rejected(index, event, issues, line))
    return event
  }
  restoreNumbers(record, line)
  accepted.sample ??= event
  accepted.records.push(record)
  accepted.positions.push(index)
  return event
}

/** The non-blank lines, trimmed. Throws when there are none or too many. */
function splitLines(text: string): string[] {
  const lines: string[] = []
  const nonBlank = /[^ \t\r\n]/g
  for (let match = nonBlank.exec(text); match !== null; match = nonBlank.exec(text)) {
    const lineEnd = text.indexOf('\n', match.index)
    const end = lineEnd < 0 ? text.length : lineEnd
    if (lines.length === limits.eventsPerRequestMax) throw tooManyEvents()
    lines.push(trimEnd(text.slice(match.index, end)))
    nonBlank.lastIndex = end
  }
  if (lines.length === 0) throw noLines()
  return lines
}

export function noLines(): AppError {
  return new AppError('invalid_body', 'The body contains no events.', {
    hint: `Send 1 to ${limits.eventsPerRequestMax} events, one per line.`,
    issues: [{ path: '', code: 'required', message: 'must contain at least one event' }],
  })
}

function trimEnd(line: string): string {
  let end = line.length
  while (end > 0 && ' \t\r'.includes(line[end - 1] ?? '')) end--
  return end === line.length ? line : line.slice(0, end)
}

function parseLine(line: string, issues: Issue[]): unknown {
  const size = sizeOver(line, 0, line.length)
  const isDeep =
    size === null && hasMoreOpeners(line, limits.eventDepthMax) && sliceAt(line, 0)?.over === 'too_deep'
  if (size !== null || isDeep) {
    issues.push(overLimitIssue(size ?? 'too_deep'))
    return null
  }
  try {
    return JSON.parse(line) as unknown
  } catch {
    issues.push({ path: '', code: 'wrong_format', message: 'is not valid JSON' })
    return null
  }
}

/** Restores numbers that parsing rounded; a line identical to the output of JSON.stringify lost none. */
function restoreNumbers(record: EventRecord, line: string): void {
  if (record.json !== line && sliceAt(line, 0)?.isExact === false) record.json = exactJson(line)
}

/** One value in the text of a request, located for size limits, excerpts and numbers that parsing would round. */
interface Slice {
  start: number
  end: number
  isExact: boolean // false: parsing may change its numbers
  over: OverLimit | null
}

interface Outline {
  events: Slice[] // of the last field named `events`; at most one more than a request may contain
  over: Slice[] // events and other values that exceed the limits of an event, in text order
}

/** The outline of a JSON request body, or null when its brackets show that it is not a JSON object. */
function outlineBody(text: string): Outline | null {
  const outline: Outline = { events: [], over: [] }
  let offset = skipSpace(text, 0)
  if (text[offset] !== '{') return null
  offset = skipSpace(text, offset + 1)
  while (text[offset] === '"') {
    const nameEnd = skipString(text, offset)
    const colon = nameEnd < 0 ? -1 : skipSpace(text, nameEnd)
    if (text[colon] !== ':') return null
    const name = fieldName(text.slice(offset, nameEnd))
    const start = skipSpace(text, colon + 1)
    if (name === 'events') outline.events = []
    if (name === 'events' && text[start] === '[') offset = outlineEvents(text, start, outline)
    else if (name === 'observed') offset = outlineObserved(text, start, outline)
    else offset = outlineOther(text, start, outline)
    if (offset < 0) return null
    offset = skipSpace(text, offset)
    if (text[offset] === ',') offset = skipSpace(text, offset + 1)
  }
  return text[offset] === '}' && skipSpace(text, offset + 1) === text.length ? outline : null
}

/** The value at `start`, checked against the limits of one event; null when it is incomplete. */
function sliceAt(text: string, start: number): Slice | null {
  const scan: Scan = { depth: 0, isExact: true }
  const end = skipValue(text, start, scan)
  if (end < 0) return null
  const isDeep = scan.depth > limits.eventDepthMax
  return { start, end, isExact: scan.isExact, over: isDeep ? 'too_deep' : sizeOver(text, start, end) }
}

/** Whether the text from `start` to `end` has more UTF-8 bytes than an event may. */
function sizeOver(text: string, start: number, end: number): OverLimit | null {
  const units = end - start
  if (units * 3 <= limits.eventBytesMax) return null // a UTF-16 unit is at most three bytes
  const isLarge =
    units > limits.eventBytesMax || Buffer.byteLength(text.slice(start, end)) > limits.eventBytesMax
  return isLarge ? 'too_large' : null
}

/** The name may contain escapes. */
export function isNamedEvents(name: string): boolean {
  if (!name.includes('\\')) return name === '"events"'
  try {
    return JSON.parse(name) === 'events'
  } catch {
    return false
  }
}

function outlineEvents(text: string, open: number, outline: Outline): number {
  let offset = skipSpace(text, open + 1)
  if (text[offset] === ']') return offset + 1
  for (;;) {
    const slice = sliceAt(text, offset)
    if (slice === null) return -1
    if (outline.events.length <= limits.eventsPerRequestMax) {
      outline.events.push(slice)
      if (slice.over !== null) outline.over.push(slice)
    }
    offset = skipSpace(text, slice.end)
    if (text[offset] === ']') return offset + 1
    if (text[offset] !== ',') return -1
    offset = skipSpace(text, offset + 1)
  }
}

function outlineOther(text: string, start: number, outline: Outline): number {
  const slice = sliceAt(text, start)
  if (slice === null) return -1
  if (slice.over !== null) outline.over.push(slice)
  return slice.end
}

/** Observations of a whole request are longer than one event may be, but never deep. */
function outlineObserved(text: string, start: number, outline: Outline): number {
  const scan: Scan = { depth: 0, isExact: true }
  const end = skipValue(text, start, scan)
  if (end < 0) return -1
  const isOver = scan.depth > observedDepthMax || hasMoreOpeners(text.slice(start, end), observedOpenersMax)
  if (isOver) outline.over.push({ start, end, isExact: true, over: 'too_deep' })
  return end
}
