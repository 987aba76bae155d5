/** GET /v1/metrics: counts by type, outcome and hour, exact at every moment (contract §7); also for the dashboard. */
import { Elysia } from 'elysia'
import { json, jsonText } from '../../http/response.ts'
import { readQuery } from '../../http/query.ts'
import type { Store } from '../../../db/contract/store.ts'
import type { SignIns } from '../../identity/sign-in/sign-ins.ts'
import type { Clock } from '../../clock.ts'
import type { KeyGuard } from '../../http/guard.ts'
import { metricsAnswer } from './answer.ts'
import { readBreakdown } from './breakdown.ts'
import { rangeParameters, readRange } from './range.ts'

export interface MetricsRoutesServices {
  store: Store
  clock: Clock
  guard: KeyGuard
  signIns: SignIns
}

export function metricsRoutes(services: MetricsRoutesServices) {
  const dashboard = async (request: Request) => (await services.signIns.require(request)).org.id
  return new Elysia()
    .get('/v1/metrics', async ({ request }) => {
      const key = await services.guard.gateway(request, 'metrics:read')
      return jsonText(await readMetrics(services, key.orgId, request))
    })
    .get('/api/metrics', async ({ request }) =>
      jsonText(await readMetrics(services, await dashboard(request), request)),
    )
    .get('/api/breakdown', async ({ request }) =>
      json(await readBreakdown(services, await dashboard(request), request)),
    )
}

async function readMetrics({ store, clock }: MetricsRoutesServices, orgId: string, request: Request) {
  return metricsAnswer(store, orgId, readRange(readQuery(request, rangeParameters), clock.now()))
}
