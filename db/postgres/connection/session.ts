/** A session of a thread that blocks: its requests, and the transaction that they belong to. */
import { StoreError } from '../../contract/errors.ts'
import { endsConnection, kindOf } from './failure.ts'
import type { ServerOptions } from './options.ts'
import { ioThread, type Answer, type Request } from './wire.ts'

/** What a request belongs to is added by the session. */
type SessionRequest = Request extends infer One ? (One extends Request ? Omit<One, 'within'> : never) : never

export interface Session {
  ask(request: SessionRequest): Answer
  /** A text that begins or ends a transaction, or null for every other text. */
  control(sql: string): (() => Answer) | null
  isUsable(): boolean
  inTransaction(): boolean
  close(): void
}

/** The I/O thread limits how long the server may stay silent. This limits how long the I/O thread may. */
const graceMs = 20_000

const lostMessage = 'the connection was lost in this transaction'

export function openSession(server: ServerOptions): Session {
  const io = ioThread()
  const id = io.connect()
  const limitMs = server.deadlineMs + graceMs
  let isOpen = true
  let begun: number | null = null // the generation of the connection that has the transaction
  let isLost = false // that connection ended

  function ask(request: SessionRequest, within = begun): Answer {
    if (!isOpen) throw new StoreError('closed', 'the connection is closed')
    if (isLost) throw new StoreError('unavailable', lostMessage)
    const answer = io.ask(id, { ...request, within } as Request, limitMs)
    if (!('code' in answer)) return answer
    if (begun !== null && endsConnection(answer.code)) isLost = true
    throw new StoreError(kindOf(answer.code), `${answer.message} (${answer.code})`)
  }

  function begin(sql: string): Answer {
    try {
      const answer = ask({ do: 'script', sql })
      begun = answer.generation
      return answer
    } catch (error) {
      // The transaction may have begun before a later statement of the same text failed.
      if (isOpen) io.ask(id, { do: 'script', sql: 'ROLLBACK', within: null }, limitMs)
      throw error
    }
  }

  /** A failed or lost transaction ends without the server. COMMIT then fails, so that nobody acknowledges it. */
  function end(sql: string, isCommit: boolean): Answer {
    const [wasLost, within] = [isLost, begun]
    isLost = false
    begun = null
    if (wasLost && isCommit) throw new StoreError('unavailable', lostMessage)
    if (wasLost) return { columns: [], rows: [], changes: 0, command: 'ROLLBACK', generation: 0 }
    const answer = ask({ do: 'script', sql }, within)
    if (isCommit && answer.command !== 'COMMIT')
      throw new StoreError('internal', 'a statement of the transaction failed, so it was rolled back')
    return answer
  }

  return {
    ask,
    control(sql) {
      const keyword = /^\s*(BEGIN|COMMIT|ROLLBACK)\b/.exec(sql)?.[1]
      if (keyword === undefined) return null
      return () => (keyword === 'BEGIN' ? begin(sql) : end(sql, keyword === 'COMMIT'))
    },
    isUsable: () => isOpen && !isLost,
    inTransaction: () => begun !== null,
    close() {
      if (!isOpen) return
      isOpen = false
      io.ask(id, { do: 'close' }, graceMs)
      io.disconnect()
    },
  }
}
