/** `sightglass export traces` and `export metrics`: what the gateway would stream, written to a file. */
import type { EventFilter, EventPosition, Json } from '../../db/store.ts'
import { auditEntry } from '../audit/entry.ts'
import type { Invocation } from '../config.ts'
import { csvRow } from '../http/csv.ts'
import { readQuery } from '../http/query.ts'
import { metricsAnswer } from '../metrics/answer.ts'
import { rangeParameters, readRange } from '../metrics/range.ts'
import { csvColumns, eventRow } from '../traces/csv-columns.ts'
import { filterParameters, readFilter } from '../traces/filter.ts'
import { walkPageEvents } from '../traces/walk.ts'
import { dataPlace } from './data-verbs.ts'
import { openData, type DataAccess } from './hand-over.ts'
import { requireOrg } from './org.ts'
import { openOutput } from './output.ts'
import { numberOf, textOf, type Params } from './params.ts'
import { print } from './print.ts'
import type { VerbContext } from './verb-context.ts'

export async function exportData({ verb, values }: Invocation): Promise<number> {
  const { org, filter, format, raw, out, yes, json } = values
  const data = await openData({ ...dataPlace(values), create: false })
  try {
    const output = openOutput(out, yes)
    const asked = { org, filter, format }
    const lines = verb === 'export metrics' ? metricLines(data, asked, !raw) : traceLines(data, asked, !raw)
    let count = 0
    for await (const part of lines) {
      output.write(part.text)
      count += part.count
    }
    output.end()
    const what = verb === 'export metrics' ? 'rows' : 'events'
    if (out !== null)
      print(json ? JSON.stringify({ path: out, format, count }) : `Wrote ${count} ${what} to ${out}.`)
    return 0
  } finally {
    await data.close()
  }
}

interface Part {
  text: string
  count: number
}

type Asked = { org: string; filter: string; format: 'json' | 'csv' }

async function* traceLines(data: DataAccess, asked: Asked, guard: boolean): AsyncGenerator<Part> {
  const { orgId, ceilingSeq } = (await data.call('export traces begin', asked)) as {
    orgId: string
    ceilingSeq: number
  }
  if (asked.format === 'csv') yield { text: csvRow(csvColumns, false), count: 0 }
  let before: Json = null
  let count = 0
  do {
    const params: Params = { orgId, filter: asked.filter, ceilingSeq, before }
    const page = (await data.call('export traces page', params)) as { events: string[]; next: Json }
    const { events } = page
    count += events.length
    const text =
      asked.format === 'csv' ? events.map((event) => eventRow(event, guard)).join('') : events.join('\n')
    if (events.length > 0) yield { text, count: events.length }
    before = page.next
  } while (before !== null)
  if (asked.format === 'json') yield { text: JSON.stringify({ _end: { count } }), count: 0 }
}

async function* metricLines(data: DataAccess, asked: Asked, guard: boolean): AsyncGenerator<Part> {
  const metrics = (await data.call('export metrics', asked)) as unknown as Awaited<
    ReturnType<typeof metricsAnswer>
  >
  const { rows } = metrics
  if (asked.format === 'json') yield { text: JSON.stringify(metrics), count: rows.length }
  if (asked.format === 'json') return
  const columns = ['orgId', 'siteId', 'bucketStart', 'type', 'outcome', 'count'] as const
  const lines = rows.map((row) =>
    csvRow(
      columns.map((name) => row[name]),
      guard,
    ),
  )
  yield { text: csvRow(columns, false) + lines.join(''), count: rows.length }
}

/** Fixes what the export covers and writes the row that tells of it. */
export async function beginTraces(context: VerbContext, params: Params): Promise<Json> {
  const { store } = context
  const org = await requireOrg(store, textOf(params, 'org'))
  const filter = filterOf(textOf(params, 'filter'))
  await tell(context, org.id, 'traces.exported', { format: textOf(params, 'format'), filter: { ...filter } })
  return { orgId: org.id, ceilingSeq: await store.events.lastSeq(org.id) }
}

export async function tracesPage({ store }: VerbContext, params: Params): Promise<Json> {
  const page = await store.events.page({
    orgId: textOf(params, 'orgId'),
    filter: filterOf(textOf(params, 'filter')),
    limit: walkPageEvents,
    before: (params['before'] ?? null) as EventPosition | null,
    ceilingSeq: numberOf(params, 'ceilingSeq'),
  })
  const next = page.next === null ? null : { ...page.next }
  return { events: page.events.map((event) => event.json), next }
}

export async function exportMetrics(context: VerbContext, params: Params): Promise<Json> {
  const { store, clock } = context
  const org = await requireOrg(store, textOf(params, 'org'))
  const range = readRange(readQuery(requestOf(textOf(params, 'filter')), rangeParameters), clock.now())
  await tell(context, org.id, 'metrics.exported', { format: textOf(params, 'format'), filter: { ...range } })
  return (await metricsAnswer(store, org.id, range)) as unknown as Json
}

function filterOf(query: string): EventFilter {
  return readFilter(readQuery(requestOf(query), filterParameters))
}

/** The query of an export is read by the rules of the gateway. */
function requestOf(query: string): Request {
  return new Request(`http://localhost/?${query.replace(/^\?/, '')}`)
}

async function tell(
  { store, clock }: VerbContext,
  orgId: string,
  action: string,
  metadata: { [member: string]: Json },
): Promise<void> {
  await store.audit.append(
    auditEntry({ orgId, actor: 'cli' }, { action, target: orgId, metadata }, clock.now()),
  )
}
