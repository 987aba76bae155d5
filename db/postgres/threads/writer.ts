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
import type { ConnectionOptions } from '../connection/options.ts'
import type { WriteContext } from '../../sql/threads/contexts.ts'

export interface WriterOpening extends ConnectionOptions {
  schema: string
  now: number
  mayMigrate: boolean
}

type Work = (context: WriteContext, command: unknown) => unknown

let context: WriteContext | null = null

serve(storeError, (verb, command) => {
  if (verb === 'open') {
    context = open(command as WriterOpening)
    return Object.keys(writeVerbs)
  }
  if (verb === 'close') {
    context?.db.close()
    context = null
    setTimeout(() => process.exit(0)) // ends this thread only, after the response was sent
    return null
  }
  if (context === null) throw new StoreError('closed', 'the store is closed')
  return write(context, verb, command)
})

function open({ now, mayMigrate, ...options }: WriterOpening): WriteContext {
  const connection = openConnection(options)
  try {
    if (mayMigrate) migrate(connection, options.schema, migrations, now)
    else requireKnownSchema(connection, options.schema, migrations)
    const db = lockingRecords(connection)
    return {
      ...{ db, orm: ormOn(db), events: postgresEventWriter(db), isOnlyWriter: false, tight: false },
      release: () => ({ bytes: 0, done: true }), // the server's autovacuum does
    }
  } catch (error) {
    connection.close()
    throw error
  }
}

function write(opened: WriteContext, verb: string, command: unknown): unknown {
  const run = writeVerbs[verb as keyof typeof writeVerbs] as Work | undefined
  if (run === undefined) throw new StoreError('internal', `unknown verb ${verb}`)
  const { db, events } = opened
  try {
    const result = inTransaction(db, () => run(opened, command))
    events.committed()
    return result
  } catch (error) {
    events.rolledBack()
    throw error
  }
}
