/**
 * A load generator on raw sockets: keep-alive connections that each send the next request after a response, or at their
 * own pace.
 */

export interface LoadOptions {
  url: string // of the server; its host and port are used
  connections: number
  seconds: number
  /** Of all connections together: each waits for its time. Default: as fast as possible. */
  requestsPerSecond?: number
  /** The bytes of the next complete HTTP request; null ends this connection's work. */
  next(): Uint8Array | null
  /** Receives every request without a 2xx response, for example to send it again. */
  refused?(request: Uint8Array): void
}

export interface LoadResult {
  requests: number // answered 2xx
  refused: number // answered otherwise
  refusedP99Ms: number
  seconds: number
  p50Ms: number
  p99Ms: number
  longestMs: number
}

/** The bytes of one ingest post. */
export function ingestRequest(path: string, key: string, body: string): Uint8Array {
  const bytes = Buffer.from(body)
  const head =
    `POST ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\n` +
    `content-type: application/json\r\ncontent-length: ${bytes.length}\r\n\r\n`
  return Buffer.concat([Buffer.from(head), bytes])
}

/**
 * Runs for the given time, which begins when all connections are open, because opening thousands blocks this process
 * for most of a second. Rejects when a connection closes by itself.
 */
export async function load(options: LoadOptions): Promise<LoadResult> {
  const { hostname, port } = new URL(options.url)
  const latencies: number[] = []
  const refusals: number[] = []
  const count = (status: number, tookMs: number, request: Uint8Array) => {
    if (status >= 200 && status < 300) latencies.push(tookMs)
    else {
      refusals.push(tookMs)
      options.refused?.(request)
    }
  }
  const { requestsPerSecond = Infinity, connections, next } = options
  const paceMs = (1_000 * connections) / requestsPerSecond
  const connect = () => openConnection({ hostname, port: Number(port), next, paceMs, count })
  const opened = await Promise.all(Array.from({ length: connections }, connect))
  const startedMs = performance.now()
  const endMs = startedMs + options.seconds * 1_000
  await Promise.all(opened.map((run, index) => run(startedMs + (index / connections) * paceMs, endMs)))
  const seconds = (performance.now() - startedMs) / 1_000
  return {
    requests: latencies.length,
    refused: refusals.length,
    seconds,
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
    longestMs: quantile(latencies, 1),
    refusedP99Ms: quantile(refusals, 0.99),
  }
}

/** 0 without responses. */
export function quantile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
}

interface ConnectionOptions {
  hostname: string
  port: number
  paceMs: number // at least, between two requests
  next(): Uint8Array | null
  count(status: number, tookMs: number, request: Uint8Array): void
}

/** Sends from the first to the second time, and is fulfilled with the last response. */
type Run = (firstMs: number, endMs: number) => Promise<void>

async function openConnection({ hostname, port, paceMs, next, count }: ConnectionOptions): Promise<Run> {
  const completion = Promise.withResolvers<void>()
  completion.promise.catch(() => {}) // `run` reports the failure, also when it comes before the call
  let dueMs = 0
  let endMs = 0
  let sentMs = 0
  let finished = false
  let buffer = ''
  let requestBytes: Uint8Array = new Uint8Array()
  let unsent: Uint8Array | null = null
  const flush = (socket: Bun.Socket) => {
    if (!unsent) return
    const written = socket.write(unsent)
    unsent = written < unsent.length ? unsent.subarray(Math.max(0, written)) : null
  }
  const sendWhenDue = (socket: Bun.Socket) => {
    const waitMs = dueMs - performance.now()
    if (waitMs > 0) setTimeout(() => send(socket), waitMs)
    else send(socket)
  }
  const send = (socket: Bun.Socket) => {
    dueMs += paceMs
    const request = performance.now() < endMs ? next() : null
    if (!request) {
      finished = true
      socket.end()
      return
    }
    sentMs = performance.now()
    requestBytes = request
    unsent = request
    flush(socket)
  }
  const socket = await Bun.connect({
    hostname,
    port,
    socket: {
      drain: flush,
      data(socket, bytes) {
        buffer += bytes.toString('latin1')
        const bodyAt = buffer.indexOf('\r\n\r\n')
        if (bodyAt === -1) return
        const length = Number(/\r\ncontent-length: (\d+)/i.exec(buffer)?.[1] ?? 0)
        if (buffer.length < bodyAt + 4 + length) return
        count(Number(buffer.slice(9, 12)), performance.now() - sentMs, requestBytes)
        buffer = buffer.slice(bodyAt + 4 + length)
        sendWhenDue(socket)
      },
      close: () =>
        finished ? completion.resolve() : completion.reject(new Error('the server ended a connection')),
      error: (_, error) => completion.reject(error),
    },
  })
  return (firstMs, until) => {
    dueMs = firstMs
    endMs = until
    sendWhenDue(socket)
    return completion.promise
  }
}
