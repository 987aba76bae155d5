/** Counts what ingest took and refused, by hour and key, for the ingest-health page and for /metrics. */
import { countHourMs, mergeCount, type BatchCount, type IngestCount } from '../../db/ingest-count-store.ts'
import type { ApiKey, Store } from '../../db/store.ts'
import type { Clock } from '../clock.ts'
import type { ClockGuard } from '../clock-guard.ts'
import { limits } from '../limits.ts'
import type { Log } from '../log.ts'

/** What one request came to; whoever handles it fills it in. */
export interface RequestCount {
  accepted: number
  deduped: number
  rejected: number
  newestMs: number | null // occurredAt of its newest checked event
  isWritten: boolean // with its batch, in one transaction
}

export interface IngestTotals {
  requests: number
  refused: number
  accepted: number
  deduped: number
  rejected: number
}

export interface IngestCounts {
  /** Runs the handler of one request whose key is known, and counts it however it ends. */
  request<T>(key: Pick<ApiKey, 'id' | 'orgId'>, handle: (count: RequestCount) => Promise<T>): Promise<T>
  /** Writes what did not come with a batch; a crash loses at most what came since the last flush. */
  flush(): Promise<void>
  /** Since this process started. */
  totals(): Readonly<IngestTotals>
}

export function makeIngestCounts(
  store: Pick<Store, 'ingestCounts'>,
  clock: Clock,
  log: Log,
  clockGuard: Pick<ClockGuard, 'hold'>,
): IngestCounts {
  const totals: IngestTotals = { requests: 0, refused: 0, accepted: 0, deduped: 0, rejected: 0 }
  let waiting = new Map<string, IngestCount>()
  let flushing = Promise.resolve()

  function note(key: Pick<ApiKey, 'id' | 'orgId'>, count: RequestCount, refused: 0 | 1): void {
    const now = clock.now()
    const { accepted, deduped, rejected, newestMs } = count
    const clocks = { aheadMaxMs: aheadOf(newestMs, now), behindMinMs: behindOf(newestMs, now) }
    if (!count.isWritten) {
      mergeCount(waiting, {
        ...{ orgId: key.orgId, keyId: key.id, hourStartMs: now - (now % countHourMs) },
        ...{ requests: 1, refused, accepted, deduped, rejected, ...clocks },
      })
    }
    totals.requests++
    totals.refused += refused
    totals.accepted += accepted
    totals.deduped += deduped
    totals.rejected += rejected
  }

  async function write(): Promise<void> {
    if (waiting.size === 0) return
    const taken = waiting
    waiting = new Map()
    try {
      const keptSinceMs = clockGuard.hold() === null ? clock.now() - limits.ingestCountsKeptMs : 0
      await store.ingestCounts.add({ counts: [...taken.values()], keptSinceMs })
    } catch (error) {
      // A full disk heals; until then the counts wait here.
      for (const one of taken.values()) mergeCount(waiting, one)
      log.warn('ingest_counts_not_written', { message: String(error) })
    }
  }

  return {
    async request(key, handle) {
      const count: RequestCount = { accepted: 0, deduped: 0, rejected: 0, newestMs: null, isWritten: false }
      try {
        const result = await handle(count)
        note(key, count, 0)
        return result
      } catch (error) {
        note(key, count, 1)
        throw error
      }
    },
    flush: () => (flushing = flushing.then(write)),
    totals: () => totals,
  }
}

/** What travels with the batch of a request, so that a crash loses neither without the other. */
export function batchCount(rejected: number, newestMs: number | null, now: number): BatchCount {
  return {
    rejected,
    aheadMaxMs: aheadOf(newestMs, now),
    behindMinMs: behindOf(newestMs, now),
    keptSinceMs: now - limits.ingestCountsKeptMs,
  }
}

function aheadOf(newestMs: number | null, now: number): number {
  return newestMs === null ? 0 : Math.max(0, newestMs - now)
}

function behindOf(newestMs: number | null, now: number): number | null {
  return newestMs === null ? null : Math.max(0, now - newestMs)
}
