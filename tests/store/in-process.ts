/**
 * A store on a data folder whose verbs run in this process, for tests of many databases: a store's threads take 40 ms
 * of processor time to start, and interpret code that is compiled here after the first database.
 */
import { compactEventReader } from '../../db/sql/events/reader.ts'
import { idsInRuns } from '../../db/sql/events/ids-in-runs.ts'
import { compactEventWriter } from '../../db/sql/events/writer.ts'
import { inTransaction, ormOn } from '../../db/sql/database.ts'
import { storeOver } from '../../db/sql/store/store.ts'
import type { ReadContext } from '../../db/sql/contexts.ts'
import { atOnce, isSliced } from '../../db/sql/slices.ts'
import { readVerbs } from '../../db/sql/verbs.ts'
import { openReaderConnection, openWriterConnection } from '../../db/sqlite/file/connection.ts'
import { databasePath } from '../../db/sqlite/file/files.ts'
import { migrate, migrations } from '../../db/sqlite/migrations/migrations.ts'
import type { EventBatch } from '../../db/contract/store.ts'
import { noon } from './make.ts'

export type InProcess = Awaited<ReturnType<typeof openInProcess>>

/** Reads by the store; migrates and appends by the functions that the writer thread runs. */
export async function openInProcess(folder: string) {
  const db = openReaderConnection(databasePath(folder))
  const events = compactEventReader(db, idsInRuns(db))
  const refuse = () => {
    throw new Error('not in this process')
  }
  const context: ReadContext = { db, orm: ormOn(db), events, folder, health: refuse }
  const store = await storeOver({
    verbs: Object.keys(readVerbs),
    writes: () => false,
    async read(verb, query) {
      const run = readVerbs[verb as keyof typeof readVerbs] as (
        context: ReadContext,
        query: unknown,
      ) => unknown
      const result = run(context, query)
      return isSliced(result) ? atOnce(result) : result
    },
    write: refuse,
    append: refuse,
    commitTimes: refuse,
    maintain: refuse,
    requirePresent: async () => undefined,
    close: async () => db.close(),
  })
  return {
    store,
    /** As `serve` does at its start. Returns the versions that were missing. */
    migrate: (): number[] => {
      using writing = openWriterConnection(databasePath(folder), () => {})
      return migrate(writing, migrations, noon)
    },
    append(batch: EventBatch) {
      using writing = openWriterConnection(databasePath(folder), () => {})
      const writer = compactEventWriter(writing)
      return inTransaction(writing, () => {
        const outcome = writer.append(batch)
        writer.flush()
        return outcome
      })
    },
  }
}
