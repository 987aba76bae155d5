/** `sightglass export traces` and `export metrics`: what the gateway would stream, written to a file. */
import type { Json } from '../../../db/contract/store.ts'
import type { Invocation } from '../config.ts'
import { csvRow } from '../../text/csv.ts'
import type { MetricsAnswer } from '../../api/metrics/answer.ts'
import { csvColumns, eventRows } from '../../api/traces/csv-columns.ts'
import { dataPlace } from './data-verbs.ts'
import { openData, type DataAccess } from '../../runtime/store-access.ts'
import { openOutput } from '../output.ts'
import type { Params } from '../../runtime/params.ts'
import { print } from '../print.ts'

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
  text: string | Uint8Array
  count: number
}

type Asked = { org: string; filter: string; format: 'json' | 'csv' }

async function* traceLines(data: DataAccess, asked: Asked, guard: boolean): AsyncGenerator<Part> {
  const { orgId, ceilingSeq } = (await data.call('export traces begin', asked)) as {
    orgId: string
    ceilingSeq: number
  }
  if (asked.format === 'csv') yield { text: csvRow(csvColumns, false), count: 0 }
  const read = (before: Json) => {
    const params: Params = { orgId, filter: asked.filter, ceilingSeq, before }
    return data.call('export traces page', params) as Promise<{ events: string[]; next: Json }>
  }
  let count = 0
  let reading: ReturnType<typeof read> | null = read(null)
  while (reading !== null) {
    const { events, next }: Awaited<ReturnType<typeof read>> = await reading
    reading = next === null ? null : read(next) // while this one is written
    reading?.catch(() => undefined) // thrown by the next `await`
    count += events.length
    const text = asked.format === 'csv' ? eventRows(events, guard) : events.join('\n')
    if (events.length > 0) yield { text, count: events.length }
  }
  if (asked.format === 'json') yield { text: JSON.stringify({ _end: { count } }), count: 0 }
}

async function* metricLines(data: DataAccess, asked: Asked, guard: boolean): AsyncGenerator<Part> {
  const metrics = (await data.call('export metrics', asked)) as unknown as MetricsAnswer
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
