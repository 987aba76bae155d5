/** One immediate transaction around one synchronous function; a promise inside would commit half, so it is refused. */
import type { Database } from 'bun:sqlite'
import { StoreError } from '../errors.ts'

/** Runs `work` between BEGIN IMMEDIATE and COMMIT; whatever it throws undoes everything it did. */
export function inTransaction<T>(db: Database, work: () => T): T {
  db.query('BEGIN IMMEDIATE').run()
  try {
    const result = work()
    if (result instanceof Promise) throw new StoreError('internal', 'a transaction may not wait')
    db.query('COMMIT').run()
    return result
  } catch (error) {
    // A full disk or a failed device has already rolled back, and a second ROLLBACK would hide the cause.
    if (db.inTransaction) db.query('ROLLBACK').run()
    throw error
  }
}
