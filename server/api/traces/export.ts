/** Streams every event that matches a filter, as NDJSON, CSV or Parquet, in constant memory (contract §6). */
import { isoTime } from '../../clock.ts'
import { auditEntry } from '../../audit/entry.ts'
import { AppError, retryAfter } from '../../errors.ts'
import { csvCells, csvRow, type CsvCell } from '../../text/csv.ts'
import { acquireExport, streamText } from '../../http/response.ts'
import { limits } from '../../limits.ts'
import { recordedJson } from './record.ts'
import { eventFields, impliedDecision } from '../../../db/contract/event-fields.ts'
import type { Share, Shares } from '../../http/shares.ts'
import type {
  EventFilter,
  EventPosition,
  EventStore,
  Provenance,
  Store,
  StoredEvent,
} from '../../../db/contract/store.ts'
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'

interface TraceExportServices {
  store: Store
  clock: Clock
  log: Log
  exportShares: Shares
  parquetParts: ParquetParts
}

/** The bytes of a Parquet file with all rows (server/parquet/). */
export type ParquetParts = (
  orgId: string,
  pages: AsyncIterable<StoredEvent[]>,
) => AsyncGenerator<Uint8Array<ArrayBuffer>>

export const exportFormats = {
  ndjson: 'application/x-ndjson',
  csv: 'text/csv',
  parquet: 'application/vnd.apache.parquet',
} as const

export type ExportType = (typeof exportFormats)[keyof typeof exportFormats]

interface ExportRequest {
  orgId: string
  actor: string // of the audit row
  requestId: string
  filter: EventFilter
  type: ExportType
  raw: boolean // CSV without the formula guard
  withRecords: boolean // NDJSON with the record of each event; CSV and Parquet always have it
  headOnly: boolean
}

type ExportTraces = (request: ExportRequest, keepOpen: () => void) => Promise<Response>

/** Builds the exporter of a server. */
export function traceExporter(services: TraceExportServices): ExportTraces {
  const { store, clock, log, exportShares, parquetParts } = services

  async function begin(request: ExportRequest, share: Share): Promise<Response> {
    const { orgId, filter, type, raw, withRecords, actor } = request
    const ceilingSeq = await store.events.lastSeq(orgId)
    const headers: Record<string, string> = { 'content-type': contentTypes[type] }
    if (type === 'text/csv') {
      headers['x-row-count'] = String(await rowCount(orgId, filter, ceilingSeq))
      headers['x-csv-formula-guard'] = raw ? 'off' : 'on'
    }
    const format = formatOf(type)
    headers['content-disposition'] = `attachment; filename="traces-${orgId}.${format}"`
    const metadata = { format, filter: { ...filter }, ...(withRecords && { include: 'record' }) }
    const act = { action: 'traces.exported', target: orgId, metadata }
    await store.audit.append(auditEntry({ orgId, actor }, act, clock.now()))
    const isRecorded = withRecords || type !== 'application/x-ndjson'
    const pages = walkEvents(store.events, orgId, filter, ceilingSeq, isRecorded)
    const parts =
      type === 'application/vnd.apache.parquet'
        ? parquetParts(orgId, pages)
        : type === 'text/csv'
          ? csvParts(pages, !raw)
          : ndjsonParts(pages, withRecords ? recordedJson : ({ json }) => json)
    const ended = (failed: unknown) => {
      share.release()
      if (failed !== null)
        log.warn('export_incomplete', { requestId: request.requestId, message: String(failed) })
    }
    return new Response(streamText({ parts, stallMs: limits.exportStallMs, ended }), { headers })
  }

  async function rowCount(orgId: string, filter: EventFilter, ceilingSeq: number): Promise<number> {
    const msMax = limits.exportCountMs
    const count = await countEvents(store.events, orgId, filter, { ceilingSeq, msMax })
    if (count !== null) return count
    throw new AppError('overloaded', 'Counting these events for a CSV takes too long.', {
      hint: 'Narrow the filters, or request NDJSON, which ends with its count.',
      headers: retryAfter(),
    })
  }

  return async (request, keepOpen) => {
    if (request.headOnly)
      return new Response(null, { headers: { 'content-type': contentTypes[request.type] } })
    const weight = request.type === exportFormats.parquet ? parquetWeight : 1
    const share = acquireExport(exportShares, request.orgId, request.actor, weight)
    try {
      const response = await begin(request, share)
      keepOpen() // a rare match may take long; the stall timeout covers the receiver
      return response
    } catch (error) {
      share.release()
      throw error
    }
  }
}

/** Of the exports in progress: each Parquet export has a thread, which needs the memory of several others. */
const parquetWeight = 4

const contentTypes = {
  'application/x-ndjson': 'application/x-ndjson; charset=utf-8',
  'text/csv': 'text/csv; charset=utf-8',
  'application/vnd.apache.parquet': 'application/vnd.apache.parquet',
}

function formatOf(type: ExportType): string {
  return Object.entries(exportFormats).find(([, mediaType]) => mediaType === type)![0]
}

