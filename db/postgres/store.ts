/** Opens the store of a PostgreSQL database on the threads of a node: append, writer, upkeep and several readers. */
import { storeOver, type SqlStore } from '../sql/store/store.ts'
import { openPort, type Port } from '../sql/threads/port.ts'
import { packAppend } from '../sql/threads/protocol.ts'
import { readQueue } from '../sql/threads/read-queue.ts'
import type { Histogram } from '../contract/histogram.ts'
import { closePorts, readThreads, type Threads } from '../sql/store/threads.ts'
import type { AppendAnswer } from './append/append.ts'
import type { SharedDatabase } from '../contract/admin.ts'
import type { ConnectionOptions } from './connection/options.ts'
import { followKeeper } from './upkeep/report.ts'
import { schema } from './migrations/migrations.ts'
import type { ReaderOpening } from './threads/reader.ts'
import type { WriterOpening } from './threads/writer.ts'

interface PostgresOpening {
  url: string
  now: number
  /** Names this node in `pg_stat_activity`. */
  node: string
  readers: number
  readDeadlineMs: number
  /** When false, data of an older schema is rejected with `older_schema`. Default: true. */
  mayMigrate?: boolean
}

/** The server ends a writing statement that runs longer. A read has its own deadline. */
const writeTimeoutMs = 30_000

/** An append takes milliseconds. Senders of a group wait no longer for one that a lost server does not answer. */
const appendTimeoutMs = 10_000

/** A long read pauses while its thread runs a statement of another one. It locks nothing. */
const readPauseMs = 60_000

export async function openPostgresStore(opening: PostgresOpening): Promise<SqlStore> {
  return storeOver(await openThreads(opening), { isShared: true })
}

/** One thread and connection that answer reading verbs, for a command. Rejects an older schema and all writes. */
export async function openPostgresReader(server: SharedDatabase, readDeadlineMs: number): Promise<SqlStore> {
  const opening = readerOf(server, readDeadlineMs, 'command')
  return storeOver(await readThreads(openWorker('reader'), opening), { isShared: true })
}

function serverOf({ url, node }: SharedDatabase) {
  return { url, node, schema, primaryOnly: true }
}

function readerOf(server: SharedDatabase, deadlineMs: number, user: ReaderOpening['user']): ReaderOpening {
  return {
    ...serverOf(server),
    user,
    statementTimeoutMs: deadlineMs,
    deadlineMs,
    idleInTransactionMs: readPauseMs,
    givesWay: false,
  }
}

async function openThreads(opening: PostgresOpening): Promise<Threads> {
  const { url, node, now, mayMigrate = true, readDeadlineMs } = opening
  const options: ConnectionOptions = { ...serverOf({ url, node }), statementTimeoutMs: writeTimeoutMs }
  const writer = openWorker('writer')
  const appender = openWorker('appender')
  const first = Array.from({ length: Math.max(1, opening.readers - 1) }, () => openWorker('reader'))
  const writers = [appender, writer]
  const readerOpening = readerOf({ url, node }, readDeadlineMs, 'store')
  const openLast = async () => {
    const reader = openWorker('reader')
    try {
      await reader.ask('open', { ...readerOpening, givesWay: true })
      return reader
    } catch (error) {
      await closePorts([reader])
      throw error
    }
  }
  let othersAppend = false
  try {
    const opened: WriterOpening = { ...options, schema, now, mayMigrate }
    const writing = (await writer.ask('open', opened)) as string[]
    const [reading = []] = (await Promise.all([
      ...first.map((reader) => reader.ask('open', readerOpening)),
      appender.ask('open', { ...options, statementTimeoutMs: appendTimeoutMs }),
    ])) as string[][]
    const keeper = keeperOf(options)
    const written = new Set(writing)
    const readers = readQueue(first, opening.readers > 1 ? openLast : null)
    return {
      verbs: [...writing, ...reading],
      writes: (verb) => written.has(verb),
      write: writer.ask,
      read: readers.ask,
      async append(parcels) {
        const answer = (await appender.askPacked((id) => packAppend(id, parcels))) as AppendAnswer
        ;({ othersAppend } = answer)
        return answer.outcomes
      },
      othersAppend: () => othersAppend,
      maintain: async () => true, // the server maintains its own files
      requirePresent: async () => undefined,
      upkeep: followKeeper(keeper.started),
      commitTimes: () => appender.ask('times', null) as Promise<Histogram>,
      close: async () => closePorts([...keeper.end(), ...(await readers.opened()), ...writers]),
    }
  } catch (error) {
    await closePorts([...first, ...writers])
    throw error
  }
}

/** A store that ends at once, as a command's does, needs no keeper, whose threads take 27 ms of processor time. */
const keeperAfterMs = 500

function keeperOf(options: ConnectionOptions): { started: Promise<Port>; end(): Port[] } {
  const { promise: started, resolve } = Promise.withResolvers<Port>()
  const ports: Port[] = []
  const timer = setTimeout(() => {
    const keeper = openWorker('keeper')
    ports.push(keeper)
    keeper.ask('open', options).catch(() => undefined) // the store was closed
    resolve(keeper)
  }, keeperAfterMs)
  return {
    started,
    end() {
      clearTimeout(timer)
      return ports
    },
  }
}

/** In the executable every module claims to be at the root, and workers keep their path below it. */
function openWorker(name: 'writer' | 'reader' | 'appender' | 'keeper'): Port {
  const path = Bun.isStandaloneExecutable ? `./db/postgres/threads/${name}.js` : `./threads/${name}.ts`
  return openPort(name, new URL(path, import.meta.url).href)
}

/** Asks a reader thread of its own, which ends with the answer. Without `opening` it opens no store. */
export async function askReader(
  opening: ReaderOpening | null,
  verb: string,
  query: unknown,
): Promise<unknown> {
  const reader = openWorker('reader')
  try {
    if (opening !== null) await reader.ask('open', opening)
    return await reader.ask(verb, query)
  } finally {
    await closePorts([reader])
  }
}
