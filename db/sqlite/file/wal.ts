/** Limits the write-ahead log: checkpoints when it has grown, truncates when the writer is idle and each minute. */
import type { SqliteDatabase } from './connection.ts'
import { checkpointPages } from './connection.ts'
import { storeError } from './failure.ts'

const tickMs = 1_000
const minuteTicks = 60

export interface WalLimit {
  /** Records a write. */
  busy(): void
  /** After a commit: copies a grown log into the database. Throws when the device fails. */
  copyGrown(): void
  /** Copies the log into the database and empties it; false while a reader prevents that. */
  truncate(): boolean
  /** Copies as much of the log as possible, and never throws, because the log is about to be lost. */
  saveLog(): void
  /** Stops the timer and truncates the log a last time. */
  end(): void
}

interface WalEvents {
  idle(): void
  minute(): void
  /** Runs a copy of the log. Its error ends writing and goes no further. */
  copy(work: () => void): void
}

export function limitWal(db: SqliteDatabase, handlers: WalEvents): WalLimit {
  let writtenSinceTick = false
  let unsettled = false // the log may hold pages that the database lacks
  let ticks = 0

  /** A full disk cannot be copied to. The log has everything, and a later attempt succeeds. */
  function unlessFull(work: () => void): void {
    try {
      work()
    } catch (error) {
      const failure = storeError(error, 'the log cannot be copied into the database')
      if (failure.kind !== 'storage_full') throw failure
    }
  }

  /** Waits for no reader: with one in the way the log stays until the next attempt. */
  function truncate(): void {
    handlers.copy(() => {
      db.run('PRAGMA busy_timeout = 0')
      try {
        unlessFull(() => {
          const row = db.query<{ busy: number }, []>('PRAGMA wal_checkpoint(TRUNCATE)').get()
          if (row?.busy === 0) unsettled = false
        })
      } finally {
        db.run('PRAGMA busy_timeout = 5000')
      }
    })
  }

  function tick(): void {
    ticks++
    const idle = !writtenSinceTick
    writtenSinceTick = false
    if (ticks % minuteTicks === 0) handlers.minute()
    if (idle) handlers.idle() // first: what it writes leaves with the log
    if (unsettled && (idle || ticks % minuteTicks === 0)) truncate()
  }

  const timer = setInterval(tick, tickMs)
  return {
    copyGrown() {
      const pages = db.query<{ log: number }, []>('PRAGMA wal_checkpoint(NOOP)').get()?.log ?? 0
      if (pages > 0) unsettled = true
      if (pages >= checkpointPages) unlessFull(() => void db.query('PRAGMA wal_checkpoint(PASSIVE)').get())
    },
    truncate() {
      unsettled = true
      truncate()
      return !unsettled
    },
    busy() {
      writtenSinceTick = true
      unsettled = true
    },
    saveLog() {
      try {
        db.query('PRAGMA wal_checkpoint(PASSIVE)').get()
      } catch {
        // The caller already reports why nothing is acknowledged.
      }
    },
    end() {
      clearInterval(timer)
      truncate()
    },
  }
}
