/** Accepts an NDJSON body: one event a line; blank lines do not count; a bad line rejects that line. */
import type { EventRecord } from '../../db/contract/store.ts'
import { AppError, type Issue } from '../errors.ts'
import { limits } from '../limits.ts'
import { type Accepted, overLimitIssue, rejected } from './rejected.ts'
import { exactJson } from '../text/exact-json.ts'
import { sizeOver, sliceAt } from './outline.ts'
import { tooManyEvents } from './parse-events.ts'
import { hasMoreOpeners } from '../text/json-scan.ts'
import { mayHoldUnkeepable, takeEvent } from './take-event.ts'

const notUtf8: Issue = { path: '', code: 'wrong_format', message: 'is not valid UTF-8' }

export function acceptLines(text: string, siteIds: readonly string[]): Accepted {
  const lines = splitLines(text)
  const checkCharacters = mayHoldUnkeepable(text)
  const isUtf8 = text.isWellFormed() // `linesText` marks the end of a line that was not
  const accepted: Accepted = { sent: lines.length, records: [], positions: [], rejected: [] }
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] ?? ''
    const issues: Issue[] = []
    if (!isUtf8 && !line.isWellFormed()) {
      accepted.rejected.push(rejected(i, null, [notUtf8], line.slice(0, -1)))
      continue
    }
    const event = parseLine(line, issues)
    const record = issues.length === 0 ? takeEvent(event, siteIds, checkCharacters, issues) : null
    if (record === null) {
      accepted.rejected.push(rejected(i, event, issues, line))
      continue
    }
    keepNumbers(record, line)
    accepted.records.push(record)
    accepted.positions.push(i)
  }
  return accepted
}

/** The lines that are not blank, without the whitespace around them. Throws when there are none or too many. */
function splitLines(text: string): string[] {
  const lines: string[] = []
  const inked = /[^ \t\r\n]/g
  for (let found = inked.exec(text); found !== null; found = inked.exec(text)) {
    const feed = text.indexOf('\n', found.index)
    const end = feed < 0 ? text.length : feed
    if (lines.length === limits.eventsPerRequestMax) throw tooManyEvents()
    lines.push(trimEnd(text.slice(found.index, end)))
    inked.lastIndex = end
  }
  if (lines.length === 0) throw noLines()
  return lines
}

function noLines(): AppError {
  return new AppError('invalid_body', 'The body holds no event.', {
    hint: `Send one event a line, 1 to ${limits.eventsPerRequestMax} of them.`,
    issues: [{ path: '', code: 'required', message: 'needs at least one line' }],
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

/** A line that JSON.stringify would write just so has lost nothing in parsing. */
function keepNumbers(record: EventRecord, line: string): void {
  if (record.json !== line && sliceAt(line, 0)?.isExact === false) record.json = exactJson(line)
}
