/** GET /v1/metrics: counts by type, outcome and hour, exact at every moment (contract §7); also for the dashboard. */
import { Elysia } from 'elysia'
import { json, jsonText } from '../../http/response.ts'
import { readQuery } from '../../http/query.ts'
import type { Parts } from '../../services.ts'
import { metricsAnswer } from './answer.ts'
import { readBreakdown } from './breakdown.ts'
import { rangeParameters, readRange } from './range.ts'

export function metricsRoutes(parts: Parts) {
  const dashboard = async (request: Request) => (await parts.signIns.require(request)).org.id
  return new Elysia()
    .get('/v1/metrics', async ({ request }) => {
      const key = await parts.guard.gateway(request, 'metrics:read')
      return jsonText(await readMetrics(parts, key.orgId, request))
    })
    .get('/api/metrics', async ({ request }) =>
      jsonText(await readMetrics(parts, await dashboard(request), request)),
    )
    .get('/api/breakdown', async ({ request }) =>
      json(await readBreakdown(parts, await dashboard(request), request)),
    )
}

async function readMetrics({ store, clock }: Parts, orgId: string, request: Request) {
  return metricsAnswer(store, orgId, readRange(readQuery(request, rangeParameters), clock.now()))
}
