/** Opens stores on PostgreSQL that have all verbs but those of events: each is a node with one connection. */
import { StoreError } from '../../db/contract/errors.ts'
import { storeOver, type SqlStore } from '../../db/sql/store.ts'
import { openPort } from '../../db/sql/threads/port.ts'
import type { Threads } from '../../db/sql/threads/threads.ts'
import { diskBoundsMs, makeHistogram } from '../../db/rules/histogram.ts'
import type { RecordsOpening } from './postgres-thread.ts'

export type RecordsStore = SqlStore & { applied: number[] }

export async function openRecords(opening: RecordsOpening): Promise<RecordsStore> {
  const port = openPort('records', new URL('./postgres-thread.ts', import.meta.url).href)
  const opened = port.ask('open', opening) as Promise<{
    writing: string[]
    reading: string[]
    applied: number[]
  }>
  const { writing, reading, applied } = await opened
  const written = new Set(writing)
  const threads: Threads = {
    verbs: [...writing, ...reading],
    writes: (verb) => written.has(verb),
    ...{ write: port.ask, read: port.ask },
    append: () => Promise.reject(new StoreError('internal', 'this store has no events')),
    commitTimes: async () => makeHistogram(diskBoundsMs),
    maintain: async () => true,
    requirePresent: async () => undefined,
    async close() {
      await port.ask('close', null)
      await port.ended
    },
  }
  const store = await storeOver(threads, { isShared: true })
  return { ...store, applied }
}
