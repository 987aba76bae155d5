/** Row locks by which the nodes of a database take turns. Order: records, upkeep of an organization, its arrivals. */
import { inTransaction, type Database } from '../sql/database.ts'
import { writerSchema } from './migrations/migrations.ts'

/** The same connection, whose writing transactions fail once a migration has ended the release of this node. */
export function fenced(db: Database): Database {
  return beginningWith(db, `SELECT begin_write(${writerSchema})`)
}

function beginningWith(db: Database, statement: string): Database {
  const dialect = { ...db.dialect, beginWrite: `${db.dialect.beginWrite}; ${statement}` }
  return Object.create(db, { dialect: { value: dialect } }) as Database
}

const recordsLock = `SELECT 1 FROM store_lock WHERE name = 'records' FOR UPDATE`

/**
 * The same connection, whose writing transactions begin with the lock on records. The verbs of `db/sql` read, decide
 * and write, and expect that nobody else writes meanwhile. Under READ COMMITTED each statement after the lock sees what
 * its holder before committed. BEGIN and lock are one message. `idle_in_transaction_session_timeout` frees the lock of
 * a node that stopped.
 */
export function lockingRecords(db: Database): Database {
  return beginningWith(db, recordsLock)
}

/**
 * In the open transaction: until it ends no other node appends to the organization, folds, seals or merges. Returns the
 * organization's number.
 */
export function lockEvents(db: Database, orgId: string): number {
  const open = 'SELECT open_event_org(CAST(? AS text)) AS num'
  const { num } = db.query<{ num: number }, [string]>(open).get(orgId)!
  db.query('SELECT 1 FROM event_upkeep WHERE org = ? FOR UPDATE').get(num)
  db.query('SELECT 1 FROM event_org WHERE num = ? FOR UPDATE').get(num)
  return num
}

/** Runs due work in a transaction, while appends continue. False when another node works on the organization. */
export function withUpkeep(db: Database, num: number, work: () => void): boolean {
  return inTransaction(db, () => {
    const lock = 'SELECT 1 FROM event_upkeep WHERE org = ? FOR UPDATE SKIP LOCKED'
    if (db.query(lock).get(num) === null) return false
    work()
    return true
  })
}
