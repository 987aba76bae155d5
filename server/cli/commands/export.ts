/** `sightglass export traces` and `export metrics`: the same events and counts as the API, written to a file. */
import { metricsAnswer, rangeParameters, readRange } from '../../api/metrics/answer.ts'
import { csvColumns, eventRows, walkPage } from '../../api/traces/export.ts'
import { filterParameters, readFilter } from '../../api/traces/filter.ts'
import { recordedJson } from '../../api/traces/record.ts'
import { auditEntry } from '../../audit/entry.ts'
import { readQuery } from '../../http/request.ts'
import { numberOf, textOf, type Params, type WorkContext } from '../../runtime/work.ts'
import { csvRow } from '../../text/csv.ts'
import { command, type Invocation, type Noun } from '../command.ts'
import { requireOrg, withData } from '../data-command.ts'
import { choice, folderPath, plainText, toggle } from '../option.ts'
import { orgOption } from '../options.ts'
import { print } from '../print.ts'
import {
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { syncFolder } from '../../../db/rules/durable-files.ts'
import { requireNoLink } from '../../system/written-file.ts'
import { AppError, UsageError } from '../../errors.ts'
import { manifestName, manifestOf, openParquetWriter, type EventRow } from '../../parquet/parquet.ts'
import type { EventFilter, EventPosition, Json, Provenance } from '../../../db/contract/store.ts'
import type { MetricsAnswer } from '../../api/metrics/routes.ts'
import type { StoreAccess } from '../../runtime/store-access.ts'

export const fileOptions = {
  format: { ...choice(['json', 'csv'], 'file format'), default: 'json' },
  out: { read: folderPath, value: 'FILE', default: null, help: 'file to write, by default standard output' },
  yes: { ...toggle('replace an existing file'), flagOnly: true },
} as const

const options = {
  ...orgOption,
  filter: {
    read: plainText,
    value: 'QUERY',
    default: '',
    help: 'filter, as a query string of the API: "since=2026-06-01&type=authz.*"',
  },
  ...fileOptions,
  raw: toggle('in CSV, do not neutralize cells that a spreadsheet would run as formulas'),
} as const

const traceOptions = {
  ...options,
  format: { ...choice(['json', 'csv', 'parquet'], 'file format'), default: 'json' },
  include: choice(['record'], 'with JSON: lines of {"event", "record"}, with who says so'),
  partition: choice(['day'], 'with parquet and a folder: a file per day of occurredAt, in UTC'),
} as const

export const exports: Noun = {
  group: 'Data',
  commands: [
    command({
      name: 'export traces',
      summary: "write an organization's events to a file or a folder",
      arguments: '[DIR]',
      about: [
        'JSON has one event per line as it was sent, newest first, and a last line with the count, by which "import" knows that the file is complete. Events that arrive during the export are not included. The audit trail records the export.',
        'With --include record each line is {"event":…,"record":…}: how the event came in, who gave its verdict, and who saw what was judged. CSV and Parquet have these as columns.',
        'Parquet has a column per field and the event as it was sent. It is written to a file, or to a folder: with --partition day as dt=2026-11-01/part-0.parquet, otherwise as part-0.parquet, with the counts, times and digests of its files in manifest.json.',
      ],
      examples: [
        'sightglass export traces --out events.ndjson',
        'sightglass export traces --org acme --filter "since=2026-06-01&type=authz.*&outcome=blocked" --format csv',
        'sightglass export traces --include record --filter judgedBy=sender --out reported.ndjson',
        'sightglass export traces --format parquet --partition day ./events',
      ],
      options: traceOptions,
      work: { begin: beginTraces, page: tracesPage },
      run: exportTraces,
    }),
    command({
      name: 'export metrics',
      summary: "write an organization's hourly counts to a file",
      about: ['JSON is the answer of GET /v1/metrics, CSV its rows. The audit trail records the export.'],
      examples: ['sightglass export metrics --filter "since=2026-06-01" --format csv --out metrics.csv'],
      options,
      work: { '': exportMetrics },
      run: (invocation) => write(invocation, invocation.values.format, 'rows', metricLines),
    }),
  ],
}

interface Part {
  text: string | Uint8Array
  count: number
}

interface Query {
  [name: string]: Json
  org: string
  filter: string
  format: 'json' | 'csv'
}

type Lines = (data: StoreAccess, query: Query, guard: boolean) => AsyncGenerator<Part>

type Written = Pick<Invocation<typeof options>, 'values' | 'commands'>

async function write(
  invocation: Pick<Written, 'commands'> & { values: Omit<Written['values'], 'format'> },
  format: 'json' | 'csv',
  noun: string,
  lines: Lines,
): Promise<number> {
  const { org, filter, raw, out, yes, json } = invocation.values
  return withData(invocation, 'write', async (data) => {
    const output = openOutput(out, yes)
    let count = 0
    for await (const part of lines(data, { org, filter, format }, !raw)) {
      output.write(part.text)
      count += part.count
    }
    output.end()
    if (out !== null)
      print(json ? JSON.stringify({ path: out, format, count }) : `Wrote ${count} ${noun} to ${out}.`)
    return 0
  })
}

async function exportTraces(invocation: Invocation<typeof traceOptions>): Promise<number> {
  const { words, values } = invocation
  const { format, include, partition, out } = values
  if (format !== 'parquet') {
    if (words.length > 0 || partition !== null)
      throw new UsageError('a folder and --partition need --format parquet', 'sightglass help export traces')
    if (include !== null && format !== 'json')
      throw new UsageError('--include is for JSON: other formats have columns of the record')
    const lines: Lines = (data, query, guard) =>
      traceLines(data, query, { guard, withRecords: include !== null })
    return write(invocation, format, 'events', lines)
  }
  if (include !== null)
    throw new UsageError('--include is for JSON: other formats have columns of the record')
  if (values.raw) throw new UsageError('--raw is for CSV')
  if ((words[0] === undefined) === (out === null) || (out !== null && partition !== null))
    throw new UsageError('name a folder, or a file with --out', 'sightglass help export traces')
  return withData(invocation, 'write', async (data) => {
    if (out !== null) requireReplaceable(out, values.yes)
    const folder = out === null ? emptyFolder(folderPath(words[0]!), values.yes) : dirname(out)
    const { orgId, ceilingSeq } = await begin(data, { org: values.org, filter: values.filter, format })
    const writer = openParquetWriter()
    try {
      const rows = eventRowsOf(data, { orgId, ceilingSeq, filter: values.filter })
      const path = out === null ? 'part-0.parquet' : basename(out)
      const files =
        partition === 'day'
          ? await writer.days(folder, orgId, rows)
          : [await writer.file(folder, path, orgId, rows)]
      const manifest = manifestOf(orgId, ceilingSeq, files)
      if (out === null) await writer.manifest(folder, manifest)
      const { rows: count } = manifest
      const outputPath = out ?? folder
      const answer = { path: outputPath, format, count, files: files.length }
      print(values.json ? JSON.stringify(answer) : `Wrote ${count} events to ${outputPath}.`)
      return 0
    } finally {
      await writer.close()
    }
  })
}

/** The folder is new, empty, or with `replace` that of an earlier export, whose files are deleted. */
function emptyFolder(folder: string, replace: boolean): string {
  const names = existsSync(folder) ? readdirSync(folder) : []
  if (names.length === 0) return folder
  if (!names.includes(manifestName))
    throw new AppError('conflict', `${folder} is not empty and not of an earlier export.`)
  requireReplaceable(folder, replace)
  const exportedNames = names.filter((name) => /^(?:dt=\d{4}-\d\d-\d\d|part-\d+\.parquet)$/.test(name))
  for (const name of [manifestName, ...exportedNames])
    rmSync(join(folder, name), { recursive: true, force: true })
  return folder
}

type Begun = { orgId: string; ceilingSeq: number }

async function begin(
  data: StoreAccess,
  query: { org: string; filter: string; format: string },
): Promise<Begun> {
  return (await data.call('export traces begin', query)) as unknown as Begun
}

/** A page with what the texts of its events do not say. */
interface RecordsPage {
  events: string[]
  times: [occurredAtMs: number, receivedAtMs: number][]
  records: Provenance[]
  next: Json
}

function rowsOf({ events, times, records }: RecordsPage): (EventRow & { provenance: Provenance })[] {
  return events.map((json, index) => {
    const [occurredAtMs, receivedAtMs] = times[index]!
    return { json, occurredAtMs, receivedAtMs, provenance: records[index]! }
  })
}

/** Rows of the Parquet file, in pages; the next page is read while one is encoded. */
async function* eventRowsOf(
  data: StoreAccess,
  query: { orgId: string; ceilingSeq: number; filter: string },
): AsyncGenerator<EventRow[]> {
  const read = (position: Json) =>
    data.call('export traces page', {
      ...query,
      before: position,
      withRecords: true,
    }) as unknown as Promise<RecordsPage>
  let reading: ReturnType<typeof read> | null = read(null)
  while (reading !== null) {
    const page: RecordsPage = await reading
    reading = page.next === null ? null : read(page.next)
    reading?.catch(() => undefined) // thrown when it is awaited
    const rows = rowsOf(page)
    if (rows.length > 0) yield rows
  }
}

async function* traceLines(
  data: StoreAccess,
  query: Query,
  { guard, withRecords }: { guard: boolean; withRecords: boolean },
): AsyncGenerator<Part> {
  const { orgId, ceilingSeq } = await begin(data, query)
  if (query.format === 'csv') yield { text: csvRow(csvColumns, false), count: 0 }
  const read = (position: Json) =>
    data.call('export traces page', {
      orgId,
      filter: query.filter,
      ceilingSeq,
      before: position,
      withRecords: withRecords || query.format === 'csv',
    }) as unknown as Promise<RecordsPage>
  let count = 0
  let reading: ReturnType<typeof read> | null = read(null)
  while (reading !== null) {
    const page: RecordsPage = await reading
    const { events, next } = page
    reading = next === null ? null : read(next) // while this page is written
    reading?.catch(() => undefined) // thrown when it is awaited
    count += events.length
    const text =
      query.format === 'csv'
        ? eventRows(rowsOf(page), guard)
        : (withRecords ? rowsOf(page).map(recordedJson) : events).join('\n')
    if (events.length > 0) yield { text, count: events.length }
  }
  if (query.format === 'json') yield { text: JSON.stringify({ _end: { count } }), count: 0 }
}

const metricColumns = ['orgId', 'siteId', 'bucketStart', 'type', 'outcome', 'count'] as const

async function* metricLines(data: StoreAccess, query: Query, guard: boolean): AsyncGenerator<Part> {
  const metrics = (await data.call('export metrics', query)) as unknown as MetricsAnswer
  const { rows } = metrics
  if (query.format === 'json') {
    yield { text: JSON.stringify(metrics), count: rows.length }
    return
  }
  const lines = rows.map((row) =>
    csvRow(
      metricColumns.map((name) => row[name]),
      guard,
    ),
  )
  yield { text: csvRow(metricColumns, false) + lines.join(''), count: rows.length }
}

/** Fixes the extent of the export and records it in the audit trail. */
async function beginTraces(context: WorkContext, params: Params): Promise<Json> {
  const { store } = context
  const org = await requireOrg(store, textOf(params, 'org'))
  const filter = filterOf(textOf(params, 'filter'))
  await record(context, org.id, 'traces.exported', {
    format: textOf(params, 'format'),
    filter: { ...filter },
  })
  return { orgId: org.id, ceilingSeq: await store.events.lastSeq(org.id) }
}

async function tracesPage({ store }: WorkContext, params: Params): Promise<Json> {
  const page = await store.events.page({
    orgId: textOf(params, 'orgId'),
    filter: filterOf(textOf(params, 'filter')),
    ...walkPage,
    before: (params['before'] ?? null) as EventPosition | null,
    ceilingSeq: numberOf(params, 'ceilingSeq'),
    provenance: params['withRecords'] === true,
  })
  const next = page.next === null ? null : { ...page.next }
  const times = page.events.map((event) => [event.occurredAtMs, event.receivedAtMs])
  const records = page.events.map(({ provenance }) => ({ ...provenance }))
  const recorded = params['withRecords'] === true ? { times, records } : {}
  return { events: page.events.map((event) => event.json), ...recorded, next }
}

async function exportMetrics(context: WorkContext, params: Params): Promise<Json> {
  const { store, clock } = context
  const org = await requireOrg(store, textOf(params, 'org'))
  const range = readRange(readQuery(requestOf(textOf(params, 'filter')), rangeParameters), clock.now())
  await record(context, org.id, 'metrics.exported', {
    format: textOf(params, 'format'),
    filter: { ...range },
  })
  return JSON.parse(await metricsAnswer(store, org.id, range)) as Json
}

function filterOf(query: string): EventFilter {
  return readFilter(readQuery(requestOf(query), filterParameters))
}

/** The filter follows the rules of the API. */
function requestOf(query: string): Request {
  return new Request(`http://localhost/?${query.replace(/^\?/, '')}`)
}

async function record(
  { store, clock }: WorkContext,
  orgId: string,
  action: string,
  metadata: { [name: string]: Json },
): Promise<void> {
  const act = { action, target: orgId, metadata }
  await store.audit.append(auditEntry({ orgId, actor: 'cli' }, act, clock.now()))
}

interface Output {
  /** Text gets a line end when it has none; bytes are written as they are. */
  write(text: string | Uint8Array): void
  end(): void
}

/** Throws when the file exists and may not be replaced. */
export function openOutput(path: string | null, replace: boolean): Output {
  if (path === null) return { write: (text) => print(text), end() {} }
  requireNoLink(path)
  requireReplaceable(path, replace)
  const { O_CREAT, O_NOFOLLOW, O_TRUNC, O_WRONLY } = constants
  const file = openSync(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600)
  let open = true
  // An incomplete file is deleted, so that nobody mistakes it for a complete one.
  process.once('exit', () => {
    if (open) rmSync(path, { force: true })
  })
  return {
    write(text) {
      const bytes = typeof text === 'string' ? lineBytes(text) : text
      for (let from = 0; from < bytes.length;) from += writeSync(file, bytes, from)
    },
    end() {
      fsyncSync(file)
      closeSync(file)
      syncFolder(dirname(path))
      open = false
    },
  }
}

function requireReplaceable(path: string, replace: boolean): void {
  if (existsSync(path) && !replace)
    throw new AppError('conflict', `${path} already exists.`, { hint: 'add --yes to replace it' })
}

function lineBytes(text: string): Uint8Array {
  return Buffer.from(text.endsWith('\n') ? text : `${text}\n`)
}
