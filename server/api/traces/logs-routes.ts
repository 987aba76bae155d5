/** What the Logs page asks beside its rows: how they lie in time, and all of them as a file. */
import { Elysia } from 'elysia'
import type { EventFilter, Store } from '../../../db/contract/store.ts'
import { isoTime, type Clock } from '../../clock.ts'
import { rolesOf } from '../../identity/permissions.ts'
import { readZone } from '../../dashboard/period.ts'
import { contextOf } from '../../http/request-context.ts'
import { json } from '../../http/response.ts'
import { invalidQuery, readQuery } from '../../http/query.ts'
import type { SignIns } from '../../identity/sign-in/sign-ins.ts'
import type { Shares } from '../../http/shares.ts'
import type { Log } from '../../log.ts'
import { filterParameters, readFilter } from './filter.ts'
import { histogram } from './histogram.ts'
import { traceExporter } from './export.ts'

export interface LogsRoutesServices {
  store: Store
  clock: Clock
  log: Log
  signIns: SignIns
  exportShares: Shares
}

const formats = { csv: 'text/csv', ndjson: 'application/x-ndjson' } as const

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
      const query = readQuery(request, { ...filterParameters, format: 'one' })
      const format = query.one('format') ?? 'csv'
      if (!Object.hasOwn(formats, format)) throw invalidQuery('format', 'format must be csv or ndjson')
      const filter = readFilter(query)
      const { id: requestId, keepOpen } = contextOf(request)
      const answer = await exportTraces(
        {
          orgId: org.id,
          actor: `user:${account.id}`,
          requestId,
          filter,
          type: formats[format as keyof typeof formats],
          raw: false,
          headOnly: request.method === 'HEAD',
        },
        keepOpen,
      )
      const name = exportName(filter, clock.now())
      answer.headers.set('content-disposition', `attachment; filename="${name}.${format}"`)
      return answer
    })
}

/** "logs-events-2026-11-15--2026-11-22": first and last day, UTC; without a beginning the file is as of today. */
function exportName({ sinceMs, untilMs }: EventFilter, nowMs: number): string {
  const dayOf = (ms: number): string => isoTime(ms).slice(0, 'YYYY-MM-DD'.length)
  // The end is exclusive: a range up to midnight ends with the day before.
  const last = dayOf(untilMs === undefined ? nowMs : untilMs - 1)
  return `logs-events-${sinceMs === undefined ? last : `${dayOf(sinceMs)}--${last}`}`
}
