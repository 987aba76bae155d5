/** The store's threads seen from the calling one: a writer, some readers, and how to ask them. */
import { StoreError } from '../../contract/errors.ts'
import type { Histogram } from '../../rules/histogram.ts'
import { openPort, type Port } from './port.ts'
import { packAppend, type AppendOutcome, type PackedBatch } from './protocol.ts'
import { readQueue } from './read-queue.ts'
import type { ReaderOpening } from './reader.ts'
import type { ReadVerbs } from './read-verbs.ts'
import type { Sliced } from './slices.ts'
import type { WriteVerbs } from './write-verbs.ts'
import type { WriterOpening } from './writer.ts'

type CommandOf<F> = F extends (context: never, command: infer C) => unknown ? C : never
type ResultOf<F> = F extends (context: never, command: never) => infer R
  ? R extends Sliced<infer T>
    ? T
    : Awaited<R>
  : never

export interface Threads {
  write<K extends keyof WriteVerbs>(
    verb: K,
    command: CommandOf<WriteVerbs[K]>,
  ): Promise<ResultOf<WriteVerbs[K]>>
  read<K extends keyof ReadVerbs>(verb: K, query: CommandOf<ReadVerbs[K]>): Promise<ResultOf<ReadVerbs[K]>>
  append(batches: PackedBatch[]): Promise<AppendOutcome[]>
  commitTimes(): Promise<Histogram>
  /** Whether the log was copied into the database and emptied. */
  truncateLog(): Promise<boolean>
  dropReserve(): Promise<boolean>
  /** Rejects with `displaced` or `deleted` when a file of the folder was removed or replaced. */
  requirePresent(): Promise<void>
  /** Readers first, then the writer, which truncates the log and gives the folder back. */
  close(): Promise<void>
}

export interface ThreadsOpening {
  folder: string
  now: number
  mayMigrate: boolean
  acceptLoss: boolean
  readers: number
  readDeadlineMs: number
}

export async function openThreads(opening: ThreadsOpening): Promise<Threads> {
  const writer = openPort('writer')
  // Their threads start while the writer opens the database; they open it after the migrations ran.
  const readers = Array.from({ length: opening.readers }, () => openPort('reader'))
  const { folder, now, mayMigrate, acceptLoss } = opening
  const opened: WriterOpening = { folder, now, mayMigrate, acceptLoss }
  const readerOpening = (index: number): ReaderOpening => ({
    folder: opening.folder,
    deadlineMs: opening.readDeadlineMs,
    looks: false,
    givesWay: index > 0 && index === readers.length - 1,
  })
  try {
    await writer.ask('open', opened)
    await Promise.all(readers.map((reader, index) => reader.ask('open', readerOpening(index))))
  } catch (error) {
    await closeAll(writer, readers)
    throw error
  }

  const askReaders = readQueue(readers)
  return {
    write: (verb, command) => writer.ask(verb, command) as Promise<never>,
    read: (verb, query) => askReaders(verb, query) as Promise<never>,
    append: (batches) => writer.askPacked((id) => packAppend(id, batches)) as Promise<AppendOutcome[]>,
    truncateLog: () => writer.ask('truncate', null) as Promise<boolean>,
    dropReserve: () => writer.ask('dropReserve', null) as Promise<boolean>,
    requirePresent: () => writer.ask('present', null) as Promise<void>,
    commitTimes: () => writer.ask('times', null) as Promise<Histogram>,
    close: () => closeAll(writer, readers),
  }
}

/** Threads that only read, of a folder that nobody here holds; whatever writes is refused. */
export async function openReadThreads(folder: string, readDeadlineMs: number): Promise<Threads> {
  const reader = openPort('reader')
  const refuse = () => Promise.reject(new StoreError('read_only', 'this command only reads the data folder'))
  try {
    await reader.ask('open', { folder, deadlineMs: readDeadlineMs, looks: true } satisfies ReaderOpening)
  } catch (error) {
    await closePorts([reader])
    throw error
  }
  return {
    write: refuse,
    read: (verb, query) => reader.ask(verb, query) as Promise<never>,
    append: refuse,
    truncateLog: refuse,
    dropReserve: refuse,
    requirePresent: async () => undefined,
    commitTimes: refuse,
    close: () => closePorts([reader]),
  }
}

/** One question to a folder that nobody needs to hold, over a reader of its own. Creates and changes nothing. */
export async function askOnce<K extends keyof ReadVerbs>(
  folder: string,
  verb: K,
  query: CommandOf<ReadVerbs[K]>,
): Promise<ResultOf<ReadVerbs[K]>> {
  const reader = openPort('reader')
  try {
    await reader.ask('open', {
      folder,
      deadlineMs: Number.MAX_SAFE_INTEGER,
      looks: true,
    } satisfies ReaderOpening)
    return (await reader.ask(verb, query)) as ResultOf<ReadVerbs[K]>
  } finally {
    await closePorts([reader])
  }
}

async function closeAll(writer: Port, readers: Port[]): Promise<void> {
  await closePorts(readers)
  await closePorts([writer])
}

async function closePorts(ports: Port[]): Promise<void> {
  await Promise.allSettled(ports.map((port) => port.ask('close', null)))
  await Promise.all(ports.map((port) => port.ended))
}
