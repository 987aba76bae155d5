/** What a thread passes to its verbs. */
import type { Database, Orm } from './database.ts'
import type { StoreHealth } from '../contract/store.ts'
import type { EventReader, EventWriter } from './events/engine.ts'

/** Every writing verb runs inside a transaction that the writer opened. */
export interface WriteContext {
  db: Database
  orm: Orm
  events: EventWriter
  /** Whether nothing else writes to the database, so that what an earlier process began has ended. */
  isOnlyWriter: boolean
  /** Whether deleting verbs take their smallest steps, because the disk was full. */
  readonly tight: boolean
  /** The newest that this release knows. */
  schema: number
  /** Returns a bounded amount of free space of the database to the disk. Call until `done`. */
  release(): { bytes: number; done: boolean }
}

export interface ReadContext {
  db: Database
  orm: Orm
  events: EventReader
  /** Where the engine's files are; empty for an engine without files. */
  folder: string
  health(): StoreHealth
}
