/** The writer's thread: the only one that changes the database, one message after the other. */
import { drizzle } from 'drizzle-orm/bun-sqlite'
import type { Database } from 'bun:sqlite'
import { StoreError } from '../errors.ts'
import type { EventBatch } from '../store.ts'
import { openWriterConnection } from './connection.ts'
import type { WriteContext } from './contexts.ts'
import { storeError } from './failure.ts'
import { databasePath, makeFolder, requireWholeOrNew } from './files.ts'
import { commitGroup } from './group.ts'
import { giveWay } from './give-way.ts'
import { headsKeeper } from './heads-keeper.ts'
import { lockFolder } from './lock.ts'
import { migrate, requireKnownSchema } from './migrate.ts'
import { migrations } from './migrations.ts'
import { compactEventWriter } from './events/writer.ts'
import { unpackBatches } from './protocol.ts'
import { dropReserve, dropReserveWhenFull, makeReserveWhenRoom } from './reserve.ts'
import { serve } from './serve.ts'
import { commitTimes, inTransaction } from './transaction.ts'
import { housekeeping } from './wal.ts'
import { writeGuard } from './write-guard.ts'
import { writeVerbs } from './write-verbs.ts'

export interface WriterOpening {
  folder: string
  now: number
  mayMigrate: boolean
}

interface Writer {
  write(verb: string, command: unknown): unknown
  append(batches: EventBatch[]): unknown
  truncate(): boolean
  dropReserve(): boolean
  close(): void
}

let writer: Writer | null = null

serve((verb, command, parts) => {
  if (verb === 'open') {
    giveWay()
    writer = openWriter(command as WriterOpening)
    return null
  }
  if (verb === 'close') {
    writer?.close()
    writer = null
    setTimeout(() => process.exit(0)) // of this thread alone, after the answer has left
    return null
  }
  if (verb === 'times') return commitTimes
  if (writer === null) throw new StoreError('closed', 'the store is closed')
  if (verb === 'truncate') return writer.truncate()
  if (verb === 'dropReserve') return writer.dropReserve()
  return verb === 'append' ? writer.append(unpackBatches(command, parts)) : writer.write(verb, command)
})

/** Opens in an order in which a refusal leaves the folder as it was: lock, looks, database, migrations. */
function openWriter({ folder, now, mayMigrate }: WriterOpening): Writer {
  makeFolder(folder)
  const unlock = lockFolder(folder, process.pid)
  let db: Database | null = null
  try {
    dropReserveWhenFull(folder)
    requireWholeOrNew(folder)
    db = openWriterConnection(databasePath(folder), (found) =>
      requireKnownSchema(found, migrations, mayMigrate),
    )
    migrate(db, migrations, now)
    makeReserveWhenRoom(folder)
    return writerOn(db, folder, unlock)
  } catch (error) {
    db?.close()
    unlock()
    throw storeError(error, 'the database cannot be opened')
  }
}

function writerOn(db: Database, folder: string, unlock: () => void): Writer {
  const guard = writeGuard(compactEventWriter(db))
  const orm = drizzle(db)
  const context: WriteContext = {
    db,
    orm,
    get events() {
      return guard.engine()
    },
  }
  const heads = headsKeeper(db, folder)
  const keeper = housekeeping(db, {
    idle() {
      try {
        guard.run('maintenance', () => guard.engine().idle())
      } catch {
        // Nobody waits for it, and what a full disk refuses is done another time.
      }
    },
    minute: () => makeReserveWhenRoom(folder),
    copy(work) {
      try {
        guard.run('checkpoint', work)
      } catch {
        // The next write says it: nobody waits for this one.
      }
    },
  })

  return {
    write(verb, command) {
      const run = writeVerbs[verb as keyof typeof writeVerbs] as
        ((context: WriteContext, command: unknown) => unknown) | undefined
      if (run === undefined) throw new StoreError('internal', `there is no verb ${verb}`)
      keeper.busy()
      return guard.run(verb, () => {
        const result = inTransaction(db, () => run(context, command))
        guard.committed()
        heads.follow()
        keeper.copyGrown()
        return result
      })
    },
    append(batches) {
      keeper.busy()
      return guard.run('append', () => {
        const outcomes = commitGroup(db, guard.engine(), batches)
        keeper.copyGrown()
        return outcomes
      })
    },
    truncate: keeper.truncate,
    dropReserve: () => dropReserve(folder),
    close() {
      guard.engine().close()
      keeper.end()
      db.close()
      unlock()
    },
  }
}
