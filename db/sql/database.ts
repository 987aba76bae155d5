/**
 * The connection that an engine gives to the shared code: synchronous statements in SQL that every engine runs. What
 * engines write differently is in `Dialect`.
 */
import { drizzle, type BunSQLiteDatabase } from 'drizzle-orm/bun-sqlite'
import { StoreError } from '../contract/errors.ts'
import { diskBoundsMs, makeHistogram, observe } from '../rules/histogram.ts'

export type SqlValue = string | number | boolean | null | Uint8Array

export interface Statement<Row = unknown, Params extends SqlValue[] = SqlValue[]> {
  get(...params: Params): Row | null
  all(...params: Params): Row[]
  /** For more rows than fit in memory. Runs no other statement of the connection meanwhile. */
  iterate(...params: Params): Iterable<Row>
  /** Rows as lists of their columns. */
  values(...params: Params): unknown[][]
  run(...params: Params): { changes: number }
}

export interface Database {
  /** Prepares a statement once per text. Parameters are `?` in order, or `?1`, `?2` and so on. */
  query<Row = unknown, Params extends SqlValue[] = SqlValue[]>(sql: string): Statement<Row, Params>
  /** Runs SQL of the engine itself, without parameters, as it is written. */
  run(sql: string): unknown
  /** Runs one statement for each row of parameters. Rows change different keys, so that their order has no effect. */
  runEach(sql: string, rows: SqlValue[][]): void
  readonly inTransaction: boolean
  readonly dialect: Dialect
  close(): void
}

/** What engines write or do differently. */
export interface Dialect {
  /** Begins a transaction that reads one snapshot, and one that writes. */
  beginRead: string
  beginWrite: string
  /** A subquery that lists the numbers, or the texts, of a parameter that is a JSON list. */
  numbersOf(parameter: string): string
  textsOf(parameter: string): string
  /** Whether a text contains a parameter's; whether it matches a pattern, ignoring the case of ASCII letters. */
  contains(column: string, parameter: string): string
  matches(column: string, parameter: string): string
  /** Ends a subquery of rows to change: leaves out those that another transaction has locked. */
  skipLocked: string
  /** How many blocks one statement reads ahead; 1 when a statement is no round trip. */
  blocksAhead: number
  /** Bytes of pages per row, in a table whose rows all have this many bytes. */
  roomOf(bytes: number): number
  /** Checks foreign keys at the end of the transaction, not after each statement. */
  deferKeys: string
  /** The store's time in milliseconds: that of the database's machine, or `now` when every caller is on it. */
  storeMs(db: Database, now: number): number
  /** Lists every column of every table as ("table", "column"), in order of the tables' names. */
  columns: string
  /** Faults of the database itself, below its tables; at most `limit`. */
  structureFaults(db: Database, limit: number): string[]
}

/** The query builder, which writes the SQL of ordinary rows. */
export type Orm = BunSQLiteDatabase

/** Of the client, drizzle calls `prepare` alone. */
export function ormOn(db: Database): Orm {
  const client = { prepare: (sql: string) => db.query(sql) }
  return drizzle({ client: client as never })
}

/** The tables and columns that exist, which an older schema may lack. */
export function columnsOf(db: Database): { table: string; column: string }[] {
  return db.query<{ table: string; column: string }>(db.dialect.columns).all()
}

/** Commit times of this thread's transactions that changed something, until the data is on disk. */
export const commitTimes = makeHistogram(diskBoundsMs)

/** Runs `work` in one transaction. Rolls back whatever it throws. */
export function inTransaction<T>(db: Database, work: () => T): T {
  db.query(db.dialect.beginWrite).run()
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

/** Runs `work` on one snapshot. */
export function inSnapshot<T>(db: Database, work: () => T): T {
  db.query(db.dialect.beginRead).run()
  try {
    return work()
  } finally {
    if (db.inTransaction) db.query('COMMIT').run()
  }
}
