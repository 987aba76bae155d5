/** Opens stores on PostgreSQL with the threads of a node that are for records: one writer and one reader. */
import { StoreError } from '../../db/contract/errors.ts'
import type { ReaderOpening } from '../../db/postgres/threads/reader.ts'
import type { WriterOpening } from '../../db/postgres/threads/writer.ts'
import { diskBoundsMs, makeHistogram } from '../../db/rules/histogram.ts'
import { storeOver, type SqlStore } from '../../db/sql/store/store.ts'
import { openPort, type Port } from '../../db/sql/threads/port.ts'
import { noon } from './make.ts'

export type RecordsStore = SqlStore
type Threads = Parameters<typeof storeOver>[0]

export interface RecordsOpening {
  url: string
  lockTimeoutMs?: number
}

export async function openRecords(opened: RecordsOpening): Promise<RecordsStore> {
  const options = { ...opened, node: 'test', schema: 'sightglass', statementTimeoutMs: 10_000 }
  const [writer, reader] = ['writer', 'reader'].map((name) =>
    openPort(name, new URL(`../../db/postgres/threads/${name}.ts`, import.meta.url).href),
  ) as [Port, Port]
  const opening = { ...options, now: noon, mayMigrate: true } satisfies WriterOpening
  const reading = { ...options, user: 'store', deadlineMs: 10_000, givesWay: false } satisfies ReaderOpening
  const written = (await writer.ask('open', opening)) as string[]
  const read = (await reader.ask('open', reading)) as string[]
  const threads: Threads = {
    verbs: [...written, ...read],
    writes: (verb) => written.includes(verb),
    write: writer.ask,
    read: reader.ask,
    append: () => Promise.reject(new StoreError('internal', 'these nodes append no events')),
    commitTimes: async () => makeHistogram(diskBoundsMs),
    maintain: async () => true,
    requirePresent: async () => undefined,
    async close() {
      for (const port of [reader, writer]) {
        await port.ask('close', null)
        await port.ended
      }
    },
  }
  return storeOver(threads, { isShared: true })
}
