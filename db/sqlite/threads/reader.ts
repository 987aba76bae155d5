/** A reader thread: answers from its own read-only connections, so that no scan delays a write or a request. */
import { storeError } from '../file/failure.ts'
import type { SqliteDatabase } from '../file/connection.ts'
import { statSync } from 'node:fs'
import { StoreError } from '../../contract/errors.ts'
import { fileVerbs } from '../backup/file-verbs.ts'
import { openUnlockedConnection, openReaderConnection, sqliteVersion } from '../file/connection.ts'
import type { StoreHealth } from '../../contract/store.ts'
import type { ReadContext } from '../../sql/threads/contexts.ts'
import { databasePath, requireDatabase } from '../file/files.ts'
import { migrations, requireKnownSchema, schemaVersion } from '../migrations/migrations.ts'
import { compactEventReader } from '../../sql/events/reader.ts'
import { idsInRuns } from '../../sql/events/dedupe/ids-in-runs.ts'
import { giveWay, serve } from '../../sql/threads/port.ts'
import { readSlots, type ReadSlots } from '../../sql/threads/read-slots.ts'
import { ormOn } from '../../sql/database.ts'
import { readVerbs } from '../../sql/threads/verbs.ts'

export interface ReaderOpening {
  folder: string
  deadlineMs: number
  /** For a folder that this process has not locked: changes nothing in it, and rejects an older schema. */
  isUnlocked: boolean
  /** Lowers the priority of the thread: the one for long reads. */
  givesWay?: boolean
}

/** Each lets one more long read wait for its next slice, and uses up to 1 MiB. */
const connectionsMax = 24
const spareCacheKib = 1024

interface Reader {
  slots: ReadSlots
  context(connection: number): ReadContext
  close(): void
}

let reader: Reader | null = null

serve(storeError, (verb, command) => {
  if (verb === 'open') {
    reader = openReader(command as ReaderOpening)
    return Object.keys(readVerbs)
  }
  if (verb === 'close') {
    reader?.slots.end(new StoreError('closed', 'the store is closed'))
    reader?.close()
    reader = null
    setTimeout(() => process.exit(0)) // ends this thread only, after the response was sent
    return null
  }
  const ofFiles = fileVerbs[verb as keyof typeof fileVerbs] as ((command: unknown) => unknown) | undefined
  if (ofFiles !== undefined) return ofFiles(command)
  if (reader === null) throw new StoreError('closed', 'the store is closed')
  const run = readVerbs[verb as keyof typeof readVerbs] as
    ((context: ReadContext, query: unknown) => unknown) | undefined
  if (run === undefined) throw new StoreError('internal', `unknown verb ${verb}`)
  const { context, slots } = reader
  return slots.ask(verb, command, (connection) => run(context(connection), command))
})

function openReader({ folder, deadlineMs, isUnlocked, givesWay = false }: ReaderOpening): Reader {
  requireDatabase(folder)
  if (givesWay) giveWay()
  const open = isUnlocked ? openUnlockedConnection : openReaderConnection
  const main = openContext(folder, open)
  const contexts = [main]
  return {
    slots: readSlots({ deadlineMs, connectionsMax }),
    context: (connection) => (contexts[connection] ??= openContext(folder, open, main)),
    close: () => contexts.forEach(({ db }) => db.close()), // connections that were never opened are holes
  }
}

/** The first connection caches more. The others share its caches of blocks. */
function openContext(
  folder: string,
  open: (path: string) => SqliteDatabase,
  first?: ReadContext,
): ReadContext {
  const db = open(databasePath(folder))
  try {
    if (first === undefined) requireKnownSchema(db, migrations)
    else db.run(`PRAGMA cache_size = -${spareCacheKib}`)
    const events = compactEventReader(db, idsInRuns(db, undefined, first?.db), first?.db)
    return { db, orm: ormOn(db), events, folder, health: () => healthOf(db, folder) }
  } catch (error) {
    db.close()
    throw error
  }
}

/** The store's schema, engine and file sizes. */
function healthOf(db: SqliteDatabase, folder: string): StoreHealth {
  const path = databasePath(folder)
  const bytesOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0
  const logBytes = bytesOf(`${path}-wal`)
  return {
    schema: schemaVersion(db),
    newestSchema: migrations.length,
    engine: `sqlite ${sqliteVersion(db)}`,
    bytes: bytesOf(path) + logBytes,
    logBytes,
  }
}
