/** The Logs page's reads: events with the time we received them, one event whole, and counts by type. */
import { Elysia } from 'elysia'
import { isoTime } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { json, jsonText } from '../../http/response.ts'
import { readQuery } from '../../http/query.ts'
import { livePosition, wrapEvents } from '../live/routes.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { SignIns } from '../../identity/sign-in/sign-ins.ts'
import type { Seal } from '../../http/cursor-cipher.ts'
import { pageParameters, readPage } from './page.ts'

export interface DashboardTraceRoutesServices {
  store: Store
  signIns: SignIns
  seal: Seal
}

export function dashboardTraceRoutes({ store, seal, signIns }: DashboardTraceRoutesServices) {
  return new Elysia()
    .get('/api/events', async ({ request }) => {
      const { org } = await signIns.require(request)
      const page = await readPage({ events: store.events, seal }, org.id, readQuery(request, pageParameters))
      // The page's ceiling is where a stream that continues it must start: no gap, no duplicate.
      const live = JSON.stringify(livePosition(seal, org.id, page.ceilingSeq))
      const nextCursor = JSON.stringify(page.nextCursor)
      return jsonText(`{"events":[${wrapEvents(page.events)}],"nextCursor":${nextCursor},"live":${live}}`)
    })
    .get('/api/events/:id', async ({ request, params }) => {
      const { org } = await signIns.require(request)
      readQuery(request, {})
      const event = params.id ? await store.events.byId(org.id, params.id) : null
      if (!event) throw new AppError('not_found', 'No event with this id is stored here.')
      return jsonText(`{"receivedAt":"${isoTime(event.receivedAtMs)}","event":${event.json}}`)
    })
    .get('/api/overview', async ({ request }) => {
      const { org } = await signIns.require(request)
      readQuery(request, {})
      return json(await store.events.overview(org.id))
    })
}
