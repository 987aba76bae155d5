/**
 * `sightglass(client)`: one middleware for Express, Fastify, Koa, Hono, Elysia, Next.js and Fetch handlers. Reports the
 * requests by agents after the response, and gives handlers `request.agent`.
 */
import type { Client } from '../client/client.ts'
import type { RequestHeaders } from '../client/visitor-session.ts'
import { addRequest, aliasVisit, currentVisit, openVisitOf, type OpenVisit } from './visit.ts'
import { createVisits, type MiddlewareOptions, type SeenResponse, type Visits } from './visits.ts'
import { watchServers } from './watch-http.ts'

export { createNonceMemory, type NonceMemory } from '../judge/signature-keys.ts'
export { decide, type AgentPolicy, type Decision, type PolicyRule } from './decide.ts'
export { loadEvidence, readEvidence, type EvidenceOptions, type EvidenceSource } from './evidence.ts'
export { agentOf, judgedAgentOf, visitOf, type RequestAgent, type Visit } from './visit.ts'
export type { MiddlewareOptions } from './visits.ts'

/** The parts of Node's `IncomingMessage` and `ServerResponse` in use. */
interface NodeRequest {
  method?: string | undefined
  url?: string | undefined
  /** Express: the URL before a router changed it. */
  originalUrl?: string | undefined
  headers: { [name: string]: string | string[] | undefined }
  socket?: { remoteAddress?: string | undefined } | null | undefined
  /** Express: the address behind trusted proxies. */
  ip?: string | undefined
}

interface NodeResponse {
  statusCode: number
  writableFinished: boolean
  _header?: unknown
  getHeader(name: string): unknown
  once(event: 'close', listener: () => void): unknown
}

interface FetchServer {
  requestIP?(request: Request): { address: string } | null
}

interface KoaContext {
  req: NodeRequest
  res: NodeResponse
  request: object
  ip?: string
}

interface HonoContext {
  req: { raw: Request }
  res: Response
  env: unknown
}

interface FastifyLike {
  addHook(name: 'onRequest', hook: (request: never, reply: never, done: () => void) => void): unknown
}

interface ElysiaLike {
  wrap(fn: (handle: FetchHandler, request: Request) => FetchHandler): unknown
  server?: unknown
}

type FetchHandler = (request: Request, ...platformArgs: unknown[]) => Response | Promise<Response>

/** `app.use(sightglass(client))`; with Fastify `app.register`, with Fetch `sightglass(client).fetch(handler)`. */
export interface Middleware {
  /** Express and other servers with Node's requests. */
  (request: NodeRequest, response: NodeResponse, next: (error?: unknown) => void): void
  /** Koa and Hono. */
  (context: KoaContext | HonoContext, next: () => Promise<unknown>): Promise<void>
  /** Elysia: `app.use`. */
  <App extends ElysiaLike>(app: App): App
  /** Fastify: `app.register`. */
  (app: FastifyLike, options: unknown, done: () => void): void
  /** Wraps a Fetch handler: Bun, Deno, Cloudflare. */
  fetch<Args extends unknown[], Answer extends Response | Promise<Response>>(
    handler: (request: Request, ...args: Args) => Answer,
  ): (request: Request, ...args: Args) => Promise<Response>
  /**
   * Watches all HTTP servers of this process: for Next.js, in `register` of `instrumentation.ts`. Use it instead of the
   * others. Returns a function that ends it. Needs Node.js 20.16, 22.3 or newer.
   */
  watchHttp(): () => void
}

/** Throws on invalid options. Nothing throws afterwards: requests are answered as without it. */
export function sightglass<Raw extends object = object>(
  client: Client,
  options: MiddlewareOptions<Raw> = {},
): Middleware {
  if (typeof client?.session !== 'function')
    throw new TypeError('sightglass needs a client: sightglass(init({ … }))')
  for (const name of ['skip', 'identify', 'page', 'address'] as const)
    if (options[name] !== undefined && typeof options[name] !== 'function')
      throw new TypeError(`${name} must be a function`)
  const visits = createVisits(client, options)
  const middleware = (first: unknown, second?: unknown, third?: unknown): unknown => {
    if (isFastify(first)) return registerFastify(visits, first, third)
    if (second === undefined && isElysia(first)) return useElysia(visits, first)
    if (typeof third === 'function') {
      watchNode(visits, first as NodeRequest, second as NodeResponse)
      return (third as () => unknown)()
    }
    const context = first as KoaContext | HonoContext
    const next = second as () => Promise<unknown>
    return 'raw' in context.req
      ? useHono(visits, context as HonoContext, next)
      : useKoa(visits, context as KoaContext, next)
  }
  const wrap =
    (handler: FetchHandler) =>
    (request: Request, ...platformArgs: unknown[]) =>
      watchFetch(visits, request, addressOf(platformArgs[0], request), () =>
        handler(request, ...platformArgs),
      )
  // Fastify applies the hooks of a plugin with this mark to the whole application.
  return Object.assign(middleware, {
    fetch: wrap,
    watchHttp: () =>
      watchServers<NodeRequest, NodeResponse>(
        (request, response) => beginNode(visits, request, response),
        (request, response) => beginNode(visits, request, response, true),
      ),
    [Symbol.for('skip-override')]: true,
  }) as unknown as Middleware
}

