/** One connection of the driver, on the I/O thread. */
import { connect as connectSocket, type Socket } from 'node:net'
import postgres from 'postgres'
import { endsConnection, lostCode } from './failure.ts'
import type { SqlValue } from '../../sql/database.ts'
import type { ServerOptions } from './options.ts'
import type { Answer, Request } from './wire.ts'

export interface Client {
  handle(request: ClientRequest): Promise<Answer>
}

type ClientRequest = Exclude<Request, { do: 'open' }>

/** After the server's own timeouts: only a server that is unreachable stays silent for so long. */
const silenceMs = 5_000

/** Executions of one statement on their way to the server at once. */
const pipelined = 1_000

type Pending = postgres.PendingQuery<postgres.Row[]>

type Rows = unknown[][] & {
  count: number | null
  command: string | null
  columns?: { name: string }[]
}

/** Values as SQLite returns them. The driver sends parameters as text, whose type the server infers. */
const asText = { serialize: String, parse: (text: string) => text }
const types = {
  bool: {
    ...{ to: 16, from: [16] },
    serialize: (value: unknown) => (Number(value) === 0 ? 'f' : 't'),
    parse: (text: string) => (text === 't' ? 1 : 0),
  },
  number: { to: 0, from: [20, 21, 23, 26, 700, 701, 1700], serialize: String, parse: Number },
  json: { ...asText, to: 114, from: [114, 3802] },
  date: { ...asText, to: 1184, from: [1082, 1114, 1184] },
  bytea: {
    ...{ to: 17, from: [17] },
    serialize: (bytes: Uint8Array) => `\\x${bytes.toHex()}`,
    parse: (text: string) => Uint8Array.fromHex(text.slice(2)),
  },
}

interface Cursor {
  /** Fewer rows than a batch: there are no more. */
  next(): Promise<Rows>
  stop(): Promise<void>
}

/** Reads in batches, each when it is asked for. The driver calls back with a batch and waits for the answer. */
function openCursor(query: Pending, size: number, { settled, closing }: Link): Cursor {
  let batch = Promise.withResolvers<Rows>()
  let answer: ((closing?: unknown) => void) | null = null
  const reading = query.cursor(size, (rows) => {
    batch.resolve(rows as unknown as Rows)
    return new Promise<never>((resolve) => (answer = resolve as typeof answer))
  }) as unknown as Pending
  const ended = settled(reading)
  ended.then(
    (rest) => batch.resolve(rest),
    (error: unknown) => batch.reject(error),
  )
  let isFirst = true
  return {
    async next() {
      if (!isFirst) {
        batch = Promise.withResolvers<Rows>()
        answer?.()
      }
      isFirst = false
      return batch.promise
    },
    async stop() {
      answer?.(closing)
      await ended
    },
  }
}

function lost(message: string): Error {
  return Object.assign(new Error(message), { code: lostCode })
}

/** What the driver made of the options and of its defaults. */
interface Address {
  host: string[]
  port: number[]
  path: string | false
  connect_timeout: number
}

/**
 * Connects once. Left alone, the driver connects again without a pause as long as a proxy without a server accepts and
 * closes.
 */
function connectOnce(): (address: Address) => Promise<Socket> {
  let isUsed = false
  return ({ host: [host = ''], port: [port = 0], path, connect_timeout }) => {
    const { promise, resolve, reject } = Promise.withResolvers<Socket>()
    if (isUsed) reject(lost('the server closed the connection before it answered'))
    if (isUsed) return promise
    isUsed = true
    const socket = path ? connectSocket(path) : connectSocket({ host, port })
    // The driver verifies the certificate of this name.
    if (!path) Object.assign(socket, { host })
    const timer = setTimeout(() => {
      reject(lost(`no connection to ${path || host} within ${connect_timeout} s`))
      socket.destroy()
    }, connect_timeout * 1_000)
    const failed = (error: Error) => {
      clearTimeout(timer)
      reject(error)
    }
    socket.once('error', failed)
    socket.once('connect', () => {
      clearTimeout(timer)
      socket.removeListener('error', failed)
      resolve(socket)
    })
    return promise
  }
}

/** A connection and its successors: a lost one is replaced at the next request. */
interface Link {
  /** Counts the connections. A transaction belongs to one of them. */
  generation(): number
  query(text: string, params: SqlValue[], options: { prepare: boolean; simple: boolean }): Pending
  settled(query: Pending): Promise<Rows>
  /** For a connection that does not answer. */
  giveUp(): void
  closing: unknown
  end(): Promise<void>
}

