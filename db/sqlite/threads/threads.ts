/** Opens the store's threads, one writer and several readers, and sends verbs to them. */
import { StoreError } from '../../contract/errors.ts'
import { openPort, type Port } from './port.ts'
import { packAppend, type AppendOutcome, type PackedBatch } from './protocol.ts'
import { readQueue } from './read-queue.ts'
import type { Histogram } from '../../rules/histogram.ts'
import type { ReaderOpening } from './reader.ts'
import type { ReadVerbs, WriteVerbs } from './verbs.ts'
import type { WriterOpening } from './writer.ts'
import type { Sliced } from './slices.ts'

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
    isUnlocked: false,
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
    const opening: ReaderOpening = { folder, deadlineMs: readDeadlineMs, isUnlocked: true }
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
      isUnlocked: true,
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

/** Makes a method of each verb of a noun, which runs it on its thread: `accounts.find` is `remote('accounts').find`. */
type Verbs = ReadVerbs & WriteVerbs
type Verb = keyof Verbs
type Noun = Verb extends infer V ? (V extends `${infer N}.${string}` ? N : never) : never

type CommandOf<F> = F extends (context: never) => unknown
  ? []
  : F extends (context: never, command: infer C) => unknown
    ? [command: C]
    : never
type ResultOf<F> = F extends (context: never, command: never) => infer R
  ? R extends Sliced<infer T>
    ? T
    : Awaited<R>
  : never
type Remote<V extends Verb> = (...command: CommandOf<Verbs[V]>) => Promise<ResultOf<Verbs[V]>>
export type Nouns = {
  [N in Noun]: { [V in Verb as V extends `${N}.${infer Name}` ? Name : never]: Remote<V> }
}

/** Runs a verb of the store by name. */
export type CallVerb = <V extends Verb>(verb: V, ...command: CommandOf<Verbs[V]>) => ReturnType<Remote<V>>

/** The methods are own properties, so that they survive a spread. */
export function remote<N extends Noun>(call: CallVerb, verbs: readonly string[], noun: N): Nouns[N] {
  const method = (name: string) => (command?: unknown) =>
    (call as (verb: string, command?: unknown) => unknown)(`${noun}.${name}`, command)
  const names = verbs.filter((verb) => verb.startsWith(`${noun}.`)).map((verb) => verb.slice(noun.length + 1))
  const own = Object.fromEntries(names.map((name) => [name, method(name)]))
  // Verbs that are not listed write, which their thread rejects in a read-only folder.
  return new Proxy(own, {
    get: (known, name) => known[String(name)] ?? (typeof name === 'string' ? method(name) : undefined),
  }) as unknown as Nouns[N]
}
