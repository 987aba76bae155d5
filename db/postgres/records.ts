/** Gives records one writer at a time across all nodes. */
import type { Database } from '../sql/database.ts'

const lock = `SELECT 1 FROM store_lock WHERE name = 'records' FOR UPDATE`

/**
 * The same connection, whose writing transactions begin with the lock on records. The verbs of `db/sql` read, decide
 * and write, and expect that nobody else writes meanwhile. Under READ COMMITTED each statement after the lock sees what
 * its holder before committed. BEGIN and lock are one message. `idle_in_transaction_session_timeout` frees the lock of
 * a node that stopped.
 */
export function lockingRecords(db: Database): Database {
  const dialect = { ...db.dialect, beginWrite: `${db.dialect.beginWrite}; ${lock}` }
  return Object.create(db, { dialect: { value: dialect } }) as Database
}
