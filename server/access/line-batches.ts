/** Makes batches for the store from whole lines of an access log, as a reader sends them. */
import type { AccessLines, EventRecord } from '../../db/contract/store.ts'
import { acceptEvents } from '../ingest/accept.ts'
import type { LineEvents, LineSource } from './agent-events.ts'
import { byteOrderMark, type FileParser } from './formats.ts'
import { lineBytesMax } from './input.ts'
import { lineBatch, type BatchedLine, type LineBatch, type SentLines } from './line-batch.ts'
import { lastLine } from './log-files.ts'
import type { LogRequest } from './log-request.ts'
import { noLines, type LineError, type LineSums, type LogLines } from './sink.ts'

/** What one transaction stores. `sums` has all requests of agents as stored. */
export interface LinesToStore {
  events: EventRecord[]
  access: AccessLines
  sums: LineSums
  errors: LineError[]
}

export interface LineReading {
  lines: LogLines
  siteId: string
  isDrain: boolean
  parse: FileParser
  eventsOf(request: LogRequest, at: LineSource): LineEvents
}

export const lineErrorsMax = 20
const pathCharsMax = 1_024
const formatCharsMax = 200

/** The lines of each batch follow those of the one before. */
export function* lineBatches(reading: LineReading): Generator<LinesToStore> {
  const { lines, siteId, isDrain } = reading
  const { text, from, to, source, cutTail } = lines
  const log = {
    siteId,
    source,
    path: lines.path.slice(0, pathCharsMax),
    format: lines.format.slice(0, formatCharsMax),
  }
  let batch = lineBatch(log, from, { isDrain })
  let errors: LineError[] = []
  let at = from === 0 && text.startsWith(byteOrderMark) ? byteOrderMark.length : 0
  let number = 0
  while (at < text.length) {
    number++
    const feed = text.indexOf('\n', at)
    const next = cutTail !== null || feed < 0 ? text.length : feed + 1
    const line = readLine(reading, { text, start: at, stop: feed < 0 ? text.length : feed, number }, errors)
    line.end = cutTail === null ? from + next : to
    batch.add(line)
    at = next
    if (batch.isFull() && at < text.length) {
      yield toStore(batch, errors, lastLine(text, at))
      batch = lineBatch(log, from + at, { isDrain })
      errors = []
    }
  }
  if (batch.lines > 0) yield toStore(batch, errors, cutTail === null ? lastLine(text, at) : { hash: cutTail })
}

const carriageReturn = 13

interface Line {
  text: string
  start: number
  stop: number // at the line feed
  number: number
}

function readLine({ lines, parse, eventsOf }: LineReading, line: Line, errors: LineError[]): BatchedLine {
  const { text, stop, number } = line
  // A server that does not append goes on at its old offset after a truncation: NUL bytes fill the gap.
  let { start } = line
  while (start < stop && text.charCodeAt(start) === 0) start++
  const read: BatchedLine = { number, end: 0, kind: 'bad', timeMs: 0, bytes: 0, events: [] }
  const end = stop > start && text.charCodeAt(stop - 1) === carriageReturn ? stop - 1 : stop
  const bad = (message: string): BatchedLine => {
    if (errors.length < lineErrorsMax) errors.push({ line: number, message })
    return read
  }
  if (lines.cutTail !== null || end - start > lineBytesMax) return bad('is longer than 64 KiB')
  const request = end > start ? parse(text, start, end) : 'note'
  if (request === 'note') return { ...read, kind: 'note' }
  if (request === null) return bad(`does not fit ${lines.format}`)
  const at = { id: lines.source, offset: lines.from + start, line: text.slice(start, end) }
  const { kind, request: event, more } = eventsOf(request, at)
  const events = event === null ? more : [event, ...more]
  return { ...read, kind, timeMs: request.timeMs, bytes: request.bytes ?? 0, events }
}

/** Events pass the checks of ingest. A request that does not is a bad line. */
function toStore(batch: LineBatch, errors: LineError[], tail: string | { hash: string }): LinesToStore {
  const { events, lineOf, access }: SentLines = batch.sent(typeof tail === 'string' ? tail : '')
  if (typeof tail !== 'string') access.tail = tail.hash
  const text = events.map((event) => JSON.stringify(event)).join('\n')
  const none = { records: [], positions: [], rejected: [] }
  const { records, positions, rejected } = text === '' ? none : acceptEvents(text, 'application/x-ndjson', [])
  for (const { index, issues } of rejected) {
    if (access.requests[index] === null) continue
    access.sums.bad++
    const [issue] = issues
    const message = issue === undefined ? 'is no valid event' : `${issue.path} ${issue.message}`
    if (errors.length < lineErrorsMax) errors.push({ line: lineOf[index]!.number, message })
  }
  access.requests = positions.map((index) => access.requests[index]!)
  const { lines, people, excluded, bad } = access.sums
  const sums = { ...noLines(), lines, people, excluded, bad, stored: lines - people - excluded - bad }
  return { events: records, access, sums, errors }
}
