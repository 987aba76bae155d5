/** The thread of a node that changes records, and deletes and repairs events: one verb, one transaction. */
import { StoreError } from '../../contract/errors.ts'
import { inTransaction, ormOn } from '../../sql/database.ts'
import { serve } from '../../sql/threads/port.ts'
import { writeVerbs } from '../../sql/threads/verbs.ts'
import { openConnection } from '../connection/connection.ts'
import { storeError } from '../connection/failure.ts'
import { postgresEventWriter } from '../events/writer.ts'
import { migrate, migrations, requireKnownSchema } from '../migrations/migrations.ts'
import { lockingRecords } from '../locks.ts'
import type { Database } from '../../sql/database.ts'
import type { ConnectionOptions } from '../connection/options.ts'
import type { WriteContext } from '../../sql/threads/contexts.ts'

export interface WriterOpening extends ConnectionOptions {
  schema: string
  now: number
  mayMigrate: boolean
}

type Work = (context: WriteContext, command: unknown) => unknown

/**
 * Verbs that need no lock on records: they read nothing before they write, or lock the rows they decide about, and they
 * lock rows in one order. They run while another node has that lock, and strangers who cause them hold up nobody.
 */
const ownLocks = new Set(['throttle.begin', 'throttle.end', 'throttle.prune', 'rejected.add', 'keys.touch'])
const oneRow = new Set(['nodes.heartbeat', 'jobs.renew'])

interface Opened {
  connection: Database
  locking: WriteContext
  unlocked: WriteContext
}

let opened: Opened | null = null

serve(storeError, (verb, command) => {
  if (verb === 'open') {
    opened = open(command as WriterOpening)
    return Object.keys(writeVerbs)
  }
  if (verb === 'close') {
    opened?.connection.close()
    opened = null
    setTimeout(() => process.exit(0)) // ends this thread only, after the response was sent
    return null
  }
  if (opened === null) throw new StoreError('closed', 'the store is closed')
  const needsLock = !ownLocks.has(verb) && !oneRow.has(verb)
  return write(needsLock ? opened.locking : opened.unlocked, verb, command)
})

function open({ now, mayMigrate, ...options }: WriterOpening): Opened {
  const connection = openConnection(options)
  try {
    if (mayMigrate) migrate(connection, options.schema, migrations, now)
    else requireKnownSchema(connection, options.schema, migrations)
    const events = postgresEventWriter(connection)
    const contextOn = (db: Database): WriteContext => ({
      ...{ db, orm: ormOn(db), events, isOnlyWriter: false, tight: false },
      release: () => ({ bytes: 0, done: true }), // the server's autovacuum does
    })
    const locking = contextOn(lockingRecords(connection))
    return { connection, locking, unlocked: contextOn(connection) }
  } catch (error) {
    connection.close()
    throw error
  }
}

function write(context: WriteContext, verb: string, command: unknown): unknown {
  const run = writeVerbs[verb as keyof typeof writeVerbs] as Work | undefined
  if (run === undefined) throw new StoreError('internal', `unknown verb ${verb}`)
  const { db, events } = context
  try {
    const result = inKnownTransaction(db, () => run(context, command))
    events.committed()
    return result
  } catch (error) {
    events.rolledBack()
    throw error
  }
}

const outcomeWithinMs = 5_000
const askEveryMs = 100

/**
 * Like `inTransaction`. When the connection is lost while it commits, asks the server for the outcome: a change that
 * was made must not be reported as failed, because its sender would make it again.
 */
function inKnownTransaction<T>(db: Database, work: () => T): T {
  let ended: { id: string; result: T } | null = null
  try {
    return inTransaction(db, () => {
      const result = work()
      const current = 'SELECT CAST(pg_current_xact_id() AS text) AS id'
      ended = { result, id: db.query<{ id: string }>(current).get()!.id }
      return result
    })
  } catch (error) {
    const { id, result } = (ended ?? {}) as { id?: string; result?: T }
    const isUnknown = error instanceof StoreError && error.kind === 'unavailable' && id !== undefined
    if (isUnknown && isCommitted(db, id)) return result as T
    throw error
  }
}

/** False also when the server cannot be asked: then the outcome stays unknown. */
function isCommitted(db: Database, id: string): boolean {
  const ask = db.query<{ status: string | null }, [string]>(
    'SELECT pg_xact_status(CAST(CAST(? AS text) AS xid8)) AS status',
  )
  for (
    const endMs = performance.now() + outcomeWithinMs;
    performance.now() < endMs;
    Bun.sleepSync(askEveryMs)
  ) {
    try {
      const status = ask.get(id)?.status
      if (status !== 'in progress') return status === 'committed'
    } catch {
      // The server is not back yet.
    }
  }
  return false
}