function openLink({ prepare, settings: _, deadlineMs: __, ...server }: ServerOptions): Link {
  let generation = 0
  const pending = new Set<Pending>()
  let sql = connect()

  function connect(): postgres.Sql {
    const made: postgres.Sql = postgres({
      ...server,
      ...{ max: 1, max_pipeline: pipelined, fetch_types: false, types: types as never },
      ...{ idle_timeout: 0, max_lifetime: 0 },
      ...(server.host?.includes(',') ? {} : { socket: connectOnce() }), // with several hosts it tries each
      onnotice: () => undefined,
      onclose() {
        if (made !== sql) return
        // What the driver still queues must not run on its next connection, outside of the transaction.
        for (const query of pending) query.cancel()
        giveUp()
      },
    } as postgres.Options<Record<string, never>>)
    return made
  }

  /** With a driver of its own, because the driver does not always send again after a close. */
  function giveUp(): void {
    const former = sql
    sql = connect()
    generation += 1
    pending.clear()
    void former.end({ timeout: 0 }).catch(() => undefined)
  }

  return {
    generation: () => generation,
    query: (text, params, { prepare: reused, simple }) =>
      sql.unsafe(text, params as never[], { prepare: prepare && reused, simple } as never).values() as never,
    async settled(query) {
      const began = generation
      pending.add(query)
      try {
        return (await query) as unknown as Rows
      } catch (error) {
        if (!(error instanceof Error)) throw error
        if (generation !== began) throw lost(error.message)
        // A driver that did not connect waits for a close that never comes.
        if ('code' in error && endsConnection(String(error.code))) giveUp()
        throw error
      } finally {
        pending.delete(query)
      }
    },
    giveUp,
    closing: sql.CLOSE,
    end: () => sql.end({ timeout: 0 }),
  }
}

export function openClient(server: ServerOptions): Client {
  const link = openLink(server)
  let cursor: Cursor | null = null

  const execute = (sql: string, params: SqlValue[], prepare: boolean): Promise<Rows> =>
    link.settled(link.query(sql, params, { prepare, simple: false }))

  async function each(sql: string, rows: SqlValue[][]): Promise<Answer> {
    const [first, ...others] = rows
    if (first !== undefined) await execute(sql, first, true) // the others need its description
    for (const other of await Promise.allSettled(others.map((row) => execute(sql, row, true))))
      if (other.status === 'rejected') throw other.reason
    return answer(null)
  }

  async function respond(request: ClientRequest): Promise<Answer> {
    if ('within' in request && request.within !== null && request.within !== link.generation())
      throw lost('the connection was lost in this transaction')
    switch (request.do) {
      case 'execute':
        return answer(await execute(request.sql, request.params, request.reused))
      case 'each':
        return each(request.sql, request.rows)
      case 'script':
        return answer(await link.settled(link.query(request.sql, [], { prepare: false, simple: true })))
      case 'first': {
        const query = link.query(request.sql, request.params, { prepare: true, simple: false })
        cursor = openCursor(query, request.size, link)
        return answer(await cursor.next())
      }
      case 'more':
        return answer((await cursor?.next()) ?? null)
      case 'stop':
        await cursor?.stop()
        return answer(null)
      case 'close':
        await link.end()
        return answer(null)
    }
  }

  function answer(rows: Rows | null): Answer {
    return {
      columns: (rows?.columns ?? []).map(({ name }) => name),
      rows: rows === null ? [] : withoutHoles(rows),
      changes: rows?.count ?? 0,
      command: rows?.command ?? '',
      generation: link.generation(),
    }
  }

  return {
    async handle(request) {
      const silence = Promise.withResolvers<never>()
      const timer = setTimeout(() => {
        link.giveUp()
        silence.reject(lost('the server does not answer'))
      }, server.deadlineMs + silenceMs)
      try {
        return await Promise.race([respond(request), silence.promise])
      } finally {
        clearTimeout(timer)
      }
    },
  }
}

/** After a query that failed behind its first rows, the driver puts those of the next one at higher indexes. */
function withoutHoles(rows: Rows): unknown[][] {
  return rows.length === 0 || 0 in rows ? Array.from(rows) : rows.filter(() => true)
}
