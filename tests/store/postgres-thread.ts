/** A thread with one connection to PostgreSQL that runs the verbs of records, as a node does. */
import { openConnection } from '../../db/postgres/connection/connection.ts'
import { storeError } from '../../db/postgres/connection/failure.ts'
import { migrate, migrations } from '../../db/postgres/migrations/migrations.ts'
import { lockingRecords } from '../../db/postgres/locks.ts'
import { StoreError } from '../../db/contract/errors.ts'
import { inTransaction, ormOn } from '../../db/sql/database.ts'
import type { ReadContext, WriteContext } from '../../db/sql/threads/contexts.ts'
import { serve } from '../../db/sql/threads/port.ts'
import { readVerbs, writeVerbs } from '../../db/sql/threads/verbs.ts'
import { noon } from './make.ts'

export interface RecordsOpening {
  url: string
  lockTimeoutMs?: number
}

type Context = ReadContext & WriteContext
type Verbs = { [verb: string]: ((context: Context, command: unknown) => unknown) | undefined }

let context: Context | null = null
let applied: number[] = []

serve(storeError, (verb, command) => {
  if (verb === 'open') {
    context = open(command as RecordsOpening)
    return { writing: Object.keys(writeVerbs), reading: Object.keys(readVerbs), applied }
  }
  if (verb === 'close') {
    context?.db.close()
    context = null
    setTimeout(() => process.exit(0)) // ends this thread only, after the response was sent
    return null
  }
  if (context === null) throw new StoreError('closed', 'the store is closed')
  const opened = context
  const write = (writeVerbs as unknown as Verbs)[verb]
  const read = (readVerbs as unknown as Verbs)[verb]
  if (write !== undefined) return inTransaction(opened.db, () => write(opened, command))
  if (read === undefined) throw new StoreError('internal', `unknown verb ${verb}`)
  return read(opened, command)
})

function open({ url, ...options }: RecordsOpening): Context {
  const connection = openConnection({ url, node: 'records', statementTimeoutMs: 10_000, ...options })
  applied = migrate(connection, 'sightglass', migrations, noon)
  const db = lockingRecords(connection)
  return {
    ...{ db, orm: ormOn(db), folder: '', isOnlyWriter: false, tight: false },
    release: () => ({ bytes: 0, done: true }),
    health: withoutEvents,
    get events() {
      return withoutEvents()
    },
  }
}

/** Verbs of events are no part of these tests. */
function withoutEvents(): never {
  throw new StoreError('internal', 'this thread has no events')
}
