/** Opens a listener: gives each request its context, a deadline, the Host check, common headers and a log line. */
import { chmodSync, lstatSync, rmSync } from 'node:fs'
import { AppError, retryAfter } from '../errors.ts'
import { newId } from '../ids.ts'
import { limits } from '../limits.ts'
import { listenText, reachableHost, type ListenAddress } from './address.ts'
import { addCommonHeaders, counted, errorResponse } from './response.ts'
import { takeBasePath } from './base-path.ts'
import { pathOf, setContext, withContext, withWholeUrl, type RequestContext } from './request-context.ts'
import { hostAllowed, hostName, type HostRule } from './host-guard.ts'
import { connect } from 'node:net'
import type { Server } from 'bun'
import type { Log } from '../log.ts'
import type { Acceptor } from './connection-limit.ts'
import type { Sender } from './proxy.ts'
import type { TlsPair } from './tls.ts'

export interface ListenOptions {
  handle(request: Request): Promise<Response> // never rejects
  kind: 'main' | 'ingest' | 'metrics'
  /** Hears of every answer: the route's pattern (none when refused before), method, status, milliseconds. */
  observe(route: string | undefined, method: string, status: number, ms: number): void
  at: ListenAddress
  basePath: string // taken off every address; nothing for the whole host
  hostRule: HostRule
  sender(peer: string | null, headers: Headers): Sender // null: over a unix socket
  stopping(): boolean
  /** Whether a request for this path waits until there is memory again. */
  isShed(path: string): boolean
  underWay: RequestContext['underWay']
  log: Log
  tls: TlsPair | null
}

export interface Listener extends Acceptor {
  url: string // as printed: http://host:port, or unix:path
  link: string // under which others open it, when no proxy gives it another address
  /**
   * Shows another certificate from the next connection on: the port is given up and taken again, within a millisecond
   * in which a connection is refused or reset (`Bun.serve` cannot change a certificate in place). Requests and streams
   * in flight go on over the connections they have.
   */
  showCertificate(tls: TlsPair): void
  /** Refuses new requests, waits for those in flight until the deadline, then cuts. */
  stop(deadlineMs: number): Promise<void>
}

/** Throws when the address cannot be taken, with a sentence that says which. */
export function listen(options: ListenOptions): Listener {
  const { host, port, unix } = options.at
  if (unix !== undefined) return listenOnSocket(options, unix)
  const open = (at: number, tls: TlsPair | null) => bind({ host, port: at }, serveOptions(options, at, tls))
  let server = open(port, options.tls)
  const taken = server.port ?? port
  let shownTls = options.tls
  let isPaused = false
  const drained = drains()
  const urlOf = (name: string) =>
    `${options.tls === null ? 'http' : 'https'}://${listenText({ host: name, port: taken })}${options.basePath}`
  return {
    url: urlOf(host),
    link: urlOf(reachableHost(host)),
    pause() {
      drained.add(server.stop())
      isPaused = true
    },
    resume() {
      if (isPaused) server = open(taken, shownTls)
      isPaused = false
    },
    showCertificate(tls) {
      if (isPaused) {
        shownTls = tls
        return
      }
      drained.add(server.stop())
      try {
        server = open(taken, tls)
        shownTls = tls
      } catch (error) {
        server = open(taken, shownTls)
        throw error
      }
    },
    async stop(deadlineMs) {
      drained.add(server.stop())
      await stopped(server, drained.all(), deadlineMs)
    },
  }
}

/** The ends of listeners that were closed and may have requests in flight. */
function drains() {
  const open = new Set<Promise<void>>()
  return {
    add(end: Promise<void>): void {
      open.add(end)
      void end.finally(() => open.delete(end))
    },
    all: () => Promise.all(open),
  }
}

async function stopped(server: Server<undefined>, drained: Promise<unknown>, deadlineMs: number) {
  const late = Bun.sleep(deadlineMs).then(() => 'late' as const)
  if ((await Promise.race([drained, late])) === 'late') await server.stop(true)
}

/** Who may write to the socket stands in its mode and its folder's: the proxy's user is put into our group. */
const socketMode = 0o660

