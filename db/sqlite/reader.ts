/** A reader's thread: answers from its own read-only connection, so that no scan ever delays a write or a request. */
import { drizzle } from 'drizzle-orm/bun-sqlite'
import type { Database } from 'bun:sqlite'
import { StoreError } from '../errors.ts'
import { fileVerbs } from './backup/file-verbs.ts'
import { openReaderConnection } from './connection.ts'
import type { ReadContext } from './contexts.ts'
import { databasePath, requireDatabase } from './files.ts'
import { requireKnownSchema } from './migrate.ts'
import { migrations } from './migrations.ts'
import { compactEventReader } from './events/reader.ts'
import { readVerbs } from './read-verbs.ts'
import { serve } from './serve.ts'

export interface ReaderOpening {
  folder: string
  deadlineMs: number
}

let reader: { db: Database; context: ReadContext } | null = null

serve((verb, command) => {
  if (verb === 'open') {
    reader = openReader(command as ReaderOpening)
    return null
  }
  if (verb === 'close') {
    reader?.db.close()
    reader = null
    setTimeout(() => process.exit(0)) // of this thread alone, after the answer has left
    return null
  }
  const ofFiles = fileVerbs[verb as keyof typeof fileVerbs] as ((command: unknown) => unknown) | undefined
  if (ofFiles !== undefined) return ofFiles(command)
  if (reader === null) throw new StoreError('closed', 'the store is closed')
  const run = readVerbs[verb as keyof typeof readVerbs] as
    ((context: ReadContext, query: unknown) => unknown) | undefined
  if (run === undefined) throw new StoreError('internal', `there is no verb ${verb}`)
  const result = run(reader.context, command)
  return result instanceof Promise ? result.catch(closedFirst) : result
})

/** What was asked for in slices goes no further when the database is closed between two of them. */
function closedFirst(error: unknown): never {
  throw reader === null ? new StoreError('closed', 'the store is closed') : error
}

function openReader({ folder, deadlineMs }: ReaderOpening): { db: Database; context: ReadContext } {
  requireDatabase(folder)
  const db = openReaderConnection(databasePath(folder))
  try {
    requireKnownSchema(db, migrations)
    const events = compactEventReader(db, deadlineMs)
    return { db, context: { db, orm: drizzle(db), events, folder } }
  } catch (error) {
    db.close()
    throw error
  }
}