function watchNode(visits: Visits, request: NodeRequest, response: NodeResponse): void {
  const visit = currentVisit()
  if (visit === null) beginNode(visits, request, response)
  else addRequest(visit, request)
}

function beginNode(
  visits: Visits,
  request: NodeRequest,
  response: NodeResponse,
  isOver = false,
): OpenVisit | null {
  const { headers, method = 'GET' } = request
  const url = request.originalUrl ?? request.url ?? '/'
  const address = request.ip ?? request.socket?.remoteAddress
  const end = visits.begin({ raw: request, method, url, headers, address, isOver })
  if (end === null) return null
  response.once('close', () => {
    end({ ...sentBy(response), isAborted: !response.writableFinished })
  })
  return openVisitOf(request)
}

/**
 * What was sent. A handler that fails later changes `statusCode`, and `getHeader` does not know headers that were
 * passed to `writeHead`, so Node's text of the sent headers comes first; other runtimes have none.
 */
function sentBy(response: NodeResponse): Pick<SeenResponse, 'status' | 'bytes'> {
  const head = typeof response._header === 'string' ? response._header : ''
  const [, status = response.statusCode] = /^HTTP\/1\.\d (\d{3})/.exec(head) ?? []
  const [, bytes = response.getHeader('content-length')] = /\r\ncontent-length: *(\d+)/i.exec(head) ?? []
  return { status: Number(status), bytes }
}

async function useKoa(visits: Visits, context: KoaContext, next: () => Promise<unknown>): Promise<void> {
  watchNode(visits, context.req, context.res)
  aliasVisit(context.req, context.request)
  aliasVisit(context.req, context)
  await next()
}

async function useHono(visits: Visits, context: HonoContext, next: () => Promise<unknown>): Promise<void> {
  const { raw } = context.req
  const end = visits.begin(seenFetch(raw, addressOf(context.env, raw)))
  if (end !== null) {
    aliasVisit(raw, context.req)
    aliasVisit(raw, context)
  }
  await next()
  if (end !== null) later(end, responseOf(context.res))
}

function registerFastify(visits: Visits, app: FastifyLike, done: unknown): void {
  app.addHook(
    'onRequest',
    (request: { raw: NodeRequest; ip?: string }, reply: { raw: NodeResponse }, next) => {
      watchNode(visits, request.raw, reply.raw)
      aliasVisit(request.raw, request)
      next()
    },
  )
  if (typeof done === 'function') done()
}

function useElysia(visits: Visits, app: ElysiaLike): ElysiaLike {
  app.wrap((handle) => (request, ...platformArgs) => {
    const address = addressOf(platformArgs[0], request) ?? addressOf(app.server, request)
    return watchFetch(visits, request, address, () => handle(request, ...platformArgs))
  })
  return app
}

/** An error that the handler throws is the server's to answer. */
async function watchFetch(
  visits: Visits,
  request: Request,
  address: string | undefined,
  answer: () => Response | Promise<Response>,
): Promise<Response> {
  const visit = currentVisit()
  if (visit !== null) {
    addRequest(visit, request)
    return answer()
  }
  const end = visits.begin(seenFetch(request, address))
  if (end === null) return answer()
  try {
    const response = await answer()
    later(end, responseOf(response))
    return response
  } catch (error) {
    later(end, { status: 500, bytes: null })
    throw error
  }
}

const seenFetch = (raw: Request, address: string | undefined) => {
  return { raw, method: raw.method, url: raw.url, headers: raw.headers as RequestHeaders, address }
}

/** Read at once, because Bun empties the headers of a response that it has sent. */
function responseOf(response: Response | undefined): SeenResponse {
  return { status: response?.status ?? 404, bytes: response?.headers.get('content-length') }
}

/** After the response is on its way. On edge runtimes nothing runs then, so there it runs at once. */
function later(end: (response: SeenResponse) => void, response: SeenResponse): void {
  if (typeof setImmediate === 'function') setImmediate(end, response)
  else end(response)
}

/** Of Bun's server, or of Node's request that an adapter passes on. */
function addressOf(server: unknown, request: Request): string | undefined {
  const source = server as (FetchServer & { incoming?: NodeRequest }) | null | undefined
  try {
    return source?.requestIP?.(request)?.address ?? source?.incoming?.socket?.remoteAddress
  } catch {
    return undefined
  }
}

function isFastify(value: unknown): value is FastifyLike {
  return typeof (value as Partial<FastifyLike> | null)?.addHook === 'function'
}

function isElysia(value: unknown): value is ElysiaLike {
  return typeof (value as Partial<ElysiaLike> | null)?.wrap === 'function'
}
