/** Opens the store's threads, one writer and several readers, and sends verbs to them. */
import { StoreError } from '../../contract/errors.ts'
import type { Histogram } from '../../rules/histogram.ts'
import { openPort, type Port } from './port.ts'
import { packAppend, type AppendOutcome, type PackedBatch } from './protocol.ts'
import { readQueue } from './read-queue.ts'
import type { ReaderOpening } from './reader.ts'
import type { ReadVerbs } from './read-verbs.ts'
import type { CommandOf, ResultOf } from './remote-verbs.ts'
import type { WriterOpening } from './writer.ts'

export interface Threads {
  /** The names of the verbs, as the threads reported them when they opened. */
  verbs: readonly string[]
  /** Whether a verb runs on the writer. */
  writes(verb: string): boolean
  write(verb: string, command: unknown): Promise<unknown>
  read(verb: string, query: unknown): Promise<unknown>
  append(batches: PackedBatch[]): Promise<AppendOutcome[]>
  commitTimes(): Promise<Histogram>
  /** Whether the log was copied into the database and emptied. */
  truncateLog(): Promise<boolean>
  dropReserve(): Promise<boolean>
  /** Rejects with `displaced` or `deleted` when a file of the folder was deleted or replaced. */
  requirePresent(): Promise<void>
  /** Readers first, then the writer, which truncates the log and unlocks the folder. */
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
  // Their threads start while the writer opens the database. They open it after the migrations.
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
    const writing = (await writer.ask('open', opened)) as string[]
    const opening = readers.map((reader, index) => reader.ask('open', readerOpening(index)))
    const [reading = []] = (await Promise.all(opening)) as string[][]
    return openedThreads(writer, readers, writing, reading)
  } catch (error) {
    await closeAll(writer, readers)
    throw error
  }
}

function openedThreads(writer: Port, readers: Port[], writing: string[], reading: string[]): Threads {
  const askReaders = readQueue(readers)
  const written = new Set(writing)
  return {
    verbs: [...writing, ...reading],
    writes: (verb) => written.has(verb),
    write: writer.ask,
    read: askReaders,
    append: (batches) => writer.askPacked((id) => packAppend(id, batches)) as Promise<AppendOutcome[]>,
    truncateLog: () => writer.ask('truncate', null) as Promise<boolean>,
    dropReserve: () => writer.ask('dropReserve', null) as Promise<boolean>,
    requirePresent: () => writer.ask('present', null) as Promise<void>,
    commitTimes: () => writer.ask('times', null) as Promise<Histogram>,
    close: () => closeAll(writer, readers),
  }
}

/** Threads that only read, for a folder that this process has not locked. Rejects writes. */
export async function openReadThreads(folder: string, readDeadlineMs: number): Promise<Threads> {
  const reader = openPort('reader')
  let verbs: string[] = []
  const refuse = () => Promise.reject(new StoreError('read_only', 'this command only reads the data folder'))
  try {
    const opening: ReaderOpening = { folder, deadlineMs: readDeadlineMs, looks: true }
    verbs = (await reader.ask('open', opening)) as string[]
  } catch (error) {
    await closePorts([reader])
    throw error
  }
  return {
    verbs,
    writes: (verb) => !verbs.includes(verb),
    write: refuse,
    read: reader.ask,
    append: refuse,
    truncateLog: refuse,
    dropReserve: refuse,
    requirePresent: async () => undefined,
    commitTimes: refuse,
    close: () => closePorts([reader]),
  }
}

/** Runs one file command on a reader of its own, without locking the folder. Creates and changes nothing. */
export async function readOnce<K extends keyof ReadVerbs>(
  folder: string,
  verb: K,
  ...query: CommandOf<ReadVerbs[K]>
): Promise<ResultOf<ReadVerbs[K]>> {
  const reader = openPort('reader')
  try {
    await reader.ask('open', {
      folder,
      deadlineMs: Number.MAX_SAFE_INTEGER,
      looks: true,
    } satisfies ReaderOpening)
    return (await reader.ask(verb, query[0])) as ResultOf<ReadVerbs[K]>
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
