/** Two stores over the threads of one data folder, which differ in what they cache, as two processes would. */
import { storeOver } from '../../db/sql/store/store.ts'
import { openThreads } from '../../db/sqlite/threads/threads.ts'
import { noon } from './make.ts'

export async function openTwoStores(folder: string) {
  const opening = { folder, now: noon, mayMigrate: true, acceptLoss: false }
  const threads = await openThreads({ ...opening, readers: 2, readDeadlineMs: 10_000 })
  const isShared = true
  return [await storeOver(threads, { isShared }), await storeOver(threads, { isShared })] as const
}
