/** A reader thread of a node: answers from its own connections, each read of events in one snapshot. */
import { StoreError } from '../../contract/errors.ts'
import { ormOn, type Database } from '../../sql/database.ts'
import { compactEventReader } from '../../sql/events/reader.ts'
import { giveWay, serve } from '../../sql/threads/port.ts'
import { readSlots, type ReadSlots } from '../../sql/threads/read-slots.ts'
import { readVerbs } from '../../sql/threads/verbs.ts'
import { serverVerbs } from '../admin/verbs.ts'
import { openConnection } from '../connection/connection.ts'
import { storeError } from '../connection/failure.ts'
import { idsInTable } from '../events/ids.ts'
import { migrations, schemaVersion } from '../migrations/migrations.ts'
import type { ConnectionOptions } from '../connection/options.ts'
import type { ReadContext } from '../../sql/threads/contexts.ts'
import type { StoreHealth } from '../../contract/store.ts'

export interface ReaderOpening extends ConnectionOptions {
  schema: string
  deadlineMs: number
  /** Lowers the priority of the thread: the one for long reads. */
  givesWay: boolean
}

/** Each lets one more long read wait for its next slice. A server allows 100 connections by default, for all nodes. */
const connectionsMax = 6

interface Reader {
  slots: ReadSlots
  contexts: ReadContext[]
  opening: ReaderOpening
}

let reader: Reader | null = null

serve(storeError, (verb, command) => {
  if (verb === 'open') {
    const opening = command as ReaderOpening
    if (opening.givesWay) giveWay()
    const slots = readSlots({ deadlineMs: opening.deadlineMs, connectionsMax })
    reader = { slots, contexts: [openContext(opening)], opening }
    return Object.keys(readVerbs)
  }
  if (verb === 'close') {
    reader?.slots.end(new StoreError('closed', 'the store is closed'))
    reader?.contexts.forEach(({ db }) => db.close())
    reader = null
    setTimeout(() => process.exit(0)) // ends this thread only, after the response was sent
    return null
  }
  const ofServer = serverVerbs[verb as keyof typeof serverVerbs] as ((query: unknown) => unknown) | undefined
  if (ofServer !== undefined) return ofServer(command)
  if (reader === null) throw new StoreError('closed', 'the store is closed')
  const run = readVerbs[verb as keyof typeof readVerbs] as
    ((context: ReadContext, query: unknown) => unknown) | undefined
  if (run === undefined) throw new StoreError('internal', `unknown verb ${verb}`)
  const { contexts, opening, slots } = reader
  const contextOf = (connection: number) => (contexts[connection] ??= openContext(opening, contexts[0]))
  return slots.ask(verb, command, (connection) => run(contextOf(connection), command))
})

/** The first connection's caches of blocks serve the others too. */
function openContext({ schema, ...options }: ReaderOpening, first?: ReadContext): ReadContext {
  const db = openConnection({ ...options, schema })
  try {
    const events = compactEventReader(db, idsInTable(db), first?.db)
    return { db, orm: ormOn(db), events, folder: '', health: () => healthOf(db, schema) }
  } catch (error) {
    db.close()
    throw error
  }
}

function healthOf(db: Database, schema: string): StoreHealth {
  const row = db
    .query<{ bytes: number; version: string }, []>(
      `SELECT pg_database_size(current_database()) AS bytes, current_setting('server_version') AS version`,
    )
    .get()
  return {
    schema: schemaVersion(db, schema),
    newestSchema: migrations.length,
    engine: `postgres ${row?.version.split(' ')[0] ?? ''}`,
    bytes: row?.bytes ?? 0,
    logBytes: null,
  }
}
