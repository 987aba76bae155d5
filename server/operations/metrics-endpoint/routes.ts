/** GET /metrics in Prometheus text: with the metrics token or on the metrics listener, otherwise 404. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { Elysia } from 'elysia'
import type { StoreHealth, StoreTimes, Store } from '../../../db/contract/store.ts'
import { AppError } from '../../errors.ts'
import { contextOf, readQuery } from '../../http/request.ts'
import { unauthorized } from '../../http/guard.ts'
import type { Clock } from '../../clock.ts'
import type { DiskWatch, FsyncProbe } from '../health/disk.ts'
import type { Jobs } from '../../system/scheduler.ts'
import type { IngestCounts } from '../../ingest/counts.ts'
import type { HttpTimes, WebhookOutcomes } from './counters.ts'
import type { Recount } from '../retention/recount.ts'
import { exposition, metricsOf } from './gather.ts'

export interface PrometheusRoutesServices {
  store: Store
  clock: Clock
  version: string
  disk: DiskWatch
  fsyncProbe: FsyncProbe
  jobs: Pick<Jobs, 'late' | 'report'>
  ingestCounts: IngestCounts
  recount: Recount
  httpTimes: HttpTimes
  webhookOutcomes: WebhookOutcomes
  metricsToken: string | null
  streams: Set<AbortController>
}

export function prometheusRoutes(services: PrometheusRoutesServices) {
  const readStore = storeMetrics(services)
  return new Elysia().get('/metrics', async ({ request }) => {
    admit(request, services.metricsToken)
    readQuery(request, {})
    const { health, times } = await readStore()
    const text = exposition(
      metricsOf({
        version: services.version,
        ingest: services.ingestCounts.totals(),
        repairedRows: services.recount.repaired(),
        queue: services.store.events.pressure(),
        times,
        fsync: services.fsyncProbe.times(),
        health,
        diskFreeBytes: services.disk.freeBytes(),
        jobs: services.jobs.report(),
        now: services.clock.now(),
        webhooks: services.webhookOutcomes.totals(),
        http: services.httpTimes.report(),
        liveStreams: services.streams.size,
        memoryBytes: process.memoryUsage.rss(),
      }),
    )
    return new Response(text, { headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' } })
  })
}

/** Throws 404 where metrics are not offered, 401 without the right token. */
function admit(request: Request, token: string | null): void {
  if (contextOf(request).listener === 'metrics') return
  if (token === null) throw new AppError('not_found', 'No such page or endpoint.')
  const sent = /^bearer +(\S+) *$/i.exec(request.headers.get('authorization') ?? '')?.[1]
  if (sent === undefined)
    throw unauthorized(
      'missing_bearer',
      'Send the metrics token in the header "Authorization: Bearer <token>".',
    )
  const digest = (text: string) => createHash('sha256').update(text).digest()
  if (!timingSafeEqual(digest(sent), digest(token)))
    throw unauthorized('invalid_key', 'Invalid metrics token.')
}

const patienceMs = 10

/** The store's own metrics. When its threads are too busy to respond in time, returns the previous ones. */
function storeMetrics({
  store,
}: Pick<PrometheusRoutesServices, 'store'>): () => Promise<{ health: StoreHealth; times: StoreTimes }> {
  let last: { health: StoreHealth; times: StoreTimes } | null = null
  let asking: Promise<{ health: StoreHealth; times: StoreTimes }> | null = null
  const ask = () => {
    asking ??= Promise.all([store.health(), store.times()])
      .then(([health, times]) => (last = { health, times }))
      .finally(() => (asking = null))
    return asking
  }
  return async () => {
    const fresh = ask()
    if (last === null) return fresh
    const known = last
    fresh.catch(() => undefined) // retried by the next scrape
    return Promise.race([fresh.catch(() => known), Bun.sleep(patienceMs).then(() => known)])
  }
}
