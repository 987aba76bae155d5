/** Opens a listener: gives every request its context, deadline, Host check, common headers and log line. */
import { chmodSync, lstatSync, rmSync } from 'node:fs'
import { AppError, retryAfter } from '../errors.ts'
import { newId } from '../ids.ts'
import { startDeadline } from '../clock.ts'
import { limits } from '../limits.ts'
import {
  hostAllowed,
  listenText,
  originAllowed,
  reachableHost,
  type HostRule,
  type ListenAddress,
} from './address.ts'
import { bodyTooLarge } from './body.ts'
import { lingerOf } from './linger.ts'
import { otlpError } from './otlp-answer.ts'
import { addCommonHeaders, errorResponse, limitInFlight } from './response.ts'
import {
  isOtlp,
  pathOf,
  setContext,
  withContext,
  withAbsoluteUrl,
  type RequestContext,
  type Sender,
} from './request.ts'
import { connect } from 'node:net'
import type { Server } from 'bun'
import type { Log } from '../log.ts'
import type { Acceptor } from './connection-limit.ts'
import type { TlsPair } from './tls.ts'

export interface ListenOptions {
  handle(request: Request): Promise<Response> // never rejects
  kind: 'main' | 'ingest' | 'metrics' | 'jobs'
  /** Called for every response with the route's pattern (none when refused earlier), method, status, milliseconds. */
  observe(route: string | undefined, method: string, status: number, ms: number): void
  at: ListenAddress
  basePath: string // stripped from every path; '' when served at the root
  hostRule: HostRule
  sender(peer: string | null, headers: Headers): Sender // null: over a unix socket
  stopping(): boolean
  /** Whether requests for this path are refused while memory is low. */
  isShed(method: string, path: string): boolean
  requestDeadlineMs?: number // only tests use another than that of `limits.ts`
  inFlight: RequestContext['inFlight']
  log: Log
  tls: TlsPair | null
}

export interface Listener extends Acceptor {
  url: string // as printed: http://host:port, or unix:path
  link: string // the URL for other machines, unless a proxy provides another
  /**
   * Uses another certificate from the next connection on. Reopens the port, because `Bun.serve` cannot replace a
   * certificate in place; connections are refused or reset for about 1 ms. Requests and streams in flight continue.
   */
  useCertificate(tls: TlsPair): void
  /** Refuses new requests, waits for those in flight until the deadline, then closes their connections. */
  stop(deadlineMs: number): Promise<void>
}

/** Throws an error that names the address when it cannot listen there. */
export function listen(options: ListenOptions): Listener {
  const { host, port, unix } = options.at
  if (unix !== undefined) return listenOnSocket(options, unix)
  const open = (listenPort: number, tls: TlsPair | null) =>
    bind({ host, port: listenPort }, serveOptions(options, listenPort, tls))
  let server = open(port, options.tls)
  const boundPort = server.port ?? port
  let currentTls = options.tls
  let isPaused = false
  const drained = drains(options.log)
  const urlOf = (name: string) =>
    `${options.tls === null ? 'http' : 'https'}://${listenText({ host: name, port: boundPort })}${options.basePath}`
  return {
    url: urlOf(host),
    link: urlOf(reachableHost(host)),
    pause() {
      drained.add(server)
      isPaused = true
    },
    resume() {
      if (isPaused) server = open(boundPort, currentTls)
      isPaused = false
    },
    useCertificate(tls) {
      if (isPaused) {
        currentTls = tls
        return
      }
      drained.add(server)
      try {
        server = open(boundPort, tls)
        currentTls = tls
      } catch (error) {
        server = open(boundPort, currentTls)
        throw error
      }
    },
    async stop(deadlineMs) {
      drained.add(server)
      await drained.end(deadlineMs)
    },
  }
}

/** Without a request for this long, connections that have sent half of a request's head are all that is left. */
const quietMs = 1_000
const lookMs = 100

/** Listeners that accept no more connections, and may still have requests in flight. */
function drains(log: Log) {
  const ends = new Map<Server<undefined>, Promise<void>>()
  const pending = () => ends.keys().reduce((sum, server) => sum + server.pendingRequests, 0)
  const endAll = () => Promise.all(Array.from(ends.keys(), (server) => server.stop(true)))
  return {
    add(server: Server<undefined>): void {
      const end = server.stop().finally(() => ends.delete(server))
      ends.set(server, end)
    },
    /** Resolves when all have ended, at the deadline by force. */
    async end(deadlineMs: number): Promise<void> {
      const endMs = performance.now() + deadlineMs
      const drained = Promise.all(ends.values()).then(() => 'drained' as const)
      let busyMs = performance.now()
      while (performance.now() < endMs) {
        const look = Bun.sleep(Math.min(lookMs, endMs - performance.now()))
        if ((await Promise.race([drained, look])) === 'drained') return
        if (pending() > 0) busyMs = performance.now()
        // Bun waits for the rest of a head for up to 12 s.
        else if (performance.now() > busyMs + quietMs) void endAll()
      }
      log.warn('requests_ended', { requests: pending(), afterMs: deadlineMs })
      await endAll()
    },
  }
}

