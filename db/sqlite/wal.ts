/** Keeps the write-ahead log short: truncated when the writer is idle, tried each minute when it is not. */
import type { Database } from 'bun:sqlite'

const tickMs = 1_000
const minuteTicks = 60

export interface Housekeeping {
  /** Something was written just now. */
  busy(): void
  /** Copies the log into the database now and empties it; false while a reader is in the way. */
  truncate(): boolean
  /** Stops the ticks and truncates the log a last time. */
  end(): void
}

export function housekeeping(db: Database, chores: { idle(): void; minute(): void }): Housekeeping {
  let writtenSinceTick = false
  let unsettled = false // the log may hold pages that the database does not
  let ticks = 0

  /** Waits for no reader: with one in the way the log just stays until the next try. */
  function truncate(): void {
    try {
      db.run('PRAGMA busy_timeout = 0')
      const row = db.query<{ busy: number }, []>('PRAGMA wal_checkpoint(TRUNCATE)').get()
      if (row?.busy === 0) unsettled = false
    } catch {
      // A full disk cannot be checkpointed; the log holds everything and the next tick tries again.
    } finally {
      db.run('PRAGMA busy_timeout = 5000')
    }
  }

  function tick(): void {
    ticks++
    const idle = !writtenSinceTick
    writtenSinceTick = false
    if (ticks % minuteTicks === 0) chores.minute()
    if (idle) chores.idle() // first: what it writes goes with the log
    if (unsettled && (idle || ticks % minuteTicks === 0)) truncate()
  }

  const timer = setInterval(tick, tickMs)
  return {
    truncate() {
      unsettled = true
      truncate()
      return !unsettled
    },
    busy() {
      writtenSinceTick = true
      unsettled = true
    },
    end() {
      clearInterval(timer)
      truncate()
    },
  }
}
