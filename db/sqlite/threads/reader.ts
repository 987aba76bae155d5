/** A reader thread: answers from its own read-only connections, so that no scan delays a write or a request. */
import { storeError } from '../file/failure.ts'
import { judgedSince } from '../../sql/judged-since.ts'
import type { SqliteDatabase } from '../file/connection.ts'
import { statSync } from 'node:fs'
import { fileVerbs } from '../backup/file-verbs.ts'
import { openUnlockedConnection, openReaderConnection, sqliteVersion } from '../file/connection.ts'
import type { StoreHealth } from '../../contract/store.ts'
import type { ReadContext } from '../../sql/contexts.ts'
import { databasePath, requireDatabase } from '../file/files.ts'
import { migrations, requireKnownSchema, requireNewestSchema } from '../migrations/migrations.ts'
import { schemaVersion } from '../file/schema-version.ts'
import { requireServable } from '../../sql/copy/state.ts'
import { compactEventReader } from '../../sql/events/reader.ts'
import { idsInRuns } from '../../sql/events/ids-in-runs.ts'
import { serveReader, type ReaderSettings } from '../../sql/reader.ts'
import { ormOn } from '../../sql/database.ts'

export interface ReaderOpening extends ReaderSettings {
  folder: string
}

/** A connection uses up to 1 MiB. */
const connectionsMax = 24
const spareCacheKib = 1024

serveReader<ReaderOpening>({ storeError, openContext, connectionsMax, adminVerbs: fileVerbs })

/** The first connection caches more. */
function openContext({ folder, user }: ReaderOpening, first?: ReadContext): ReadContext {
  requireDatabase(folder)
  // Only the process of a store has locked the folder. The others change nothing in it.
  const open: (path: string) => SqliteDatabase =
    user === 'store' ? openReaderConnection : openUnlockedConnection
  const db = open(databasePath(folder))
  try {
    if (first !== undefined) db.run(`PRAGMA cache_size = -${spareCacheKib}`)
    else if (user !== 'command') requireKnownSchema(db, migrations)
    else {
      requireNewestSchema(db, migrations)
      requireServable(db, 'read')
    }
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
  const schema = schemaVersion(db)
  return {
    schema,
    newestSchema: migrations.length,
    isNewer: schema > migrations.length,
    engine: `sqlite ${sqliteVersion(db)}`,
    judgedSinceMs: judgedSince(db),
    bytes: bytesOf(path) + logBytes,
    logBytes,
  }
}
