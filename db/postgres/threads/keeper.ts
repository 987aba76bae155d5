/** The thread of a node that does due work beside appends and reads. */
import { StoreError } from '../../contract/errors.ts'
import { endThread, giveWay, serve } from '../../sql/threads/port.ts'
import { openConnection } from '../connection/connection.ts'
import { storeError } from '../connection/failure.ts'
import { fenced } from '../locks.ts'
import { upkeep, type Upkeep } from '../upkeep/upkeep.ts'
import type { ConnectionOptions } from '../connection/options.ts'
import type { Database } from '../../sql/database.ts'
import type { KeeperReport } from '../upkeep/report.ts'

/** Readers count again what is not folded, and scan what is not sealed. */
const everyMs = 500

let db: Database | null = null
let work: Upkeep | null = null
let timer: Timer | null = null
const report: KeeperReport = { runs: 0, failures: 0, lastFailure: null, isFailing: false }
/** Who waits for the end of the next run: a thread in the middle of a long one answers nobody. */
let waiting: ((report: KeeperReport) => void) | null = null

serve(storeError, (verb, command) => {
  if (verb === 'open') {
    giveWay()
    repeat(command as ConnectionOptions, 0)
    return []
  }
  if (verb === 'next') return new Promise<KeeperReport>((resolve) => (waiting = resolve))
  if (verb !== 'close') throw new StoreError('internal', `unknown verb ${verb}`)
  if (timer !== null) clearTimeout(timer)
  endThread()
  db?.close()
  db = null
  work = null
  return null
})

/** The first run opens the connection, so that a refused one is reported and tried again like any other failure. */
function begin(options: ConnectionOptions): Upkeep {
  db = openConnection(options)
  return upkeep(fenced(db))
}

function repeat(options: ConnectionOptions, afterMs: number): void {
  timer = setTimeout(() => {
    try {
      work ??= begin(options)
      work.run()
      report.isFailing = false
    } catch (error) {
      // The work of a transaction that failed is still due, and the next run finds it.
      const { kind, message } = storeError(error, 'upkeep')
      report.lastFailure = { kind, message }
      report.isFailing = true
      report.failures++
    }
    report.runs++
    waiting?.(report)
    waiting = null
    repeat(options, everyMs)
  }, afterMs)
}
