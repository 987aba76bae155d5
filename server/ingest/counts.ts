/** Counts accepted, rejected and refused ingest by hour and key, for the ingest health page and /metrics. */
import {
  countHourMs,
  mergeCount,
  mergeScope,
  otherScopes,
  type BatchCount,
  type IngestCount,
  type NearMissCount,
  type ScopeCount,
  type ScopeHour,
} from '../../db/contract/ingest-counts.ts'
import type { ApiKey, Store } from '../../db/contract/store.ts'
import type { Clock } from '../clock.ts'
import type { ClockGuard } from '../system/clock-guard.ts'
import { limits } from '../limits.ts'
import type { Log } from '../log.ts'
import type { NearMiss } from './check-event.ts'

/** The counts of one request, filled in by its handler. */
export interface RequestCount {
  accepted: number
  deduped: number
  rejected: number
  newestMs: number | null // occurredAt of its newest valid event
  isWritten: boolean // in the transaction of its batch
}

export interface IngestTotals {
  requests: number
  refused: number
  accepted: number
  deduped: number
  rejected: number
}

export interface IngestCounts {
  /** For a handler that counts its request itself: passes what `begin` made to `end`, however it ends. */
  begin(): RequestCount
  end(key: Pick<ApiKey, 'id' | 'orgId'>, count: RequestCount, refused: 0 | 1): void
  /** Runs the handler of an authenticated request and counts the request, whether it succeeds or fails. */
  request<T>(key: Pick<ApiKey, 'id' | 'orgId'>, handle: (count: RequestCount) => Promise<T>): Promise<T>
  /** Counts the probably misspelled fields of one event. */
  nearMisses(key: Pick<ApiKey, 'id' | 'orgId'>, misses: readonly NearMiss[]): void
  /** Counts OpenTelemetry items that were not counted with a batch. */
  scopes(orgId: string, counts: Iterable<ScopeCount>): void
  /** Writes counts that were not stored with a batch; a crash loses at most those since the last flush. */
  flush(): Promise<void>
  /** Since the process started. */
  totals(): Readonly<IngestTotals>
}

/** Between two flushes, of all senders. More are not counted, so that names cannot fill the memory. */
const nearMissesMax = 500

/** Likewise; more are counted as one scope of their organization. */
const waitingScopesMax = 5_000

function waitingMisses() {
  let waiting = new Map<string, NearMissCount>()
  return {
    add(miss: NearMissCount): void {
      const name = JSON.stringify([miss.orgId, miss.keyId, miss.hourStartMs, miss.path])
      const existingMiss = waiting.get(name)
      if (existingMiss !== undefined) existingMiss.events += miss.events
      else if (waiting.size < nearMissesMax) waiting.set(name, miss)
    },
    drain(): NearMissCount[] {
      const drained = [...waiting.values()]
      waiting = new Map()
      return drained
    },
  }
}

function waitingScopes() {
  let waiting = new Map<string, ScopeHour>()
  return {
    add(counts: Iterable<ScopeHour>): void {
      for (const hourCount of counts) {
        const scope = waiting.size < waitingScopesMax ? hourCount.scope : otherScopes
        mergeScope(waiting, { ...hourCount, scope })
      }
    },
    drain(): ScopeHour[] {
      const drained = [...waiting.values()]
      waiting = new Map()
      return drained
    },
  }
}

function noCount(): RequestCount {
  return { accepted: 0, deduped: 0, rejected: 0, newestMs: null, isWritten: false }
}

function addTo(totals: IngestTotals, { accepted, deduped, rejected }: RequestCount, refused: 0 | 1): void {
  totals.requests++
  totals.refused += refused
  totals.accepted += accepted
  totals.deduped += deduped
  totals.rejected += rejected
}

export function makeIngestCounts(
  store: Pick<Store, 'ingestCounts'>,
  clock: Clock,
  log: Log,
  clockGuard: Pick<ClockGuard, 'hold'>,
): IngestCounts {
  const totals: IngestTotals = { requests: 0, refused: 0, accepted: 0, deduped: 0, rejected: 0 }
  let waiting = new Map<string, IngestCount>()
  const misses = waitingMisses()
  const ofScopes = waitingScopes()
  let flushing = Promise.resolve()

  function end(key: Pick<ApiKey, 'id' | 'orgId'>, count: RequestCount, refused: 0 | 1): void {
    const { accepted, deduped, rejected, newestMs } = count
    if (!count.isWritten) {
      const now = clock.now()
      const countKey = { orgId: key.orgId, keyId: key.id, hourStartMs: hourOf(now) }
      const clocks = { aheadMaxMs: aheadOf(newestMs, now), behindMinMs: behindOf(newestMs, now) }
      mergeCount(waiting, { ...countKey, requests: 1, refused, accepted, deduped, rejected, ...clocks })
    }
    addTo(totals, count, refused)
  }

  async function write(): Promise<void> {
    const nearMisses = misses.drain()
    const scopes = ofScopes.drain()
    if (waiting.size + nearMisses.length + scopes.length === 0) return
    const unwritten = waiting
    waiting = new Map()
    try {
      const keptSinceMs = clockGuard.hold() === null ? clock.now() - limits.ingestCountsRetentionMs : 0
      const counts = [...unwritten.values()]
      await store.ingestCounts.add({ counts, nearMisses, scopes, keptSinceMs })
    } catch (error) {
      // A full disk may recover; the counts wait here until then.
      for (const count of unwritten.values()) mergeCount(waiting, count)
      for (const miss of nearMisses) misses.add(miss)
      ofScopes.add(scopes)
      log.warn('ingest_counts_not_written', { message: String(error) })
    }
  }

  return {
    begin: noCount,
    end,
    async request(key, handle) {
      const count = noCount()
      let refused: 0 | 1 = 1
      try {
        const result = await handle(count)
        refused = 0
        return result
      } finally {
        end(key, count, refused)
      }
    },
    nearMisses({ id, orgId }, fieldMisses) {
      const countKey = { orgId, keyId: id, hourStartMs: hourOf(clock.now()), events: 1 }
      for (const { path, known: knownField } of fieldMisses)
        misses.add({ ...countKey, path, known: knownField })
    },
    scopes(orgId, counts) {
      const hourStartMs = hourOf(clock.now())
      ofScopes.add([...counts].map((scopeCount) => ({ ...scopeCount, orgId, hourStartMs })))
    },
    flush: () => (flushing = flushing.then(write)),
    totals: () => totals,
  }
}

function hourOf(now: number): number {
  return now - (now % countHourMs)
}

/** The counts stored in the transaction of a batch, so that a crash cannot separate them. */
export function batchCount(
  rejected: number,
  newestMs: number | null,
  now: number,
  scopes: ScopeCount[] = [],
): BatchCount {
  return {
    scopes,
    rejected,
    aheadMaxMs: aheadOf(newestMs, now),
    behindMinMs: behindOf(newestMs, now),
    keptSinceMs: now - limits.ingestCountsRetentionMs,
  }
}

function aheadOf(newestMs: number | null, now: number): number {
  return newestMs === null ? 0 : Math.max(0, newestMs - now)
}

function behindOf(newestMs: number | null, now: number): number | null {
  return newestMs === null ? null : Math.max(0, now - newestMs)
}
