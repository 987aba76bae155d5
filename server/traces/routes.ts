/** GET /v1/traces and GET /v1/traces/{id}: the stored events, given back as they were sent (contract §6). */
import { Elysia } from 'elysia'
import { AppError } from '../errors.ts'
import type { Parts } from '../parts.ts'
import { jsonText } from '../http/answer.ts'
import { readQuery } from '../http/query.ts'
import { pageParameters, readPage } from './page.ts'

export function traceRoutes({ store, guard, seal }: Parts) {
  return new Elysia()
    .get('/v1/traces', async ({ request }) => {
      const key = await guard.gateway(request, 'traces:read')
      const page = await readPage(
        { events: store.events, seal },
        key.orgId,
        readQuery(request, pageParameters),
      )
      // The events are stored as JSON text; joining them keeps every number to its last digit.
      const events = page.events.map((event) => event.json).join(',')
      return jsonText(`{"events":[${events}],"nextCursor":${JSON.stringify(page.nextCursor)}}`)
    })
    .get('/v1/traces/:id', async ({ request, params }) => {
      const key = await guard.gateway(request, 'traces:read')
      readQuery(request, {})
      const event = params.id ? await store.events.byId(key.orgId, params.id) : null
      if (!event) throw new AppError('not_found', 'No event with this id is stored here.')
      return jsonText(event.json)
    })
}
