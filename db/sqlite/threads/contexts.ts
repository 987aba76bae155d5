/** What a thread passes to its verbs. */
import type { Database } from 'bun:sqlite'
import type { BunSQLiteDatabase } from 'drizzle-orm/bun-sqlite'
import type { EventReader, EventWriter } from '../events/engine.ts'

/** Every writing verb runs inside a transaction that the writer opened. */
export interface WriteContext {
  db: Database
  orm: BunSQLiteDatabase
  events: EventWriter
}

export interface ReadContext {
  db: Database
  orm: BunSQLiteDatabase
  events: EventReader
  folder: string
}
