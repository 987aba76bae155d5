/** Opens the store of a data folder on its threads: one writer and several readers. */
import { openPort, type Port } from '../../sql/threads/port.ts'
import { packAppend, unpackOutcomes } from '../../sql/threads/protocol.ts'
import { storeOver, type SqlStore } from '../../sql/store/store.ts'
import { readQueue, type ReadQueue } from '../../sql/threads/read-queue.ts'
import type { Histogram } from '../../contract/histogram.ts'
import {
  closePorts,
  readThreads,
  type CommandOf,
  type ResultOf,
  type Threads,
} from '../../sql/store/threads.ts'
import type { ReaderOpening } from './reader.ts'
import type { ReadVerbs, WriteVerbs } from '../../sql/verbs.ts'
import type { WriterOpening } from './writer.ts'
import type { Sliced } from '../../sql/slices.ts'

interface ThreadsOpening {
  folder: string
  now: number
  mayMigrate: boolean
  acceptLoss: boolean
  readers: number
  readDeadlineMs: number
}

export async function openThreads(opening: ThreadsOpening): Promise<Threads> {
  const writer = openWorker('writer')
  // Their threads start while the writer opens the database. They open it after the migrations.
  const first = Array.from({ length: Math.max(1, opening.readers - 1) }, () => openWorker('reader'))
  const { folder, now, mayMigrate, acceptLoss } = opening
  const opened: WriterOpening = { folder, now, mayMigrate, acceptLoss }
  const readerOpening: ReaderOpening = {
    folder,
    user: 'store',
    deadlineMs: opening.readDeadlineMs,
    givesWay: false,
  }
  const openLast = () => openReader({ ...readerOpening, givesWay: true })
  try {
    const writing = (await writer.ask('open', opened)) as string[]
    const openRequests = first.map((reader) => reader.ask('open', readerOpening))
    const [reading = []] = (await Promise.all(openRequests)) as string[][]
    const queue = readQueue(first, opening.readers > 1 ? openLast : null)
    return openedThreads(writer, queue, writing, reading)
  } catch (error) {
    await closeAll(writer, first)
    throw error
  }
}

async function openReader(opening: ReaderOpening): Promise<Port> {
  const reader = openWorker('reader')
  try {
    await reader.ask('open', opening)
    return reader
  } catch (error) {
    await closePorts([reader])
    throw error
  }
}

function openedThreads(
  writer: Port,
  readers: ReadQueue<Port>,
  writing: string[],
  reading: string[],
): Threads {
  const written = new Set(writing)
  return {
    verbs: [...writing, ...reading],
    writes: (verb) => written.has(verb),
    write: writer.ask,
    read: readers.ask,
    gathers: true,
    append: async (parcels) => unpackOutcomes(await writer.askPacked((id) => packAppend(id, parcels))),
    maintain: (reason) => writer.ask('maintain', reason) as Promise<boolean>,
    requirePresent: () => writer.ask('present', null) as Promise<void>,
    commitTimes: () => writer.ask('times', null) as Promise<Histogram>,
    close: async () => closeAll(writer, await readers.opened()),
  }
}

/** In the executable every module claims to be at the root, and workers keep their path below it. */
export function openWorker(name: 'writer' | 'reader'): Port {
  const path = Bun.isStandaloneExecutable ? `./db/sqlite/threads/${name}.js` : `./${name}.ts`
  return openPort(name, new URL(path, import.meta.url).href)
}

/** Runs one file command on a reader of its own, without locking the folder. Creates and changes nothing. */
export async function readOnce<K extends keyof ReadVerbs>(
  folder: string,
  verb: K,
  ...query: CommandOf<ReadVerbs[K]>
): Promise<ResultOf<ReadVerbs[K]>> {
  const reader = openWorker('reader')
  try {
    await reader.ask('open', {
      folder,
      user: 'admin',
      deadlineMs: Number.MAX_SAFE_INTEGER,
      givesWay: false,
    } satisfies ReaderOpening)
    return (await reader.ask(verb, query[0])) as ResultOf<ReadVerbs[K]>
  } finally {
    await closePorts([reader])
  }
}

async function closeAll(writer: Port, readers: readonly Port[]): Promise<void> {
  await closePorts(readers)
  await closePorts([writer])
}

export async function openSqliteStore(opening: ThreadsOpening): Promise<SqlStore> {
  return storeOver(await openThreads(opening))
}

/** Answers reading verbs and rejects the others. The folder stays as it is, and no lock is needed. */
export async function openSqliteReader(folder: string, deadlineMs: number): Promise<SqlStore> {
  const opening: ReaderOpening = { folder, user: 'command', deadlineMs, givesWay: false }
  return storeOver(await readThreads(openWorker('reader'), opening))
}
