/** A session of a thread that blocks: its requests, and the transaction that they belong to. */
import { StoreError } from '../../contract/errors.ts'
import { endsConnection, explained, kindOf } from './failure.ts'
import type { ServerOptions } from './options.ts'
import { ioThread, type Answer, type Request } from './wire.ts'

/** What a request belongs to is added by the session. */
type SessionRequest = Request extends infer One ? (One extends Request ? Omit<One, 'within'> : never) : never

export interface Session {
  ask(request: SessionRequest): Answer
  /** Runs a text that begins or ends a transaction. Null for every other text. */
  control(sql: string): (() => Answer) | null
  /** Begins a transaction for several requests if they need one. Then the caller ends it. */
  beginAlone(): boolean
  isUsable(): boolean
  inTransaction(): boolean
  close(): void
}

/** The I/O thread limits how long the server may stay silent. This limits how long the I/O thread may. */
const graceMs = 20_000

/** A read in batches begins its transaction itself. */
const needsSettings = ['execute', 'each', 'script']

const lostMessage = 'the connection was lost in this transaction'

type Requests = ReturnType<typeof openRequests>

/** Requests without a transaction. Calls `lost` when the connection ended. */
function openRequests(server: ServerOptions, lost: () => void) {
  const io = ioThread()
  const id = io.connect()
  let isOpen = true
  return {
    isOpen: () => isOpen,
    send(request: Request): Answer {
      if (!isOpen) throw new StoreError('closed', 'the connection is closed')
      const answer = io.ask(id, request, server.deadlineMs + graceMs)
      if (!('code' in answer)) return answer
      if (endsConnection(answer.code)) lost()
      throw new StoreError(kindOf(answer.code), explained(answer))
    },
    close() {
      if (!isOpen) return
      isOpen = false
      try {
        io.ask(id, { do: 'close' }, graceMs)
      } finally {
        io.disconnect()
      }
    },
  }
}

/** The transaction of a connection. Its requests run on the connection that began it, or fail. */
function transactions(server: ServerOptions) {
  let transactionGeneration: number | null = null // the generation of the connection that has the transaction
  let isLost = false // that connection ended
  const requests: Requests = openRequests(server, () => (isLost = transactionGeneration !== null))

  function send(request: SessionRequest, generation = transactionGeneration): Answer {
    if (isLost) throw new StoreError('unavailable', lostMessage)
    return requests.send({ ...request, within: generation } as Request)
  }

  /** A text of several statements may fail after its first one has begun the transaction. */
  function begin(sql: string): Answer {
    try {
      const answer = send({ do: 'script', sql })
      transactionGeneration = answer.generation
      return answer
    } catch (error) {
      if (requests.isOpen() && sql.includes(';')) rollBack()
      throw error
    }
  }

  function rollBack(): void {
    try {
      send({ do: 'script', sql: 'ROLLBACK' }, null)
    } catch {
      // Without a connection there is no transaction.
    }
  }

  /** A failed or lost transaction ends without the server. COMMIT then fails, so that nobody acknowledges it. */
  function end(keyword: 'COMMIT' | 'ROLLBACK'): Answer {
    const wasLost = isLost
    const within = transactionGeneration
    isLost = false
    transactionGeneration = null
    if (wasLost && keyword === 'COMMIT') throw new StoreError('unavailable', lostMessage)
    if (wasLost) return { columns: [], rows: [], changes: 0, command: keyword, generation: 0 }
    const answer = send({ do: 'script', sql: keyword }, within)
    if (answer.command !== keyword)
      throw new StoreError('internal', 'a statement of the transaction failed, so it was rolled back')
    return answer
  }

  const inTransaction = () => transactionGeneration !== null
  return {
    send,
    begin,
    end,
    inTransaction,
    isUsable: () => requests.isOpen() && !isLost,
    close: requests.close,
  }
}

export function openSession(server: ServerOptions): Session {
  const { send, begin, end, inTransaction, isUsable, close } = transactions(server)

  /**
   * A pooler gives each transaction another connection, so each begins with the settings and nothing runs outside of
   * one. Returns whether this began one.
   */
  function beginAlone(): boolean {
    if (server.settings === '' || inTransaction()) return false
    begin(`BEGIN${server.settings}`)
    return true
  }

  function ask(request: SessionRequest): Answer {
    const isAlone = needsSettings.includes(request.do) && beginAlone()
    try {
      const answer = send(request)
      if (isAlone) end('COMMIT')
      return answer
    } catch (error) {
      if (isAlone && inTransaction()) end('ROLLBACK')
      throw error
    }
  }

  function control(sql: string): (() => Answer) | null {
    const keyword = /^\s*(BEGIN|COMMIT|ROLLBACK)\b/.exec(sql)?.[1]
    // The settings first: further statements of the text may need them.
    if (keyword === 'BEGIN') return () => begin(sql.replace(/^[^;]*/, (first) => first + server.settings))
    return keyword === 'COMMIT' || keyword === 'ROLLBACK' ? () => end(keyword) : null
  }

  return { ask, beginAlone, control, isUsable, inTransaction, close }
}
