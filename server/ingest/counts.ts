/** Counts what ingest took and refused, by hour and key, for the ingest-health page and for /metrics. */
import type { IngestCount } from '../../db/ingest-count-store.ts'
import type { ApiKey, Store } from '../../db/store.ts'
import type { Clock } from '../clock.ts'
import { limits } from '../limits.ts'
import type { Log } from '../log.ts'

/** What one request came to; whoever handles it fills it in. */
export interface RequestCount {
  accepted: number
  deduped: number
  rejected: number
  newestMs: number | null // occurredAt of its newest checked event
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
  /** Writes what is not written yet; a crash loses at most what came since the last flush. */
  flush(): Promise<void>
  /** Since this process started. */
  totals(): Readonly<IngestTotals>
}

const hourMs = 3_600_000

export function makeIngestCounts(store: Pick<Store, 'ingestCounts'>, clock: Clock, log: Log): IngestCounts {
  const totals: IngestTotals = { requests: 0, refused: 0, accepted: 0, deduped: 0, rejected: 0 }
  let waiting = new Map<string, IngestCount>()
  let flushing = Promise.resolve()

  function note(key: Pick<ApiKey, 'id' | 'orgId'>, count: RequestCount, refused: 0 | 1): void {
    const now = clock.now()
    const { accepted, deduped, rejected, newestMs } = count
    merge(waiting, {
      orgId: key.orgId,
      keyId: key.id,
      hourStartMs: now - (now % hourMs),
      requests: 1,
      refused,
      accepted,
      deduped,
      rejected,
      aheadMaxMs: newestMs === null ? 0 : Math.max(0, newestMs - now),
      behindMinMs: newestMs === null ? null : Math.max(0, now - newestMs),
    })
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
      const keptSinceMs = clock.now() - limits.ingestCountsKeptMs
      await store.ingestCounts.add({ counts: [...taken.values()], keptSinceMs })
    } catch (error) {
      // A full disk heals; until then the counts wait here.
      for (const one of taken.values()) merge(waiting, one)
      log.warn('ingest_counts_not_written', { message: String(error) })
    }
  }

  return {
    async request(key, handle) {
      const count: RequestCount = { accepted: 0, deduped: 0, rejected: 0, newestMs: null }
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

function merge(into: Map<string, IngestCount>, one: IngestCount): void {
  const name = `${one.orgId} ${one.keyId} ${one.hourStartMs}`
  const known = into.get(name)
  if (known === undefined) {
    into.set(name, one)
    return
  }
  known.requests += one.requests
  known.refused += one.refused
  known.accepted += one.accepted
  known.deduped += one.deduped
  known.rejected += one.rejected
  known.aheadMaxMs = Math.max(known.aheadMaxMs, one.aheadMaxMs)
  const behind = [known.behindMinMs, one.behindMinMs].filter((ms) => ms !== null)
  known.behindMinMs = behind.length === 0 ? null : Math.min(...behind)
}
