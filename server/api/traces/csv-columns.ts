/** The CSV of traces: its columns (contract §6), the cells of an event, and many events as the bytes of their rows. */
import { csvCells, type CsvCell } from '../../text/csv.ts'
import { impliedDecision } from '../../ingest/check-event.ts'

export const csvColumns = [
  ...['id', 'siteId', 'sessionId', 'occurredAt', 'type', 'outcome', 'tool', 'durationMs', 'class', 'trust'],
  ...['vendor', 'decision', 'ruleId', 'page', 'protocol', 'subject', 'error', 'name', 'purpose', 'event'],
] as const

interface Members {
  [member: string]: unknown
}

/** All cells but the last, which is `json`: an event as stored, whose known members have their types or are null. */
export function eventCells(json: string): CsvCell[] {
  const event = JSON.parse(json) as Members
  const agent = inner(event['agent'])
  const policy = inner(event['policy'])
  const metadata = inner(event['metadata'])
  const type = String(event['type'])
  const outcome = String(event['outcome'])
  const cells: unknown[] = [
    event['id'],
    event['siteId'],
    event['sessionId'],
    event['occurredAt'],
    type,
    outcome,
    event['tool'],
    event['durationMs'],
    agent['class'],
    agent['trust'],
    agent['vendor'],
    policy['decision'] || impliedDecision(type, outcome),
    policy['ruleId'],
    metadata['page'],
    metadata['protocol'],
    metadata['subject'],
    event['error'],
    agent['name'],
    agent['purpose'],
  ]
  return cells.map(cellOf)
}

const quote = 0x22
let rows = Buffer.alloc(256 * 1024) // grows to the largest piece there was
let text = Buffer.alloc(64 * 1024) // of one event

/**
 * The rows of events, as `csvRow` would write them. The last cell is most of a row and full of quotes: doubling them
 * byte by byte takes a fifth of what replacing them in a string does.
 */
export function eventRows(jsons: readonly string[], guard: boolean): Uint8Array<ArrayBuffer> {
  let end = 0
  for (const json of jsons) {
    const cells = `${csvCells(eventCells(json), guard)},"`
    reserve(end, cells.length * 3 + json.length * 6 + 3) // UTF-8: 3 bytes a unit at most; each may be a quote
    end += rows.write(cells, end)
    end = writeDoubled(json, end)
    end += rows.write('"\n', end)
  }
  return new Uint8Array(rows.subarray(0, end))
}

function writeDoubled(json: string, from: number): number {
  const [source, target] = [text, rows]
  const bytes = source.write(json)
  let end = from
  for (let at = 0; at < bytes; at++) {
    const byte = source[at]!
    target[end++] = byte
    if (byte === quote) target[end++] = quote
  }
  return end
}

/** Room for so many bytes behind what is written, and for the event by itself. */
function reserve(written: number, bytes: number): void {
  if (text.length < bytes) text = Buffer.alloc(bytes)
  if (rows.length >= written + bytes) return
  const larger = Buffer.alloc(2 * (written + bytes))
  rows.copy(larger, 0, 0, written)
  rows = larger
}

function inner(value: unknown): Members {
  return typeof value === 'object' && value !== null ? (value as Members) : {}
}

function cellOf(value: unknown): CsvCell {
  return typeof value === 'string' || typeof value === 'number' ? value : null
}
