/** Runs a synchronous function in an immediate transaction. A promise is rejected, because half of it would commit. */
import type { Database } from 'bun:sqlite'
import { StoreError } from '../../contract/errors.ts'
import { diskBoundsMs, makeHistogram, observe } from '../../rules/histogram.ts'

/** Commit times of this thread's transactions that changed something, fsync included. */
export const commitTimes = makeHistogram(diskBoundsMs)

/** Runs `work` between BEGIN IMMEDIATE and COMMIT. Rolls back whatever it throws. */
export function inTransaction<T>(db: Database, work: () => T): T {
  db.query('BEGIN IMMEDIATE').run()
  try {
    const result = work()
    if (result instanceof Promise) throw new StoreError('internal', 'a transaction must be synchronous')
    const startedMs = performance.now()
    db.query('COMMIT').run()
    observe(commitTimes, performance.now() - startedMs)
    return result
  } catch (error) {
    // A full disk or a failed device has already rolled back, and a second ROLLBACK would hide the cause.
    if (db.inTransaction) db.query('ROLLBACK').run()
    throw error
  }
}