async function* ndjsonParts(
  pages: AsyncGenerator<StoredEvent[]>,
  lineOf: (event: StoredEvent) => string,
): AsyncGenerator<string> {
  let count = 0
  for await (const events of pages) {
    count += events.length
    for (const piece of pieces(events)) yield `${piece.map(lineOf).join('\n')}\n`
  }
  yield `{"_end":{"count":${count}}}\n`
}

async function* csvParts(
  pages: AsyncGenerator<StoredEvent[]>,
  guard: boolean,
): AsyncGenerator<string | Uint8Array<ArrayBuffer>> {
  yield csvRow(csvColumns, false)
  for await (const events of pages) {
    for (const piece of pieces(events)) yield eventRows(piece, guard)
  }
}

const pieceEvents = 250

/**
 * Splits a page into pieces. The HTTP thread makes the rows, and other requests run between two pieces. A slow receiver
 * can read a piece before it counts as stalled.
 */
function* pieces(events: StoredEvent[]): Generator<StoredEvent[]> {
  for (let offset = 0; offset < events.length; offset += pieceEvents)
    yield events.slice(offset, offset + pieceEvents)
}

/** The size of one page. A walk holds two pages in memory, and several walks run concurrently. */
export const walkPage = { limit: 2_000, bytesMax: 1024 * 1024 }

/**
 * Every matching event, newest first, page by page, with its record when `provenance`. Reads the next page while the
 * last one is sent. Excludes arrivals after `ceilingSeq`.
 */
export async function* walkEvents(
  events: Pick<EventStore, 'page'>,
  orgId: string,
  filter: EventFilter,
  ceilingSeq: number,
  provenance: boolean,
): AsyncGenerator<StoredEvent[]> {
  const read = (position: EventPosition | null) =>
    events.page({ orgId, filter, ...walkPage, before: position, ceilingSeq, provenance })
  let reading: ReturnType<typeof read> | null = read(null)
  while (reading !== null) {
    const page: Awaited<ReturnType<typeof read>> = await reading
    reading = page.next === null ? null : read(page.next)
    reading?.catch(() => undefined) // thrown by the next `await`
    if (page.events.length > 0) yield page.events
  }
}

interface Counted {
  afterSeq?: number
  ceilingSeq: number
  msMax?: number
}

/** The number of events in the same walk; null when counting takes longer than `msMax`. */
export async function countEvents(
  events: Pick<EventStore, 'count'>,
  orgId: string,
  filter: EventFilter,
  { afterSeq: fromSeq = 0, ceilingSeq, msMax = Infinity }: Counted,
): Promise<number | null> {
  const endMs = performance.now() + msMax
  let total = 0
  let afterSeq = fromSeq
  while (afterSeq < ceilingSeq) {
    if (performance.now() > endMs) return null
    const step: Awaited<ReturnType<EventStore['count']>> = await events.count({
      orgId,
      filter,
      afterSeq,
      ceilingSeq,
    })
    total += step.count
    afterSeq = step.lastSeq
  }
  return total
}

/** A column of the CSV (contract §6). */
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

/** Columns of the record, beside those of its fields. */
const recordColumns = [
  { name: 'receivedAt', path: null, csv: 24 },
  { name: 'network', path: null, csv: 26 },
]

const columns = [
  ...otherColumns,
  ...recordColumns,
  ...eventFields.flatMap((field) => (field.csv === null ? [] : [{ ...field, csv: field.csv as number }])),
]
  .toSorted((a, b) => a.csv - b.csv)
  .map(({ name, path }) => ({ name, first: path?.[0] ?? null, second: path?.[1] }))

export const csvColumns: readonly string[] = [...columns.map(({ name }) => name), 'event']

interface Fields {
  [name: string]: unknown
}

/** An event with its record, as `walkEvents` reads it. */
export type ExportedEvent = Pick<StoredEvent, 'json' | 'receivedAtMs' | 'provenance'>

/** All cells but the last, which is `json`: an event as stored, whose known fields have their types or are null. */
export function eventCells({ json, receivedAtMs, provenance }: ExportedEvent): CsvCell[] {
  const event = JSON.parse(json) as Fields
  return columns.map(({ name, first, second }) => {
    if (name === 'receivedAt') return isoTime(receivedAtMs)
    if (first === null || name === 'verdict') return provenance?.[name as keyof Provenance] ?? null
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
export function eventRows(events: readonly ExportedEvent[], guard: boolean): Uint8Array<ArrayBuffer> {
  let end = 0
  for (const event of events) {
    const { json } = event
    const cells = `${csvCells(eventCells(event), guard)},"`
    reserve(end, cells.length * 3 + json.length * 6 + 3) // UTF-8: at most 3 bytes per unit; each may be a quote
    end += rows.write(cells, end)
    end = writeDoubled(json, end)
    end += rows.write('"\n', end)
  }
  return new Uint8Array(rows.subarray(0, end))
}

function writeDoubled(json: string, from: number): number {
  const source = text
  const target = rows
  const bytes = source.write(json)
  let end = from
  for (let index = 0; index < bytes; index++) {
    const byte = source[index]!
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
