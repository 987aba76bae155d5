/** One group of waiting batches in one transaction: one fsync for all of them, each failing alone. */
import type { Database } from 'bun:sqlite'
import { countHourMs, mergeCount, type IngestCount } from '../../contract/ingest-counts.ts'
import type { EventBatch } from '../../contract/store.ts'
import type { EventWriter } from '../events/engine.ts'
import { storeError } from '../file/failure.ts'
import { failureOf, type AppendOutcome } from './protocol.ts'
import { addIngestCounts } from '../registry/ingest-counts.ts'
import { inTransaction } from '../file/transaction.ts'

export function commitGroup(db: Database, events: EventWriter, batches: EventBatch[]): AppendOutcome[] {
  const outcomes = inTransaction(db, () => {
    const taken = batches.map((batch) => appendOne(db, events, batch))
    events.flush()
    countRequests(db, batches, taken)
    return taken
  })
  events.committed()
  return outcomes
}

/** In the same transaction: after a crash the counts of ingest say what the log holds. */
function countRequests(db: Database, batches: EventBatch[], outcomes: AppendOutcome[]): void {
  const counts = new Map<string, IngestCount>()
  let keptSinceMs = 0
  batches.forEach(({ orgId, keyId, receivedAtMs, count }, index) => {
    const outcome = outcomes[index]
    if (count === undefined || outcome === undefined || 'kind' in outcome) return
    const { accepted, deduped } = outcome
    const { aheadMaxMs, behindMinMs } = count
    keptSinceMs = count.keptSinceMs
    mergeCount(counts, {
      ...{ orgId, keyId, hourStartMs: receivedAtMs - (receivedAtMs % countHourMs), requests: 1 },
      refused: accepted + deduped === 0 ? 1 : 0,
      ...{ accepted, deduped, rejected: count.rejected + outcome.rejected.length, aheadMaxMs, behindMinMs },
    })
  })
  if (counts.size > 0) addIngestCounts({ db }, { counts: [...counts.values()], keptSinceMs })
}

/** What ended the whole transaction (a full disk, a failed device) fails all of them. */
function appendOne(db: Database, events: EventWriter, batch: EventBatch): AppendOutcome {
  try {
    return events.append(batch)
  } catch (error) {
    const failure = storeError(error, 'append')
    if (!db.inTransaction || failure.kind === 'io' || failure.kind === 'storage_full') throw failure
    return failureOf(failure)
  }
}
