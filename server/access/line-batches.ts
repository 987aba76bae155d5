/** Makes batches for the store from whole lines of an access log, as a reader sends them. */
import type { AccessLines, EventRecord } from '../../db/contract/store.ts'
import { lineReader, type AgentReader, type LineReader, type ReadLine } from './agent-events.ts'
import { byteOrderMark, type FileParser } from './formats.ts'
import { lineBytesMax } from './input.ts'
import { lineBatch, type LineBatch } from './line-batch.ts'
import { lastLine } from './log-files.ts'
import { noLines, type LineError, type LineSums, type LogLines } from './sink.ts'

/** What one transaction stores. `sums` has all requests by agents as stored. */
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
  eventsOf: AgentReader
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
  const read = lineReader(reading.parse, reading.eventsOf, source)
  let batch = lineBatch(log, from, { isDrain })
  let errors: LineError[] = []
  let at = from === 0 && text.startsWith(byteOrderMark) ? byteOrderMark.length : 0
  let number = 0
  while (at < text.length) {
    number++
    const feed = text.indexOf('\n', at)
    const next = cutTail !== null || feed < 0 ? text.length : feed + 1
    const line = readOne(lines, read, at, feed < 0 ? text.length : feed)
    const end = cutTail === null ? from + next : to
    const { kind, timeMs, bytes, events } = line
    if (events.length === 0) batch.count(end, kind, timeMs, bytes)
    else batch.add({ number, end, kind, timeMs, bytes, events })
    if (kind === 'bad' && errors.length < lineErrorsMax)
      errors.push({ line: number, message: line.problem ?? `does not fit ${lines.format}` })
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
const problem = 'is longer than 64 KiB'
const longLine: ReadLine = { kind: 'bad', timeMs: 0, bytes: 0, events: [], problem }

function readOne({ text, from, cutTail }: LogLines, read: LineReader, at: number, stop: number): ReadLine {
  // A server that does not append goes on at its old offset after a truncation: NUL bytes fill the gap.
  let start = at
  while (start < stop && text.charCodeAt(start) === 0) start++
  const end = stop > start && text.charCodeAt(stop - 1) === carriageReturn ? stop - 1 : stop
  if (cutTail !== null || end - start > lineBytesMax) return longLine
  return read(text, start, end, from + start)
}

function toStore(batch: LineBatch, errors: LineError[], tail: string | { hash: string }): LinesToStore {
  const { events, access } = batch.sent(typeof tail === 'string' ? tail : '')
  if (typeof tail !== 'string') access.tail = tail.hash
  const { lines, people, excluded, bad } = access.sums
  const sums = { ...noLines(), lines, people, excluded, bad, stored: lines - people - excluded - bad }
  return { events, access, sums, errors }
}
