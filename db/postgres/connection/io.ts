/** The I/O thread: runs the driver of PostgreSQL for a thread that blocks until the answer is there. */
import { openClient, type Client } from './client.ts'
import { refusedCode, type Failure } from './failure.ts'
import type { Answer, AnswerMessage, Channel, Request, RequestMessage } from './wire.ts'

declare const self: Worker

const versionQuery = `SELECT current_setting('server_version_num')`

const clients = new Map<number, Client>()

self.onmessage = ({ data }: MessageEvent<Channel | null>) => {
  if (data === null) {
    setTimeout(() => process.exit(0)) // ends this thread only
    return
  }
  serve(data)
}

function serve({ port, signal }: Channel): void {
  const answers = new Int32Array(signal)
  const send = (message: AnswerMessage) => {
    port.postMessage(message)
    Atomics.add(answers, 0, 1)
    Atomics.notify(answers, 0)
  }
  // `port.on` is not enough: a port that came by a message of the web's kind calls `onmessage` alone.
  ;(port as unknown as Worker).onmessage = ({ data }: MessageEvent<RequestMessage>) => {
    const [id, connection, request] = data
    void handle(connection, request).then(
      (answer) => send([id, answer]),
      (error: unknown) => send([id, null, failureOf(error)]),
    )
  }
}

async function handle(connection: number, request: Request): Promise<Answer> {
  if (request.do === 'open') {
    const client = openClient(request.options)
    clients.set(connection, client)
    return client.handle({ do: 'script', sql: versionQuery, within: null })
  }
  const client = clients.get(connection)
  if (client === undefined) throw Object.assign(new Error('the connection is closed'), { code: refusedCode })
  if (request.do === 'close') clients.delete(connection)
  return client.handle(request)
}

function failureOf(error: unknown): Failure {
  const code = error instanceof Error && 'code' in error ? String(error.code) : refusedCode
  return { code, message: error instanceof Error ? error.message : String(error) }
}
