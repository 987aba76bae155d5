/** A webhook receiver in its own process: behaves by path, well or badly, and reports every request. */
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { run } from './process.ts'
import { report, reportFile } from './report-file.ts'

/** One request as the receiver saw it. */
export interface Received {
  path: string // with the query
  headers: Record<string, string>
  body: string
  atMs: number
}

export interface Receiver extends AsyncDisposable {
  pid: number
  /** `http://127.0.0.1:<port>`. */
  url: string
  /** Requests so far, of one path prefix or all. */
  received(prefix?: string): Received[]
  /** Resolves with the requests below `prefix` when there are at least `count`. */
  wait(prefix: string, count: number, timeoutMs?: number): Promise<Received[]>
  signal(name: NodeJS.Signals): void
}

/**
 * Starts the process. It ends with `await using` or with the tests. With `host` 0.0.0.0 each address of 127.0.0.0/8 is
 * a separate origin.
 */
export async function startReceiver(host = '127.0.0.1'): Promise<Receiver> {
  const reports = reportFile()
  const command = [process.execPath, join(import.meta.dir, 'receiver.ts'), reports.path, host]
  const child = run(command, { cwd: import.meta.dir, env: { PATH: process.env.PATH ?? '' } })
  const port = await child.line((line) => /^listening on (\d+)$/.exec(line)?.[1] ?? null, 10_000)
  const parsed: Received[] = []
  const received = (prefix = '/'): Received[] => {
    for (const line of reports.lines().slice(parsed.length)) parsed.push(JSON.parse(line) as Received)
    return parsed.filter(({ path }) => path.startsWith(prefix))
  }
  return {
    pid: child.pid,
    url: `http://127.0.0.1:${port}`,
    received,
    async wait(prefix, count, timeoutMs = 10_000) {
      const deadlineMs = performance.now() + timeoutMs
      for (;;) {
        const deliveries = received(prefix)
        if (deliveries.length >= count) return deliveries
        if (performance.now() > deadlineMs) {
          throw new Error(`${deliveries.length} of ${count} requests below ${prefix} within ${timeoutMs} ms`)
        }
        await Bun.sleep(20)
      }
    },
    signal: child.signal,
    async [Symbol.asyncDispose]() {
      child.signal('SIGKILL')
      await child.exited
      reports.remove()
    },
  }
}

type Behaviour = (socket: Socket, received: Received, argument: string) => void

const requestCounts = new Map<string, number>() // requests by path and webhook-id

