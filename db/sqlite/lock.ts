/**
 * The data folder's lock: a transaction held open on a tiny SQLite file for as long as the process lives.
 *
 * The kernel frees it when the process dies, however it dies. The file's user_version names the holder, and others can
 * read it because the transaction only reserves the right to write. The file is not named `*.db` (contract §10), and
 * it is never opened by other means: closing any descriptor of it would drop this process' locks on it.
 */
import { Database, SQLiteError } from 'bun:sqlite'
import { StoreError } from '../errors.ts'
import { storeError } from './failure.ts'

export const lockFileName = 'sightglass.lock'
const attemptsMax = 100 // each lost only to another process that is taking the same lock at this very moment
const busyCode = 5

/** Takes the lock or throws `locked` with the holder's process id. Returns the function that gives it back. */
export function lockFolder(folder: string, pid: number): () => void {
  let db: Database
  try {
    db = new Database(`${folder}/${lockFileName}`, { create: true, readwrite: true, strict: true })
  } catch (error) {
    throw storeError(error, 'the lock file of the data folder cannot be opened')
  }
  try {
    db.run('PRAGMA busy_timeout = 0')
    db.run('PRAGMA page_size = 512') // one sector, which a power cut writes whole or not at all
    // Without a journal file, naming the holder needs no room on a full disk. The page holds nothing else.
    db.run('PRAGMA journal_mode = MEMORY')
    reserve(db, pid)
    return () => db.close()
  } catch (error) {
    const busy = error instanceof SQLiteError && (error.errno & 0xff) === busyCode
    const failure = busy ? lockedError(db) : storeError(error, 'the data folder cannot be locked')
    db.close()
    throw failure
  }
}

/** Ends with a transaction open and our process id committed before it, so that only a true holder is ever named. */
function reserve(db: Database, pid: number): void {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    db.run('BEGIN IMMEDIATE')
    if (holder(db) === pid) return
    try {
      db.run(`PRAGMA user_version = ${pid}`)
      db.run('COMMIT')
    } catch (error) {
      if (db.inTransaction) db.run('ROLLBACK')
      if (storeError(error, '').kind !== 'storage_full') throw error
      db.run('BEGIN IMMEDIATE') // held without a name: better than not starting on a full disk
      return
    }
  }
  throw new StoreError('locked', 'the data folder is being opened by several processes at once')
}

function holder(db: Database): number {
  return db.query<{ user_version: number }, []>('PRAGMA user_version').get()?.user_version ?? 0
}

function lockedError(db: Database): StoreError {
  let pid = 0
  try {
    pid = holder(db)
  } catch {
    // The holder is writing its name just now; the lock itself is certain.
  }
  const who = pid === 0 ? 'another process' : `process ${pid}`
  return new StoreError('locked', `the data folder is in use by ${who}`)
}
