/** Opens SQLite connections with the settings of a server, and runs transactions on them. */
import { Database, SQLiteError, constants } from 'bun:sqlite'
import { existsSync, statSync } from 'node:fs'
import { StoreError } from '../../contract/errors.ts'
import { requireSoundLog } from './log-damage.ts'
import type { Database as SqlDatabase, Dialect, SqlValue } from '../../sql/database.ts'

/** A connection of Bun with what the shared code needs. */
export type SqliteDatabase = Omit<Database, 'query' | 'run'> & SqlDatabase

const dialect: Dialect = {
  beginRead: 'BEGIN',
  beginWrite: 'BEGIN IMMEDIATE',
  numbersOf: (parameter) => `(SELECT value FROM json_each(${parameter}))`,
  textsOf: (parameter) => `(SELECT value FROM json_each(${parameter}))`,
  contains: (column, parameter) => `instr(${column}, ${parameter}) > 0`,
  matches: (column, parameter) => `${column} LIKE ${parameter} ESCAPE '\\'`,
  storeMs: (_db, now) => now,
  skipLocked: '', // one writer
  blocksAhead: 1,
  roomOf,
  deferKeys: 'PRAGMA defer_foreign_keys = ON',
  columns: `SELECT t.name AS "table", c.name AS "column" FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
    WHERE t.type = 'table' ORDER BY t.name`,
  /** Pages that are lost, used twice or out of order, in any table. */
  structureFaults: (db, limit) =>
    db
      .query<{ quick_check: string }>(`PRAGMA quick_check(${limit})`)
      .all()
      .map(({ quick_check }) => quick_check)
      .filter((fault) => fault !== 'ok'),
}

/** A row that does not fit on a page leaves a part there, and the rest fills pages of its own. */
function roomOf(bytes: number): number {
  const rowHead = 16
  const cellHead = 15
  const overflowHead = 4
  const pageHead = 8
  const payload = bytes + rowHead
  const whole = pageBytes - overflowHead
  const most = pageBytes - 35
  const localMin = Math.floor(((pageBytes - 12) * 32) / 255) - 23
  if (payload <= most) return pageBytes / Math.floor((pageBytes - pageHead) / (payload + cellHead))
  const surplus = localMin + ((payload - localMin) % whole)
  const local = surplus <= most ? surplus : localMin
  const pages = Math.ceil((payload - local) / whole)
  const perPage = Math.floor((pageBytes - pageHead) / (local + overflowHead + cellHead))
  return pages * pageBytes + pageBytes / perPage
}

export function openDatabase(...options: ConstructorParameters<typeof Database>): SqliteDatabase {
  const db = new Database(...options)
  const runEach = (sql: string, rows: SqlValue[][]): void => {
    const statement = db.query<unknown, SqlValue[]>(sql)
    for (const row of rows) statement.run(...row)
  }
  return Object.assign(db, { dialect, runEach }) as unknown as SqliteDatabase
}

export const pageBytes = 8_192
/** Holds the inner pages of all tables with a hundred million events: 8 MiB read 0.5 of them for each known id. */
const writerCacheKib = 32 * 1024
/** While events are written, every snapshot begins with an empty cache. */
const readerCacheKib = 4 * 1024
const walBytesKept = 64 * 1024 * 1024
/** Pages of log, 16 MiB, before a checkpoint copies it into the database. */
export const checkpointPages = 2_000

/** Versions before 3.51.3 can corrupt a database when two connections write and checkpoint at the same moment. */
const sqliteVersionMin = [3, 51, 3] as const

/**
 * Opens a database for its only writer. `inspect` refuses a foreign file before anything is written.
 * `autocheckpointPages`: how long the log grows before SQLite copies it. The writer's thread passes 0 and copies it
 * itself, because SQLite's own checkpoint after a commit hides a failed fsync.
 */
export function openWriterConnection(
  path: string,
  inspect: (db: SqliteDatabase) => void,
  autocheckpointPages = checkpointPages,
): SqliteDatabase {
  const hadLog = existsSync(`${path}-wal`)
  const db = openDatabase(path, { create: true, readwrite: true, strict: true })
  try {
    requireSqlite(sqliteVersion(db))
    db.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, 1)
    db.run('PRAGMA busy_timeout = 5000') // first: the statements below may meet another tool's lock
    inspect(db)
    if (isEmpty(db)) {
      db.run(`PRAGMA page_size = ${pageBytes}`)
      db.run('PRAGMA auto_vacuum = INCREMENTAL') // on a database with tables this would write at every start
    }
    db.run('PRAGMA journal_mode = WAL')
    db.run('PRAGMA synchronous = FULL') // an acknowledgement leaves only after the log is on disk
    db.run('PRAGMA foreign_keys = ON')
    db.run('PRAGMA secure_delete = ON')
    db.run('PRAGMA temp_store = MEMORY')
    db.run(`PRAGMA cache_size = -${writerCacheKib}`)
    db.run(`PRAGMA journal_size_limit = ${walBytesKept}`)
    db.run(`PRAGMA wal_autocheckpoint = ${autocheckpointPages}`)
    return db
  } catch (error) {
    // Rejected: the log that was found stays.
    if (!hadLog) db.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, 0)
    db.close()
    throw error
  }
}

