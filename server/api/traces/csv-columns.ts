/** The CSV of traces: columns (contract §6), the cells of one event, and the bytes of many rows. */
import { eventFields } from '../../../db/contract/event-fields.ts'
import { csvCells, type CsvCell } from '../../text/csv.ts'
import { impliedDecision } from '../../ingest/check-event.ts'

interface Column {
  name: string
  path: readonly string[]
  csv: number
}

/** Columns without a field in the store. */
const otherColumns: readonly Column[] = [
  { name: 'id', path: ['id'], csv: 0 },
  { name: 'occurredAt', path: ['occurredAt'], csv: 3 },
  { name: 'durationMs', path: ['durationMs'], csv: 7 },
  { name: 'error', path: ['error'], csv: 16 },
]

const columns = [...otherColumns, ...eventFields.flatMap((field) => (field.csv === null ? [] : [field]))]
  .toSorted((a, b) => a.csv - b.csv)
  .map(({ name, path: [first, second] }) => ({ name, first: first!, second }))

export const csvColumns: readonly string[] = [...columns.map(({ name }) => name), 'event']

interface Fields {
  [name: string]: unknown
}

/** All cells but the last, which is `json`: an event as stored, whose known fields have their types or are null. */
export function eventCells(json: string): CsvCell[] {
  const event = JSON.parse(json) as Fields
  return columns.map(({ name, first, second }) => {
    const value = second === undefined ? event[first] : inner(event[first])[second]
    if (name === 'decision' && !value) return impliedDecision(String(event['type']), String(event['outcome']))
    return cellOf(value)
  })
}

const quote = 0x22
let rows = Buffer.alloc(256 * 1024) // grows to the largest piece so far
let text = Buffer.alloc(64 * 1024) // of one event

/**
 * The rows of events, as `csvRow` would write them. The last cell is most of a row and full of quotes; doubling them
 * byte by byte is five times as fast as replacing them in a string.
 */
export function eventRows(jsons: readonly string[], guard: boolean): Uint8Array<ArrayBuffer> {
  let end = 0
  for (const json of jsons) {
    const cells = `${csvCells(eventCells(json), guard)},"`
    reserve(end, cells.length * 3 + json.length * 6 + 3) // UTF-8: at most 3 bytes per unit; each may be a quote
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

/** Ensures space for `bytes` after what is written, and for the event itself. */
function reserve(written: number, bytes: number): void {
  if (text.length < bytes) text = Buffer.alloc(bytes)
  if (rows.length >= written + bytes) return
  const larger = Buffer.alloc(2 * (written + bytes))
  rows.copy(larger, 0, 0, written)
  rows = larger
}

function inner(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

function cellOf(value: unknown): CsvCell {
  return typeof value === 'string' || typeof value === 'number' ? value : null
}
