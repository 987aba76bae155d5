/** GET /api/ingest/health: counts by hour and key, rejected samples and sender problems, for the dashboard. */
import { Elysia } from 'elysia'
import { json } from '../http/response.ts'
import { invalidQuery, parseQueryTime, readQuery } from '../http/request.ts'
import { limits } from '../limits.ts'
import { isoTime, type Clock } from '../clock.ts'
import type { ApiKey, RejectedSample, Store } from '../../db/contract/store.ts'
import type { SignIns } from '../identity/sign-in/sign-ins.ts'
import type { IngestCounts } from './counts.ts'
import type { Rejections } from './rejected.ts'
import type { IngestCount, ScopeCount } from '../../db/contract/ingest-counts.ts'
import { dayMs, hourMs } from '../../db/contract/units.ts'

interface IngestHealthRoutesServices {
  store: Store
  clock: Clock
  signIns: SignIns
  rejections: Rejections
  ingestCounts: IngestCounts
}

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
    const fromMs = since === undefined ? now - dayMs : parseQueryTime('since', since)
    if (fromMs < now - limits.ingestHealthMs)
      throw invalidQuery('since', `since must be within the last ${limits.ingestHealthMs / dayMs} days`)
    const sinceMs = Math.floor(fromMs / hourMs) * hourMs
    await Promise.all([ingestCounts.flush(), rejections.settled()])
    const [counts, keys, samples, nearMisses, scopes] = await Promise.all([
      store.ingestCounts.list({ orgId: org.id, sinceMs }),
      store.keys.list({ orgId: org.id, kind: 'ingest' }),
      store.rejected.list({ orgId: org.id, limit: limits.rejectedShownMax }),
      store.ingestCounts.nearMisses({ orgId: org.id, sinceMs }),
      store.ingestCounts.scopes({ orgId: org.id, sinceMs }),
    ])
    const otlp: OtlpHealthView = { since: isoTime(sinceMs), scopes }
    return json({ ...ingestHealth(counts, keys, samples, { sinceMs, now }), nearMisses, otlp })
  })
}

/** What became of OpenTelemetry items, by hour of arrival like all counts. */
export interface OtlpHealthView {
  since: string
  scopes: ScopeCount[]
}

/** A larger offset means a wrong sender clock: network and queues explain less. */
const aheadMs = 60_000
const behindMs = 15 * 60_000

const sums = ['requests', 'refused', 'accepted', 'deduped', 'rejected'] as const

function ingestHealth(
  counts: IngestCount[],
  keys: ApiKey[],
  samples: RejectedSample[],
  range: { sinceMs: number; now: number },
) {
  return {
    since: isoTime(range.sinceMs),
    totals: sumOf(counts),
    keys: keys.map((key) =>
      keyHealth(
        key,
        counts.filter((count) => count.keyId === key.id),
        range.now,
      ),
    ),
    hours: counts.map((count) => ({
      hour: isoTime(count.hourStartMs),
      keyId: count.keyId,
      ...sumOf([count]),
    })),
    rejected: samples.map(({ atMs, keyId, code, message, path, excerpt }) => ({
      at: isoTime(atMs),
      keyId,
      code,
      message,
      path,
      excerpt,
    })),
  }
}

export type IngestHealthView = ReturnType<typeof ingestHealth>

function sumOf(counts: IngestCount[]) {
  const total = { requests: 0, refused: 0, accepted: 0, deduped: 0, rejected: 0 }
  for (const count of counts) for (const name of sums) total[name] += count[name]
  return total
}

function keyHealth(key: ApiKey, counts: IngestCount[], now: number) {
  const { id, label, prefix, createdAtMs, lastUsedAtMs, exposedAtMs, revokedAtMs, expiresAtMs } = key
  const time = (ms: number | null) => (ms === null ? null : isoTime(ms))
  const hasExpired = expiresAtMs !== null && expiresAtMs <= now
  return {
    id,
    label,
    prefix,
    state: revokedAtMs !== null ? 'revoked' : hasExpired ? 'expired' : 'active',
    createdAt: isoTime(createdAtMs),
    lastUsedAt: time(lastUsedAtMs),
    neverUsed: lastUsedAtMs === null && counts.length === 0,
    seenInBrowserAt: time(exposedAtMs),
    clock: clockOf(counts),
    ...sumOf(counts),
  }
}

/** Uses the newest hour with events, so that a corrected clock is soon reported as correct. */
function clockOf(counts: IngestCount[]): { state: 'fine' | 'ahead' | 'behind'; offMs: number } | null {
  const last = counts.findLast((count) => count.behindMinMs !== null)
  if (last === undefined || last.behindMinMs === null) return null
  if (last.aheadMaxMs > aheadMs) return { state: 'ahead', offMs: last.aheadMaxMs }
  if (last.behindMinMs > behindMs) return { state: 'behind', offMs: last.behindMinMs }
  return { state: 'fine', offMs: Math.max(last.aheadMaxMs, last.behindMinMs) }
}