/**
 * Closes. When the log is empty, calls `emptied` and then removes the log with the connection: if `emptied` throws, the
 * log stays, and the next start finds it. A log that is not empty stays too, because a connection with open statements
 * outlives this call: the log would be removed after the lock, and the next start could not tell that from an
 * operator's mistake.
 */
export function closeWriterConnection(db: SqliteDatabase, path: string, emptied: () => void): void {
  try {
    if ((statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) return
    emptied()
    db.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, 0)
  } finally {
    db.close()
  }
}

function isEmpty(db: SqliteDatabase): boolean {
  return db.query('SELECT 1 FROM sqlite_schema LIMIT 1').get() === null
}

/** A connection that can only read. */
export function openReaderConnection(path: string): SqliteDatabase {
  return setReader(openDatabase(path, { readonly: true, strict: true }))
}

function setReader(db: SqliteDatabase): SqliteDatabase {
  try {
    db.run('PRAGMA busy_timeout = 5000')
    db.run('PRAGMA temp_store = MEMORY')
    db.run(`PRAGMA cache_size = -${readerCacheKib}`)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/**
 * A connection for inspection: it changes no byte and no time of the folder, also on a read-only file system and beside
 * a running server. Shared memory exists while a process has the database open, and after a crash. Without it and
 * without a log the file alone is the whole database. Only shared memory that a crash left half written must be
 * repaired first, which an ordinary reader does.
 */
export function openUnlockedConnection(path: string): SqliteDatabase {
  const hasLog = (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0
  const hasMemory = existsSync(`${path}-shm`) && existsSync(`${path}-wal`)
  if (hasLog) requireSoundLog(path)
  if (hasLog && !hasMemory) return openReaderConnection(path)
  const address = encodeURI(path).replace(/[?#]/g, encodeURIComponent)
  const uri = `file:${address}?${hasMemory ? 'readonly_shm=1' : 'immutable=1'}`
  let db: SqliteDatabase | null = null
  try {
    db = setReader(openDatabase(uri, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI))
    db.run('SELECT 1 FROM sqlite_schema LIMIT 1')
    return db
  } catch (error) {
    const code = error instanceof SQLiteError ? error.code : undefined
    if (code === undefined || !needsRecovery.test(code)) throw error
    db?.close()
    return openReaderConnection(path)
  }
}

const needsRecovery = /^SQLITE_(READONLY_RECOVERY|READONLY_CANTINIT|READONLY_CANTLOCK|PROTOCOL)$/

export function sqliteVersion(db: SqliteDatabase): string {
  const row = db.query<{ version: string }, []>('SELECT sqlite_version() AS version').get()
  if (row === null) throw new StoreError('internal', 'SQLite did not report its version')
  return row.version
}

function requireSqlite(version: string): void {
  const parts = version.split('.').map(Number)
  for (const [index, partMin] of sqliteVersionMin.entries()) {
    const part = parts[index] ?? 0
    if (part > partMin) return
    if (part < partMin) {
      throw new StoreError(
        'internal',
        `SQLite ${version} is too old: ${sqliteVersionMin.join('.')} or newer is required`,
      )
    }
  }
}

/** Free pages returned to the disk per step: 2 MiB, a few milliseconds. */
const stepPages = 256

/** Free pages to keep, because growing a file again costs more than reusing its pages. */
const keptPages = 1_024

/** Returns a bounded number of free pages to the disk. Call until `done`. */
export function releasePages(db: SqliteDatabase): { bytes: number; done: boolean } {
  const free = () =>
    db.query<{ n: number }, []>('SELECT freelist_count AS n FROM pragma_freelist_count').get()?.n ?? 0
  const freePages = free()
  const pages = Math.min(stepPages, freePages - keptPages)
  if (pages <= 0) return { bytes: 0, done: true }
  db.query(`PRAGMA incremental_vacuum(${pages})`).all()
  const released = freePages - free()
  return { bytes: released * pageBytes, done: released === 0 || freePages - released <= keptPages }
}
