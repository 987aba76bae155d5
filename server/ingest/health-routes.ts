/** GET /api/ingest/health: how ingest has gone, for the dashboard. */
import { Elysia } from 'elysia'
import { json } from '../http/response.ts'
import { invalidQuery, readQuery } from '../http/query.ts'
import { parseQueryTime } from '../http/query-time.ts'
import { limits } from '../limits.ts'
import type { Store } from '../../db/contract/store.ts'
import type { SignIns } from '../identity/sign-in/sign-ins.ts'
import type { Clock } from '../clock.ts'
import type { IngestCounts } from './counts.ts'
import type { Rejections } from './rejections.ts'
import { ingestHealth } from './health.ts'

export interface IngestHealthRoutesServices {
  store: Store
  clock: Clock
  signIns: SignIns
  rejections: Rejections
  ingestCounts: IngestCounts
}

const hourMs = 3_600_000
const dayMs = 24 * hourMs

export function ingestHealthRoutes({
  store,
  clock,
  signIns,
  ingestCounts,
  rejections,
}: IngestHealthRoutesServices) {
  return new Elysia().get('/api/ingest/health', async ({ request }) => {
    const { org } = await signIns.require(request, ['owner', 'admin', 'analyst'])
    const now = clock.now()
    const since = readQuery(request, { since: 'one' }).one('since')
    const asked = since === undefined ? now - dayMs : parseQueryTime('since', since)
    if (asked < now - limits.ingestHealthMs)
      throw invalidQuery('since', `since may lie at most ${limits.ingestHealthMs / dayMs} days back`)
    const sinceMs = Math.floor(asked / hourMs) * hourMs
    await Promise.all([ingestCounts.flush(), rejections.settled()])
    const [counts, keys, samples, nearMisses] = await Promise.all([
      store.ingestCounts.list({ orgId: org.id, sinceMs }),
      store.keys.list(org.id, 'ingest'),
      store.rejected.list(org.id, limits.rejectedShownMax),
      store.ingestCounts.nearMisses({ orgId: org.id, sinceMs }),
    ])
    return json({ ...ingestHealth(counts, keys, samples, { sinceMs, now }), nearMisses })
  })
}
