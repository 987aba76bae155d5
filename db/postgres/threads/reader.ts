/** A reader thread of a node: answers from its own connections, each read of events in one snapshot. */
import { ormOn, type Database } from '../../sql/database.ts'
import { requireServable } from '../../sql/copy/state.ts'
import { compactEventReader } from '../../sql/events/reader.ts'
import { serveReader, type ReaderSettings } from '../../sql/reader.ts'
import { serverVerbs } from '../admin/verbs.ts'
import { openConnection } from '../connection/connection.ts'
import { storeError } from '../connection/failure.ts'
import { idsInTable } from '../events/ids.ts'
import { migrations, requireKnownSchema, schemaVersion, writerSchemaOf } from '../migrations/migrations.ts'
import { judgedSince } from '../../sql/judged-since.ts'
import type { ConnectionOptions } from '../connection/options.ts'
import type { ReadContext } from '../../sql/contexts.ts'
import type { StoreHealth } from '../../contract/store.ts'

export interface ReaderOpening extends ConnectionOptions, ReaderSettings {
  schema: string
}

/** A server allows 100 connections by default, for all nodes. */
const connectionsMax = 6

serveReader<ReaderOpening>({ storeError, openContext, connectionsMax, adminVerbs: serverVerbs })

function openContext({ schema, user, ...options }: ReaderOpening, first?: ReadContext): ReadContext {
  const db = openConnection({ ...options, schema })
  try {
    if (first === undefined && user === 'command') {
      requireKnownSchema(db, schema, migrations)
      requireServable(db, 'read')
    }
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
  const version = schemaVersion(db, schema)
  return {
    schema: version,
    newestSchema: migrations.length,
    isNewer: version > migrations.length && writerSchemaOf(db, schema) > migrations.length,
    engine: `postgres ${row?.version.split(' ')[0] ?? ''}`,
    judgedSinceMs: judgedSince(db),
    bytes: row?.bytes ?? 0,
    logBytes: null,
  }
}
