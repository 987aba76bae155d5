/** The wire between a thread that blocks and the I/O thread that runs the driver for it. */
import { MessageChannel, receiveMessageOnPort, type MessagePort } from 'node:worker_threads'
import { StoreError } from '../../contract/errors.ts'
import type { SqlValue } from '../../sql/database.ts'
import type { Failure } from './failure.ts'
import type { ServerOptions } from './options.ts'

/** `within`: the generation of the connection on which the transaction began, null outside of one. */
export type Request =
  | { do: 'open'; options: ServerOptions }
  | { do: 'execute'; sql: string; params: SqlValue[]; reused: boolean; within: number | null }
  | { do: 'each'; sql: string; rows: SqlValue[][]; within: number | null }
  | { do: 'script'; sql: string; within: number | null }
  | { do: 'first'; sql: string; params: SqlValue[]; size: number; within: number | null }
  | { do: 'more' }
  | { do: 'stop' }
  | { do: 'close' }

export interface Answer {
  columns: string[]
  rows: unknown[][]
  /** Rows that the statement changed or returned. */
  changes: number
  /** The command tag of the last statement: `BEGIN`, `COMMIT` and so on. */
  command: string
  generation: number
}

/** The first message to the thread. Each further one is a request, each answered once. */
export interface Channel {
  port: MessagePort
  signal: SharedArrayBuffer
}

export type RequestMessage = [id: number, connection: number, request: Request]
export type AnswerMessage = [id: number, answer: Answer | null, failure?: Failure]

interface IoThread {
  /** Blocks the calling thread until the answer is there. */
  ask(connection: number, request: Request, limitMs: number): Answer | Failure
  connect(): number
  /** Ends the thread with the last of its connections. */
  disconnect(): void
}

let running: IoThread | null = null

/** The I/O thread of the calling thread. */
export function ioThread(): IoThread {
  running ??= startIo()
  return running
}

function startIo(): IoThread {
  const { port1: port, port2 } = new MessageChannel()
  const signal = new SharedArrayBuffer(4)
  const answers = new Int32Array(signal)
  const worker = new Worker(ioUrl(import.meta.url), { name: 'postgres', ref: false })
  worker.postMessage({ port: port2, signal } satisfies Channel, [port2 as never])
  let connections = 0
  let lastConnection = 0
  let lastId = 0

  function ask(connection: number, request: Request, limitMs: number): Answer | Failure {
    const id = ++lastId
    const endMs = performance.now() + limitMs
    let answerCount = Atomics.load(answers, 0)
    port.postMessage([id, connection, request] satisfies RequestMessage)
    for (;;) {
      const received = receiveMessageOnPort(port) as { message: AnswerMessage } | undefined
      if (received === undefined) {
        const leftMs = endMs - performance.now()
        if (leftMs <= 0) throw new StoreError('unavailable', 'the I/O thread does not answer')
        Atomics.wait(answers, 0, answerCount, leftMs)
        answerCount = Atomics.load(answers, 0)
        continue
      }
      const [answered, answer, failure] = received.message
      if (answered !== id) continue // of a request whose caller no longer waited
      if (failure !== undefined) return failure
      if (answer !== null) return answer
    }
  }

  return {
    ask,
    connect() {
      connections += 1
      return ++lastConnection
    },
    disconnect() {
      connections -= 1
      if (connections > 0) return
      running = null
      worker.postMessage(null)
    },
  }
}

/** Beside this file as a source. In the executable and in bundles entries keep their path below the root. */
function ioUrl(moduleUrl: string): string {
  if (moduleUrl.endsWith('/db/postgres/connection/wire.ts')) return new URL('./io.ts', moduleUrl).href
  const inFolder = moduleUrl.search(/\/db\/(?:postgres|copy)\//)
  const root = moduleUrl.slice(0, inFolder < 0 ? moduleUrl.lastIndexOf('/') : inFolder)
  return `${root}/db/postgres/connection/io.js`
}
