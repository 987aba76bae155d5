/** GET /v1/metrics: counts by type, outcome and hour, exact at every moment (contract §7); the same for the dashboard. */
import { Elysia } from 'elysia'
import { isoTime } from '../clock.ts'
import { json } from '../http/answer.ts'
import { readQuery } from '../http/query.ts'
import { limits } from '../limits.ts'
import type { Parts } from '../parts.ts'
import { readBreakdown } from './breakdown.ts'
import { rangeParameters, readRange } from './range.ts'

export function metricsRoutes(parts: Parts) {
  const dashboard = async (request: Request) => (await parts.signIns.require(request)).org.id
  return new Elysia()
    .get('/v1/metrics', async ({ request }) => {
      const key = await parts.guard.gateway(request, 'metrics:read')
      return json(await readMetrics(parts, key.orgId, request))
    })
    .get('/api/metrics', async ({ request }) =>
      json(await readMetrics(parts, await dashboard(request), request)),
    )
    .get('/api/breakdown', async ({ request }) =>
      json(await readBreakdown(parts, await dashboard(request), request)),
    )
}

async function readMetrics({ store, clock }: Parts, orgId: string, request: Request) {
  const range = readRange(readQuery(request, rangeParameters), clock.now())
  const rowsMax = limits.metricsRowsMax
  const metrics = await store.events.metrics({ orgId, ...range, rowsMax })
  const { total, byType, byOutcome, byHour, rows, truncated } = metrics
  return {
    since: isoTime(range.sinceMs),
    until: range.untilMs === null ? null : isoTime(range.untilMs),
    total,
    byType,
    byOutcome,
    byHour: byHour.map(({ hourStartMs, count }) => ({ hour: isoTime(hourStartMs), count })),
    rows: rows.map(({ bucketStartMs, siteId, type, outcome, count }) => ({
      orgId,
      siteId,
      bucketStart: isoTime(bucketStartMs),
      type,
      outcome,
      count,
    })),
    ...(truncated ? { truncated: true } : {}),
  }
}
