/** One group of waiting batches in one transaction: one fsync for all of them, each failing alone. */
import type { Database } from 'bun:sqlite'
import type { EventBatch } from '../store.ts'
import type { EventWriter } from './event-engine.ts'
import { storeError } from './failure.ts'
import { failureOf, type AppendOutcome } from './protocol.ts'
import { inTransaction } from './transaction.ts'

export function commitGroup(db: Database, events: EventWriter, batches: EventBatch[]): AppendOutcome[] {
  const outcomes = inTransaction(db, () => batches.map((batch) => appendOne(db, events, batch)))
  events.committed()
  return outcomes
}

/** A savepoint around each batch; what ended the whole transaction (a full disk, a failed device) fails them all. */
function appendOne(db: Database, events: EventWriter, batch: EventBatch): AppendOutcome {
  db.query('SAVEPOINT batch').run()
  try {
    const result = events.append(batch)
    db.query('RELEASE batch').run()
    return result
  } catch (error) {
    const failure = storeError(error, 'append')
    if (!db.inTransaction || failure.kind === 'io' || failure.kind === 'storage_full') throw failure
    db.query('ROLLBACK TO batch').run()
    db.query('RELEASE batch').run()
    events.rolledBack()
    return failureOf(failure)
  }
}
