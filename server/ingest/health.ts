/** What the ingest-health page shows: counts by hour and key, what was refused, and senders that need a look. */
import type { IngestCount } from '../../db/contract/ingest-counts.ts'
import type { ApiKey, RejectedSample } from '../../db/contract/store.ts'
import { isoTime } from '../clock.ts'

/** Beyond these a sender's clock is called off: network and queues explain less than that. */
const aheadMs = 60_000
const behindMs = 15 * 60_000

const sums = ['requests', 'refused', 'accepted', 'deduped', 'rejected'] as const

export function ingestHealth(
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
        counts.filter((one) => one.keyId === key.id),
        range.now,
      ),
    ),
    hours: counts.map((one) => ({ hour: isoTime(one.hourStartMs), keyId: one.keyId, ...sumOf([one]) })),
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

function sumOf(counts: IngestCount[]) {
  const total = { requests: 0, refused: 0, accepted: 0, deduped: 0, rejected: 0 }
  for (const one of counts) for (const name of sums) total[name] += one[name]
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

/** Judged by the newest hour with events, so that a clock that was set right is soon called right. */
function clockOf(counts: IngestCount[]): { state: 'fine' | 'ahead' | 'behind'; offMs: number } | null {
  const last = counts.findLast((one) => one.behindMinMs !== null)
  if (last === undefined || last.behindMinMs === null) return null
  if (last.aheadMaxMs > aheadMs) return { state: 'ahead', offMs: last.aheadMaxMs }
  if (last.behindMinMs > behindMs) return { state: 'behind', offMs: last.behindMinMs }
  return { state: 'fine', offMs: Math.max(last.aheadMaxMs, last.behindMinMs) }
}