const answer = (socket: Socket, status: number, headers: string[] = [], body = `answered ${status}`) => {
  const head = [
    `HTTP/1.1 ${status} X`,
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
    ...headers,
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

const repeat = (socket: Socket, text: string, everyMs: number) => {
  const timer = setInterval(() => socket.write(text), everyMs)
  socket.once('close', () => clearInterval(timer))
}

let bombBody: Uint8Array | null = null // made on first use, because it takes a second

/** By the first part of the path; the second is the argument. */
const behaviours: Record<string, Behaviour> = {
  ok: (socket) => answer(socket, 200),
  status: (socket, { path }, argument) => {
    const query = new URL(path, 'http://x').searchParams
    answer(
      socket,
      Number(argument),
      [...query].map(([name, value]) => `${name}: ${value}`),
    )
  },
  /** Fails the first n attempts of a message, then accepts it. */
  flaky: (socket, { path, headers }, argument) => {
    const key = `${path} ${headers['webhook-id']}`
    const times = (requestCounts.get(key) ?? 0) + 1
    requestCounts.set(key, times)
    answer(socket, times <= Number(argument) ? 500 : 200)
  },
  /** Hangs on the first attempt of a message, then accepts it. */
  'flaky-hang': (socket, { headers }) => {
    const key = `flaky-hang ${headers['webhook-id']}`
    if (requestCounts.has(key)) answer(socket, 200)
    requestCounts.set(key, 1)
  },
  slow: (socket, _received, argument) => void setTimeout(() => answer(socket, 200), Number(argument)),
  hang: () => {},
  'drip-head': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\n')
    repeat(socket, 'x-more: y\r\n', 200)
  },
  'drip-body': (socket, _received, argument) => {
    socket.write(`HTTP/1.1 ${argument || '200'} X\r\n\r\n`)
    repeat(socket, 'x', 200)
  },
  endless: (socket, _received, argument) => {
    const chunk = 'x'.repeat(65_536)
    const pour = () => {
      while (!socket.destroyed && socket.write(chunk)) continue
    }
    socket.on('drain', pour)
    socket.write(`HTTP/1.1 ${argument || '200'} X\r\n\r\n`)
    pour()
  },
  bomb: (socket, _received, argument) => {
    bombBody ??= Bun.gzipSync(Buffer.alloc(200 * 1024 * 1024))
    const body = bombBody
    socket.write(
      `HTTP/1.1 ${argument || '200'} X\r\ncontent-encoding: gzip\r\ncontent-length: ${body.length}\r\n\r\n`,
    )
    socket.end(body)
  },
  continue: (socket) => repeat(socket, 'HTTP/1.1 100 Continue\r\n\r\n', 100),
  /** Answers with exactly these bytes, in base64url, in pieces of one byte each when the path ends with /bytes. */
  raw: (socket, { path }, argument) => {
    const bytes = Buffer.from(argument, 'base64url')
    if (!path.endsWith('/bytes')) return void socket.end(bytes)
    socket.setNoDelay(true)
    for (const byte of bytes) socket.write(Uint8Array.of(byte))
    socket.end()
  },
  /** The number of headers in each answer. */
  headers: (socket, _received, argument) =>
    answer(
      socket,
      200,
      Array.from({ length: Number(argument) - 2 }, (_, index) => `x-header-${index}: ${index}`),
    ),
  /** Answers 200 and never ends its head. */
  'endless-head': (socket) => {
    const chunk = `x-more: ${'y'.repeat(1_000)}\r\n`.repeat(64)
    const pour = () => {
      while (!socket.destroyed && socket.write(chunk)) continue
    }
    socket.on('drain', pour)
    socket.write('HTTP/1.1 200 OK\r\n')
    pour()
  },
  garbage: (socket) => void socket.end('hello there\r\n\r\n'),
  reset: (socket) => void socket.resetAndDestroy(),
  close: (socket) => void socket.end(),
  short: (socket) => void socket.end('HTTP/1.1 500 X\r\ncontent-length: 100\r\n\r\nabc'),
}

function serve(socket: Socket): void {
  let text = ''
  let isDone = false
  socket.on('error', () => socket.destroy())
  socket.on('data', (data) => {
    if (isDone) return
    text += data.toString('latin1')
    const end = text.indexOf('\r\n\r\n')
    if (end === -1) return
    const [requestLine = '', ...lines] = text.slice(0, end).split('\r\n')
    const headers = Object.fromEntries(
      lines.map((line) => line.split(/: (.*)/s).slice(0, 2) as [string, string]),
    )
    const lower = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
    )
    const body = text.slice(end + 4)
    if (body.length < Number(lower['content-length'] ?? 0)) return
    isDone = true
    const path = requestLine.split(' ')[1] ?? ''
    const received = { path, headers: lower, body: Buffer.from(body, 'latin1').toString(), atMs: Date.now() }
    report(process.argv[2]!, received)
    const [, name = '', argument = ''] = path.split(/[/?]/)
    const behaviour = behaviours[name]
    if (behaviour) behaviour(socket, received, argument)
    else answer(socket, 404)
  })
}

if (import.meta.main) {
  const server = createServer(serve)
  server.listen(0, process.argv[3], () => {
    const address = server.address()
    if (address !== null && typeof address === 'object')
      process.stdout.write(`listening on ${address.port}\n`)
  })
}