/** A socket has no TLS: nothing on the way could listen in. Its path must be free (`socket-file.ts`). */
function listenOnSocket(options: ListenOptions, unix: string): Listener {
  const server = bind(options.at, { unix, ...answering({ ...options, tls: null }) })
  chmodSync(unix, socketMode)
  return {
    url: `unix:${unix}`,
    link: `http://localhost${options.basePath}`,
    showCertificate() {},
    // Only the proxy opens connections here, and it has a limit of its own.
    pause() {},
    resume() {},
    async stop(deadlineMs) {
      await stopped(server, server.stop(), deadlineMs)
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
    reusePort: false, // a second appliance on the same port must fail, not share the traffic
    ...answering(options),
  }
}

function answering(options: ListenOptions) {
  return {
    development: false as const,
    maxRequestBodySize: limits.parserBodyBytesMax,
    fetch: (request: Request, self: Server<undefined>) => answer(options, request, self),
    error: () =>
      new Response('{"error":"internal_error","message":"Something went wrong on our side."}', {
        status: 500,
        headers: { 'content-type': 'application/json' },
      }),
  }
}

/** `Bun.serve`, failing with a sentence that names the address and what is wrong with it. */
function bind(at: ListenAddress, options: Bun.Serve.Options<undefined>): Server<undefined> {
  try {
    return Bun.serve(options)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null
    const why = code === 'EADDRINUSE' ? 'the port is in use' : String(code ?? error)
    throw new Error(`cannot listen on ${listenText(at)}: ${why}`, { cause: error })
  }
}

async function answer(
  options: ListenOptions,
  received: Request,
  server: Server<undefined>,
): Promise<Response> {
  const request = withWholeUrl(received)
  const peer = server.requestIP(received)?.address ?? ''
  const { address, secure } = options.sender(options.at.unix === undefined ? peer : null, request.headers)
  const context: RequestContext = {
    id: newId('req'),
    startedMs: performance.now(),
    address,
    secure: secure || options.tls !== null,
    local: isLoopbackHost(request.headers.get('host')),
    listener: options.kind,
    underWay: options.underWay,
    keepOpen: () => server.timeout(received, 0),
  }
  setContext(request, context)
  const made =
    takeBasePath(request, options.basePath, context.id) ??
    refusal(options, request, context) ??
    (await withDeadline(handleWithin(options, request, context), context.id))
  context.body?.release()
  const response = counted(made, context)
  addCommonHeaders(response, context.id)
  if (options.tls !== null) response.headers.set('strict-transport-security', 'max-age=31536000')
  const durationMs = Math.round((performance.now() - context.startedMs) * 10) / 10
  options.observe(context.route, request.method, response.status, durationMs)
  const line = {
    requestId: context.id,
    method: request.method,
    path: pathOf(request),
    status: response.status,
  }
  if (response.status >= 500) options.log.warn('request', { ...line, durationMs, address })
  else options.log.debug('request', { ...line, durationMs, address })
  return response
}

/** Ingest writes no audit entries, and is too frequent to carry its context along. */
function handleWithin(options: ListenOptions, request: Request, context: RequestContext): Promise<Response> {
  if (pathOf(request).startsWith('/v1/sdk/')) return options.handle(request)
  return withContext(context, () => options.handle(request))
}

/** What is refused before routing: a stopping server, paths the ingest listener does not serve, a foreign Host. */
function refusal(options: ListenOptions, request: Request, context: RequestContext): Response | null {
  const path = pathOf(request)
  if (options.stopping()) {
    const headers = { ...retryAfter(), connection: 'close' }
    return errorResponse(
      new AppError('shutting_down', 'The server is shutting down.', { headers }),
      context.id,
    )
  }
  if (options.isShed(path)) {
    const headers = { ...retryAfter(), connection: 'close' } // the body is not read
    return errorResponse(
      new AppError('overloaded', 'The server is short of memory.', { headers }),
      context.id,
    )
  }
  if (options.kind === 'ingest' && !/^\/(?:v1\/sdk\/.*|sdk\/.*|v1\/limits|healthz|readyz)$/.test(path)) {
    return errorResponse(
      new AppError('not_found', 'This listener serves ingest and the client package only.'),
      context.id,
    )
  }
  if (options.kind === 'metrics' && path !== '/metrics') {
    return errorResponse(new AppError('not_found', 'This listener serves /metrics only.'), context.id)
  }
  if (isDashboard(path) && !hostAllowed(request.headers.get('host'), options.hostRule)) {
    const error = new AppError('forbidden', 'The dashboard does not answer under this host name.', {
      hint: 'Start the appliance with --public-url or --allowed-host naming this host.',
    })
    return errorResponse(error, context.id)
  }
  return null
}

/** Everything but the public API, the client package, health and metrics belongs to the dashboard. */
function isDashboard(path: string): boolean {
  return !/^\/(?:v1|sdk)\//.test(path) && !['/healthz', '/readyz', '/metrics'].includes(path)
}

/** Bun's idle timeout does not reach a handler whose body is read, so every handler gets a deadline of ours. */
function withDeadline(work: Promise<Response>, requestId: string): Promise<Response> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      // Its body may still be on the way.
      const headers = { ...retryAfter(), connection: 'close' }
      const error = new AppError('overloaded', 'The request timed out.', { headers })
      resolve(errorResponse(error, requestId))
    }, limits.requestDeadlineMs)
    void work.then((response) => {
      clearTimeout(timer)
      resolve(response)
    })
  })
}

function isLoopbackHost(header: string | null): boolean {
  const name = header && hostName(header)
  return (
    !!name &&
    (name === 'localhost' || name.endsWith('.localhost') || name.startsWith('127.') || name === '::1')
  )
}

/** Throws a sentence when the path is taken by anything but a dead socket. */
export async function clearSocket(path: string): Promise<void> {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isSocket())
    throw new Error(`cannot listen on unix:${path}: there is something else at this path`)
  if (await answers(path)) throw new Error(`cannot listen on unix:${path}: another process answers there`)
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