/** Access is governed by the mode of the socket and its folder: add the proxy's user to our group. */
const socketMode = 0o660

/** A socket has no TLS because nothing can listen in. Its path must be free (`clearSocket`). */
function listenOnSocket(options: ListenOptions, unix: string): Listener {
  const server = bind(options.at, { unix, ...answering({ ...options, tls: null }) })
  chmodSync(unix, socketMode)
  const drained = drains(options.log)
  return {
    url: `unix:${unix}`,
    link: `http://localhost${options.basePath}`,
    useCertificate() {},
    // Only the proxy connects here, and it has its own limit.
    pause() {},
    resume() {},
    async stop(deadlineMs) {
      drained.add(server)
      await drained.end(deadlineMs)
      rmSync(unix, { force: true })
    },
  }
}

function serveOptions(
  options: ListenOptions,
  port: number,
  tls: TlsPair | null,
): Bun.Serve.Options<undefined> {
  return {
    hostname: options.at.host,
    port,
    ...(tls === null ? {} : { tls: { cert: tls.cert, key: tls.key } }),
    idleTimeout: 30,
    reusePort: false, // a second server on the same port must fail, not share the traffic
    ...answering(options),
  }
}

function answering(options: ListenOptions) {
  return {
    development: false as const,
    maxRequestBodySize: limits.parserBodyBytesMax,
    fetch: (request: Request, self: Server<undefined>) => answer(beginExchange(options, request, self)),
    error: () =>
      new Response('{"error":"internal_error","message":"Internal server error."}', {
        status: 500,
        headers: { 'content-type': 'application/json' },
      }),
  }
}

/** `Bun.serve` with an error message that names the address and the cause. */
function bind(address: ListenAddress, options: Bun.Serve.Options<undefined>): Server<undefined> {
  try {
    return Bun.serve(options)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    const reason = code === 'EADDRINUSE' ? 'the port is in use' : String(code ?? error)
    throw new Error(`cannot listen on ${listenText(address)}: ${reason}`, { cause: error })
  }
}

/** One request and its response. Closures and promises for them would cost more than checking an event does. */
interface Exchange extends RequestContext {
  options: ListenOptions
  received: Request
  request: Request // with an absolute URL
  server: Server<undefined>
  known: Sender | null
  isLate: boolean
}

function sender(this: Exchange): Sender {
  return (this.known ??= senderOf(this))
}

function senderOf({ options, received, request, server }: Exchange): Sender {
  const peer = options.at.unix === undefined ? (server.requestIP(received)?.address ?? '') : null
  const { address, secure } = options.sender(peer, request.headers)
  return { address, secure: secure || options.tls !== null }
}

function keepOpen(this: Exchange): void {
  this.server.timeout(this.received, 0)
}

function beginExchange(options: ListenOptions, received: Request, server: Server<undefined>): Exchange {
  const request = withAbsoluteUrl(received)
  const exchange: Exchange = {
    id: newId('req'),
    startedMs: performance.now(),
    sender,
    listener: options.kind,
    inFlight: options.inFlight,
    writeError: otlpError,
    keepOpen,
    options,
    received,
    request,
    server,
    known: null,
    isLate: false,
  }
  setContext(request, exchange)
  return exchange
}

function answer(exchange: Exchange): Response | Promise<Response> {
  const { options, request, id } = exchange
  const refused = stripBasePath(request, options.basePath, id) ?? refusal(options, request, exchange)
  return refused === null ? handled(exchange) : afterLinger(exchange, finish(exchange, refused))
}

/** The response, once its connection can be closed without a reset. */
function afterLinger({ request }: Exchange, response: Response): Response | Promise<Response> {
  const lingered = lingerOf(request, response)
  return lingered === undefined ? response : lingered.then(() => response)
}

/** Bun's idle timeout does not cover a handler that has read its body, so every handler gets a deadline. */
function handled(exchange: Exchange): Promise<Response> {
  const { options, request, id } = exchange
  return new Promise((resolve, reject) => {
    const deadline = startDeadline(options.requestDeadlineMs ?? limits.requestDeadlineMs, () => {
      exchange.isLate = true
      // The body may still be arriving.
      const headers = { ...retryAfter(), connection: 'close' }
      const error = new AppError('overloaded', 'The request timed out.', { headers })
      resolve(finish(exchange, errorResponse(error, id, request)))
    })
    const ended = (response: Response): void => {
      deadline.end()
      try {
        if (!exchange.isLate) resolve(afterLinger(exchange, finish(exchange, response)))
      } catch (error) {
        reject(error)
      }
    }
    handleWithin(options, request, exchange).then(ended, reject)
  })
}

