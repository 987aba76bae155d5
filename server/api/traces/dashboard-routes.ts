/** The dashboard's reads of events: pages and single events with their arrival time, counts, the histogram, exports. */
import { Elysia } from 'elysia'
import { isoTime, type Clock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { judgedSince } from '../../evidence/judged-since.ts'
import { json, jsonText } from '../../http/response.ts'
import { contextOf, invalidQuery, readQuery } from '../../http/request.ts'
import { livePosition } from './live-position.ts'
import { filterParameters, pageParameters, readFilter, readPage } from './filter.ts'
import { rolesOf } from '../../identity/permissions.ts'
import { readZone } from '../../counts/period.ts'
import { histogram } from './histogram.ts'
import { includesRecord, receivedJson, wrapEvents } from './record.ts'
import { exportFormats, traceExporter, type ParquetParts } from './export.ts'
import type { EventFilter, Store } from '../../../db/contract/store.ts'
import type { SignIns } from '../../identity/sign-in/sign-ins.ts'
import type { Cipher } from '../../system/encryption.ts'
import type { Shares } from '../../http/shares.ts'
import type { Log } from '../../log.ts'

interface DashboardTraceRoutesServices {
  store: Store
  signIns: SignIns
  cursorCipher: Cipher
}

export function dashboardTraceRoutes({ store, cursorCipher, signIns }: DashboardTraceRoutesServices) {
  return (
    new Elysia()
      .get('/api/events', async ({ request }) => {
        const { org } = await signIns.require(request)
        const page = await readPage(
          { events: store.events, cursorCipher },
          org.id,
          readQuery(request, pageParameters),
          true,
        )
        // A live stream that starts at the page's ceiling continues it without gap or duplicate.
        const live = JSON.stringify(livePosition(cursorCipher, org.id, page.ceilingSeq))
        const nextCursor = JSON.stringify(page.nextCursor)
        return jsonText(`{"events":[${wrapEvents(page.events)}],"nextCursor":${nextCursor},"live":${live}}`)
      })
      .get('/api/events/:id', async ({ request, params }) => {
        const { org } = await signIns.require(request)
        readQuery(request, {})
        const event = params.id ? await store.events.byId({ orgId: org.id, id: params.id }) : null
        if (!event) throw new AppError('not_found', 'No event has this id.')
        const [keys, judgedSinceMs] = await Promise.all([
          store.keys.list({ orgId: org.id, kind: 'ingest' }),
          judgedSince(store),
        ])
        const { key = null, observedBy = null } = event.provenance ?? {}
        const eventKeys = keys.filter(({ id }) => id === key || id === observedBy)
        const extraFields = {
          keys: Object.fromEntries(eventKeys.map(({ id, label }) => [id, label])),
          judgedSince: judgedSinceMs === null ? null : isoTime(judgedSinceMs),
        }
        return jsonText(`${receivedJson(event).slice(0, -1)},${JSON.stringify(extraFields).slice(1)}`)
      })
      // Every role sees which key sent an event, so every role sees its name.
      .get('/api/key-labels', async ({ request }) => {
        const { org } = await signIns.require(request)
        readQuery(request, {})
        const keys = await store.keys.list({ orgId: org.id, kind: 'ingest' })
        return json({ labels: Object.fromEntries(keys.map(({ id, label }) => [id, label])) })
      })
      .get('/api/overview', async ({ request }) => {
        const { org } = await signIns.require(request)
        readQuery(request, {})
        return json(await store.events.overview(org.id))
      })
  )
}

/** The histogram above the Logs table, and the export of its events. */
interface LogsRoutesServices {
  store: Store
  clock: Clock
  log: Log
  signIns: SignIns
  exportShares: Shares
  parquetParts: ParquetParts
}

export function logsRoutes(services: LogsRoutesServices) {
  const { store, clock, signIns } = services
  const exportTraces = traceExporter(services)
  return new Elysia()
    .get('/api/histogram', async ({ request }) => {
      const { org } = await signIns.require(request)
      const query = readQuery(request, { ...filterParameters, zone: 'one' })
      const filter = readFilter(query)
      return json(await histogram(store.events, org.id, filter, clock.now(), readZone(query)))
    })
    .get('/api/export/events', async ({ request }) => {
      const { org, account } = await signIns.require(request, rolesOf('events.export'))
      const query = readQuery(request, { ...filterParameters, format: 'one', include: 'one' })
      const format = query.one('format') ?? 'csv'
      if (!Object.hasOwn(exportFormats, format))
        throw invalidQuery('format', 'format must be csv, ndjson or parquet')
      const filter = readFilter(query)
      const context = contextOf(request)
      const answer = await exportTraces(
        {
          orgId: org.id,
          actor: `user:${account.id}`,
          requestId: context.id,
          filter,
          type: exportFormats[format as keyof typeof exportFormats],
          raw: false,
          withRecords: includesRecord(query),
          headOnly: request.method === 'HEAD',
        },
        () => context.keepOpen(),
      )
      const name = exportName(filter, clock.now())
      answer.headers.set('content-disposition', `attachment; filename="${name}.${format}"`)
      return answer
    })
}

/** "logs-events-2026-11-15--2026-11-22": first and last day in UTC; only the last day without `since`. */
function exportName({ sinceMs, untilMs }: EventFilter, nowMs: number): string {
  const dayOf = (ms: number): string => isoTime(ms).slice(0, 'YYYY-MM-DD'.length)
  // The end is exclusive: a range up to midnight ends on the previous day.
  const last = dayOf(untilMs === undefined ? nowMs : untilMs - 1)
  return `logs-events-${sinceMs === undefined ? last : `${dayOf(sinceMs)}--${last}`}`
}
