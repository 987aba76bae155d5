/** The thread of a node that changes records, and deletes and repairs events: one verb, one transaction. */
import { StoreError } from '../../contract/errors.ts'
import { inTransaction, ormOn } from '../../sql/database.ts'
import { requireServable } from '../../sql/copy/state.ts'
import { endThread, serve } from '../../sql/threads/port.ts'
import { writeVerbs } from '../../sql/verbs.ts'
import { openConnection } from '../connection/connection.ts'
import { storeError } from '../connection/failure.ts'
import { postgresEventWriter } from '../events/writer.ts'
import { migrate, migrations, requireKnownSchema, writerSchema } from '../migrations/migrations.ts'
import { fenced, lockingRecords } from '../locks.ts'
import type { Database } from '../../sql/database.ts'
import type { ConnectionOptions } from '../connection/options.ts'
import type { WriteContext } from '../../sql/contexts.ts'

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
const ownLocks = new Set([
  'throttle.begin',
  'throttle.end',
  'throttle.prune',
  'rejected.add',
  'keys.touch',
  'signatures.use',
])
const oneRow = new Set(['nodes.heartbeat', 'jobs.renew', 'checkWrites'])

/** Of this thread, whose transactions follow one another: the last one that committed is in `store_lock`. */
interface Note {
  prefix: string
  thread: string
  transactions: number
}

interface Opened {
  connection: Database
  note: Note
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
    endThread()
    opened?.connection.close()
    opened = null
    return null
  }
  if (opened === null) throw new StoreError('closed', 'the store is closed')
  const needsLock = !ownLocks.has(verb) && !oneRow.has(verb)
  return needsLock
    ? write(opened.locking, opened.note, verb, command)
    : write(opened.unlocked, null, verb, command)
})

function open({ now, mayMigrate, ...options }: WriterOpening): Opened {
  const connection = openConnection(options)
  try {
    requireServable(connection, 'write')
    if (mayMigrate) migrate(connection, options.schema, migrations, now)
    else requireKnownSchema(connection, options.schema, migrations)
    const fencing = fenced(connection)
    const events = postgresEventWriter(fencing)
    const contextOn = (db: Database): WriteContext => ({
      db,
      orm: ormOn(db),
      events,
      isOnlyWriter: false,
      tight: false,
      schema: writerSchema,
      release: () => ({ bytes: 0, done: true }), // the server's autovacuum does
    })
    const locking = contextOn(lockingRecords(fencing))
    const random = 'SELECT CAST(gen_random_uuid() AS text) AS thread'
    const { thread } = connection.query<{ thread: string }, []>(random).get()!
    const note = { prefix: `committed/${encodeURIComponent(options.node)}/`, thread, transactions: 0 }
    return { connection, note, locking, unlocked: contextOn(fencing) }
  } catch (error) {
    connection.close()
    throw error
  }
}

/** Without a note, a verb whose COMMIT is lost fails. Those without the lock on records may be called again. */
function write(context: WriteContext, note: Note | null, verb: string, command: unknown): unknown {
  const run = writeVerbs[verb as keyof typeof writeVerbs] as Work | undefined
  if (run === undefined) throw new StoreError('internal', `unknown verb ${verb}`)
  const { db, events } = context
  try {
    const work = () => run(context, command)
    const result = note === null ? inTransaction(db, work) : inKnownTransaction(db, note, work)
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
 * was made must not be reported as failed, because its sender would make it again. The number of the transaction does
 * suffice: after a fail-over or a crash that lost the change, the server reuses it.
 */
function inKnownTransaction<T>(db: Database, note: Note, work: () => T): T {
  let ended: { name: string; result: T } | null = null
  try {
    return inTransaction(db, () => {
      const result = work()
      const name = `${note.prefix}${note.thread}/${++note.transactions}`
      noteTransaction(db, note.prefix, name)
      ended = { result, name }
      return result
    })
  } catch (error) {
    const { name, result } = (ended ?? {}) as { name?: string; result?: T }
    const isUnknown = error instanceof StoreError && error.kind === 'unavailable' && name !== undefined
    if (isUnknown && isCommitted(db, name)) return result as T
    throw error
  }
}

/** Replaces what the node noted before, also in a process that ended. */
function noteTransaction(db: Database, prefix: string, name: string): void {
  const moved = db.query('UPDATE store_lock SET name = ?2 WHERE starts_with(name, ?1)').run(prefix, name)
  if (moved.changes === 0) db.query('INSERT INTO store_lock (name) VALUES (?)').run(name)
}

/** False also when the server cannot be asked: then the outcome stays unknown. */
function isCommitted(db: Database, name: string): boolean {
  const find = db.query<object, [string]>('SELECT 1 AS found FROM store_lock WHERE name = ?')
  for (
    const endMs = performance.now() + outcomeWithinMs;
    performance.now() < endMs;
    Bun.sleepSync(askEveryMs)
  ) {
    try {
      // The lock on records waits for the end of the transaction, and the COMMIT for the standby that has it.
      return inTransaction(db, () => find.get(name) !== null)
    } catch {
      // The server is not back yet.
    }
  }
  return false
}