function finish(exchange: Exchange, rawResponse: Response): Response {
  const { options, request, id, startedMs, route } = exchange
  exchange.body?.release()
  const response = limitInFlight(rawResponse, exchange)
  addCommonHeaders(response, id)
  if (options.tls !== null) response.headers.set('strict-transport-security', 'max-age=31536000')
  const durationMs = Math.round((performance.now() - startedMs) * 10) / 10
  options.observe(route, request.method, response.status, durationMs)
  const isFailure = response.status >= 500
  if (isFailure || options.log.isDebug()) {
    const method = request.method
    const path = loggedPath(request)
    const { address } = exchange.sender()
    const line = { requestId: id, method, path, status: response.status, durationMs, address }
    if (isFailure) options.log.warn('request', line)
    else options.log.debug('request', line)
  }
  return response
}

/** The token of a share link is a secret. */
function loggedPath(request: Request): string {
  const path = pathOf(request)
  return path.startsWith('/share/') ? '/share/…' : path
}

/** Ingest writes no audit entries, and is too frequent to pay for the async context and for the sender's address. */
function handleWithin(options: ListenOptions, request: Request, context: RequestContext): Promise<Response> {
  const path = pathOf(request)
  if (path.startsWith('/v1/sdk/') || isOtlp(request.method, path)) return options.handle(request)
  context.sender() // an entry may be written when the request is over
  return withContext(context, () => options.handle(request))
}

const ingestPaths = /^\/(?:v1\/sdk\/.*|sdk\/.*|v1\/limits|healthz|readyz)$/

/** Refuses before routing: while stopping, while memory is low, huge bodies, other listeners' paths, unknown Hosts. */
function refusal(options: ListenOptions, request: Request, context: RequestContext): Response | null {
  const error = refusalError(options, request)
  return error === null ? null : errorResponse(error, context.id, request)
}

function refusalError(options: ListenOptions, request: Request): AppError | null {
  const path = pathOf(request)
  if (options.stopping()) {
    const headers = { ...retryAfter(), connection: 'close' }
    return new AppError('shutting_down', 'The server is shutting down.', { headers })
  }
  if (options.isShed(request.method, path)) {
    const headers = { ...retryAfter(), connection: 'close' } // the body is not read
    return new AppError('overloaded', 'The server is low on memory. Try again later.', { headers })
  }
  if (Number(request.headers.get('content-length') ?? 0) > limits.requestBodyBytesMax)
    return bodyTooLarge(limits.requestBodyBytesMax)
  if (options.kind === 'ingest' && !isOtlp(request.method, path) && !ingestPaths.test(path)) {
    return new AppError('not_found', 'This listener only serves ingest and the client package.')
  }
  if (options.kind === 'jobs' && !['/healthz', '/readyz', '/metrics'].includes(path)) {
    return new AppError('not_found', 'This node runs jobs and serves no data.')
  }
  if (options.kind === 'metrics' && path !== '/metrics') {
    return new AppError('not_found', 'This listener only serves /metrics.')
  }
  if (isMcp(path) && !originAllowed(request.headers.get('origin'), options.hostRule)) {
    const message = 'Requests to /mcp from pages of other sites are refused.'
    return new AppError('forbidden', message, { reason: 'wrong_origin' })
  }
  if (isDashboard(path) && !hostAllowed(request.headers.get('host'), options.hostRule)) {
    return new AppError('forbidden', 'The dashboard is not available under this host name.', {
      hint: 'Start the server with --public-url or --allowed-host set to this host.',
    })
  }
  return null
}

/** The router accepts a trailing slash too. */
const isMcp = (path: string): boolean => path === '/mcp' || path === '/mcp/'

/** Everything except the public API, assistants, the client package, health and metrics. */
function isDashboard(path: string): boolean {
  return !/^\/(?:v1|sdk)\//.test(path) && !isMcp(path) && !['/healthz', '/readyz', '/metrics'].includes(path)
}

/** Removes a socket file that a crash left behind; throws when anything else is at the path. */
export async function clearSocket(path: string): Promise<void> {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return
  if (!stats.isSocket()) throw new Error(`cannot listen on unix:${path}: the path exists and is not a socket`)
  if (await answers(path))
    throw new Error(`cannot listen on unix:${path}: another process is listening there`)
  rmSync(path, { force: true })
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

/** Supervisors request these from the process itself, not through the proxy. */
const unprefixed = new Set(['/healthz', '/readyz', '/metrics'])

/** Strips the base path from the request's URL. Returns a response when the path is not below it. */
function stripBasePath(request: Request, basePath: string, requestId: string): Response | null {
  if (basePath === '') return null
  const path = pathOf(request)
  if (unprefixed.has(path)) return null
  if (path === basePath) {
    const location = `${basePath}/${new URL(request.url).search}`
    return new Response(null, { status: 308, headers: { location } })
  }
  if (!path.startsWith(`${basePath}/`)) {
    const hint = `This appliance is served under ${basePath}/.`
    return errorResponse(new AppError('not_found', 'No such page or endpoint.', { hint }), requestId)
  }
  const start = request.url.indexOf(basePath, request.url.indexOf('://') + 3)
  const value = request.url.slice(0, start) + request.url.slice(start + basePath.length)
  // The same object is reused because its body and signal are bound to the connection.
  Object.defineProperty(request, 'url', { value })
  return null
}
