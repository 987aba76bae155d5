/** The SQLite engine passes the conformance suite. */
import { openStore } from '../../db/open.ts'
import { storeOver } from '../../db/sql/store.ts'
import { openThreads } from '../../db/sqlite/threads/threads.ts'
import { noon } from './make.ts'
import { testStore } from './conformance.ts'

testStore('sqlite', (folder) => openStore({ folder, now: noon }), openNodes)

/** A folder has one process. Two stores over its threads differ in what they cache, as two processes would. */
async function openNodes(folder: string) {
  const opening = { folder, now: noon, mayMigrate: true, acceptLoss: false }
  const threads = await openThreads({ ...opening, readers: 2, readDeadlineMs: 10_000 })
  const isShared = true
  return [await storeOver(threads, { isShared }), await storeOver(threads, { isShared })] as const
}
