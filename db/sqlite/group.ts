/** One group of waiting batches in one transaction: one fsync for all of them, each failing alone. */
import type { Database } from 'bun:sqlite'
import type { EventBatch } from '../store.ts'
import type { EventWriter } from './event-engine.ts'
import { storeError } from './failure.ts'
import { failureOf, type AppendOutcome } from './protocol.ts'
import { inTransaction } from './transaction.ts'

export function commitGroup(db: Database, events: EventWriter, batches: EventBatch[]): AppendOutcome[] {
  const outcomes = inTransaction(db, () => {
    const taken = batches.map((batch) => appendOne(db, events, batch))
    events.flush()
    return taken
  })
  events.committed()
  return outcomes
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
