/** One connection of the driver, on the I/O thread. */
import { connect as connectSocket, type Socket } from 'node:net'
import postgres from 'postgres'
import { endsConnection, lostCode } from './failure.ts'
import type { SqlValue } from '../../sql/database.ts'
import type { Server, ServerOptions } from './options.ts'
import type { Answer, Request } from './wire.ts'

export interface Client {
  handle(request: ClientRequest): Promise<Answer>
}

type ClientRequest = Exclude<Request, { do: 'open' }>

/** After the server's own timeouts: only a server that is unreachable stays silent for so long. */
const silenceMs = 5_000

/** Executions of one statement on their way to the server at once. */
const pipelined = 1_000

type Pending = postgres.PendingQuery<postgres.Row[]> & { active?: boolean } // while the server runs it

type Rows = unknown[][] & {
  count: number | null
  command: string | null
  columns?: { name: string }[]
}

/** Values as SQLite returns them. The driver sends parameters as text, whose type the server infers. */
const asText = { serialize: String, parse: (text: string) => text }
const types = {
  bool: {
    to: 16,
    from: [16],
    serialize: (value: unknown) => (Number(value) === 0 ? 'f' : 't'),
    parse: (text: string) => (text === 't' ? 1 : 0),
  },
  number: { to: 0, from: [20, 21, 23, 26, 700, 701, 1700], serialize: String, parse: Number },
  json: { ...asText, to: 114, from: [114, 3802] },
  date: { ...asText, to: 1184, from: [1082, 1114, 1184] },
  bytea: {
    to: 17,
    from: [17],
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
    (finalRows) => batch.resolve(finalRows),
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

/** Functions do not cross threads. */
function sslOf(ssl: ServerOptions['ssl']): boolean | string | object {
  if (typeof ssl !== 'object') return ssl
  const { checksHost, ...certificates } = ssl
  return checksHost ? certificates : { ...certificates, checkServerIdentity: () => undefined }
}

const closeMsMax = 2_000

function lost(message: string): Error {
  return Object.assign(new Error(message), { code: lostCode })
}

/**
 * Connects once, to the first server that accepts. Left alone, the driver connects again without a pause as long as a
 * proxy without a server accepts and closes. `used` is called with the server.
 */
function connectOnce(
  servers: Server[],
  seconds: number,
  onConnect: (server: Server) => void,
): () => Promise<Socket> {
  const untried = [...servers]
  return async () => {
    let failure: Error = lost('the server closed the connection before it answered')
    for (let server = untried.shift(); server !== undefined; server = untried.shift()) {
      try {
        const socket = await connectTo(server, seconds)
        untried.length = 0
        onConnect(server)
        return socket
      } catch (error) {
        failure = error as Error
      }
    }
    throw failure
  }
}

const firstOf = (servers: Server[], first: Server) => [first, ...servers.filter((server) => server !== first)]

/** The longest that a timer waits. The system gives up long before. */
const timerMsMax = 2 ** 31 - 1

function connectTo({ host, port, address = host }: Server, seconds: number): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const isSocket = host.startsWith('/')
  const socket = isSocket ? connectSocket(`${host}/.s.PGSQL.${port}`) : connectSocket({ host: address, port })
  // The driver verifies the certificate of this name.
  if (!isSocket) Object.assign(socket, { host })
  const limitMs = seconds === 0 ? timerMsMax : seconds * 1_000
  const timer = setTimeout(() => {
    reject(lost(`no connection to ${host} within ${seconds} s`))
    socket.destroy()
  }, limitMs)
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

/** A connection and its successors: a lost one is replaced at the next request. The last good server is tried first. */
interface Link {
  /** Counts the connections. A transaction belongs to one of them. */
  generation(): number
  /** Resolves when the connection leads to a server that the options want. */
  ready(): Promise<void> | undefined
  query(text: string, params: SqlValue[], options: { prepare: boolean; simple: boolean }): Pending
  settled(query: Pending): Promise<Rows>
  /** For a connection that does not answer. */
  giveUp(): void
  closing: unknown
  end(): Promise<void>
}

function openLink(options: ServerOptions): Link {
  const { prepare, settings: _, deadlineMs: __, servers, primaryOnly, ...server } = options
  let generation = 0
  let order = servers // of the next connection
  const pending = new Set<Pending>()
  let sql = connect()

  function connect(): postgres.Sql {
    const client: postgres.Sql = postgres({
      ...server,
      ...servers[0],
      ssl: sslOf(server.ssl),
      socket: connectOnce(
        order,
        server.connect_timeout,
        (usedServer) => (order = firstOf(servers, usedServer)),
      ),
      max: 1,
      max_pipeline: pipelined,
      fetch_types: false,
      types: types as never,
      idle_timeout: 0,
      max_lifetime: 0,
      onnotice: () => undefined,
      onclose() {
        if (client !== sql) return
        // What the driver still queues must not run on its next connection, outside of the transaction. For a query
        // that runs it would open another connection, and a failure of that one would end this thread.
        for (const query of pending) if (query.active !== true) query.cancel()
        giveUp()
      },
    } as postgres.Options<Record<string, never>>)
    return client
  }

  /** With a driver of its own, because the driver does not always send again after a close. */
  function giveUp(): void {
    const former = sql
    sql = connect()
    generation += 1
    pending.clear()
    void former.end({ timeout: 0 }).catch(() => undefined)
  }

  async function settled(query: Pending): Promise<Rows> {
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
  }

  const link = {
    generation: () => generation,
    isStandby: async () =>
      (await settled(sql.unsafe('SELECT pg_is_in_recovery()').simple().values() as never))[0]?.[0] !== 0,
    tryNext() {
      order = [...order.slice(1), order[0]!]
      giveUp()
    },
  }
  return {
    generation: link.generation,
    ready: primaryOnly ? primaryCheck(servers.length, link) : () => undefined,
    settled,
    query: (text, params, { prepare: reused, simple }) =>
      sql.unsafe(text, params as never[], { prepare: prepare && reused, simple } as never).values() as never,
    giveUp,
    closing: sql.CLOSE,
    end: () => sql.end({ timeout: 0 }),
  }
}

interface Checked {
  generation(): number
  isStandby(): Promise<boolean>
  tryNext(): void
}

/** Checks each new connection once, because a standby answers with old data. */
function primaryCheck(servers: number, link: Checked): () => Promise<void> | undefined {
  let checkedGeneration = -1
  let checking: Promise<void> | null = null

  async function check(): Promise<void> {
    for (let tries = servers; tries > 0; tries--) {
      if (!(await link.isStandby())) {
        checkedGeneration = link.generation()
        return
      }
      link.tryNext()
    }
    throw lost('the server is a standby')
  }

  return () =>
    checkedGeneration === link.generation()
      ? undefined
      : (checking ??= check().finally(() => (checking = null)))
}

export function openClient(server: ServerOptions): Client {
  const link = openLink(server)
  let cursor: Cursor | null = null

  const execute = (sql: string, params: SqlValue[], prepare: boolean): Promise<Rows> =>
    link.settled(link.query(sql, params, { prepare, simple: false }))

  async function executeEach(sql: string, rows: SqlValue[][]): Promise<Answer> {
    const [first, ...otherRows] = rows
    if (first !== undefined) await execute(sql, first, true) // the others need its description
    for (const outcome of await Promise.allSettled(otherRows.map((row) => execute(sql, row, true))))
      if (outcome.status === 'rejected') throw outcome.reason
    return answer(null)
  }

  async function respond(request: ClientRequest): Promise<Answer> {
    if ('within' in request && request.within !== null && request.within !== link.generation())
      throw lost('the connection was lost in this transaction')
    if ('within' in request && request.within === null) await link.ready()
    switch (request.do) {
      case 'execute':
        return answer(await execute(request.sql, request.params, request.reused))
      case 'each':
        return executeEach(request.sql, request.rows)
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
        // A driver that is about to connect to a server that is away may wait for it for ever.
        await Promise.race([link.end(), Bun.sleep(closeMsMax)])
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
