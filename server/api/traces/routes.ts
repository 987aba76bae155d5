/** GET /v1/traces and GET /v1/traces/{id}: the stored events, exactly as they were sent (contract §6). */
import { Elysia } from 'elysia'
import { AppError } from '../../errors.ts'
import { acceptedType, jsonText } from '../../http/response.ts'
import { contextOf, invalidQuery, readQuery, type Query } from '../../http/request.ts'
import { exportFormats, traceExporter, type ExportType, type ParquetParts } from './export.ts'
import { pageParameters, readFilter, readPage } from './filter.ts'
import { includesRecord, recordedJson, recordJson } from './record.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { Clock } from '../../clock.ts'
import type { KeyGuard } from '../../http/guard.ts'
import type { Cipher } from '../../system/encryption.ts'
import type { Shares } from '../../http/shares.ts'
import type { Log } from '../../log.ts'

interface TraceRoutesServices {
  store: Store
  clock: Clock
  log: Log
  guard: KeyGuard
  cursorCipher: Cipher
  exportShares: Shares
  parquetParts: ParquetParts
}

const answerTypes = ['application/json', ...Object.values(exportFormats)] as const

export function traceRoutes(services: TraceRoutesServices) {
  const { store, guard, cursorCipher } = services
  const exportTraces = traceExporter(services)
  return new Elysia()
    .get('/v1/traces', async ({ request }) => {
      const key = await guard.gateway(request, 'traces:read')
      const type = acceptedType(request.headers.get('accept'), answerTypes)
      const query = readQuery(request, { ...pageParameters, raw: 'one', include: 'one' })
      if (type !== 'application/json') {
        const exportRequest = {
          orgId: key.orgId,
          actor: `key:${key.id}`,
          holderId: key.id,
          ...exportOf(request, query, type),
        }
        return exportTraces(exportRequest, () => contextOf(request).keepOpen())
      }
      if (query.one('raw') !== undefined) throw invalidQuery('raw', 'raw is only valid with text/csv')
      const withRecords = includesRecord(query)
      const page = await readPage({ events: store.events, cursorCipher }, key.orgId, query, withRecords)
      // Events are stored as JSON text; joining the texts preserves every digit.
      const events = page.events.map((event) => event.json).join(',')
      const records = withRecords ? `"records":[${page.events.map(recordJson).join(',')}],` : ''
      return jsonText(`{"events":[${events}],${records}"nextCursor":${JSON.stringify(page.nextCursor)}}`)
    })
    .get('/v1/traces/:id', async ({ request, params }) => {
      const key = await guard.gateway(request, 'traces:read')
      const withRecord = includesRecord(readQuery(request, { include: 'one' }))
      const event = params.id ? await store.events.byId({ orgId: key.orgId, id: params.id }) : null
      if (!event) throw new AppError('not_found', 'No event has this id.')
      return jsonText(withRecord ? recordedJson(event) : event.json)
    })
}

/** An export has no pages, so `limit` and `cursor` are errors. */
function exportOf(request: Request, query: Query, type: ExportType) {
  for (const name of ['limit', 'cursor'])
    if (query.one(name) !== undefined)
      throw invalidQuery(name, `${name} is only valid with application/json; ${type} returns all matches`)
  const raw = query.one('raw')
  if (raw !== undefined && (type !== 'text/csv' || !['true', 'false'].includes(raw)))
    throw invalidQuery('raw', 'raw must be true or false and is only valid with text/csv')
  const withRecords = includesRecord(query)
  if (withRecords && type !== exportFormats.ndjson)
    throw invalidQuery('include', `include is not valid with ${type}, whose columns have the record`)
  const filter = readFilter(query)
  const headOnly = request.method === 'HEAD'
  return { requestId: contextOf(request).id, filter, type, raw: raw === 'true', withRecords, headOnly }
}
