/** GET /api/export/traces: what the Logs page shows, as a file, whole; who exports is in the audit trail. */
import { Elysia } from 'elysia'
import { contextOf } from '../http/context.ts'
import { invalidQuery, readQuery } from '../http/query.ts'
import type { Parts } from '../parts.ts'
import { traceExporter } from './export.ts'
import { filterParameters, readFilter } from './filter.ts'

const types = { ndjson: 'application/x-ndjson', csv: 'text/csv' } as const

export function traceExportRoutes(parts: Parts) {
  const exportTraces = traceExporter(parts)
  return new Elysia().get('/api/export/traces', async ({ request }) => {
    const { org, account } = await parts.signIns.require(request, ['owner', 'admin', 'analyst'])
    const query = readQuery(request, { ...filterParameters, format: 'one', raw: 'one' })
    const format = query.one('format')
    if (format !== 'ndjson' && format !== 'csv') throw invalidQuery('format', 'format must be ndjson or csv')
    const raw = query.one('raw') ?? 'false'
    if (raw !== 'true' && raw !== 'false') throw invalidQuery('raw', 'raw must be true or false')
    const wanted = {
      orgId: org.id,
      actor: `user:${account.id}`,
      requestId: contextOf(request).id,
      filter: readFilter(query),
      type: types[format],
      raw: raw === 'true',
      headOnly: request.method === 'HEAD',
    }
    return exportTraces(wanted, contextOf(request).keepOpen)
  })
}
