/** What the middleware does for every framework: recognizes the agent of a request and reports the response. */
import { detectAgent, type DetectedAgent } from '../agents/detect-agent.ts'
import { reporter, type OnError } from '../client/problem.ts'
import { userAgentOf, type RequestHeaders, type Session } from '../client/visitor-session.ts'
import { judge, trustOf, type Evidence, type JudgedEvidence, type Verdict } from '../judge/judge.ts'
import { nowMs } from '../platform/clock.ts'
import type { Client } from '../client/client.ts'
import type { Identity } from '../relay/receive-events.ts'

export interface MiddlewareOptions<Raw = object> {
  /** Requests to leave alone, such as health checks. */
  skip?(request: Raw): boolean
  /** The sender, from your own authentication. Called after the response, for requests of agents. */
  identify?(request: Raw): Identity | null | undefined | Promise<Identity | null | undefined>
  /** The page to record. Default: the path without its query. */
  page?(request: Raw): string | null | undefined
  /** The sender's address, when the server does not provide it or is behind a proxy. */
  address?(request: Raw): string | null | undefined
  /** From `openEvidence`: judges what agents claim by their address. */
  evidence?: Evidence
  /** Receives errors of your hooks. By default they are logged with `console.warn`. */
  onError?: OnError
}

/** `request.agent`: who the sender says it is, and what speaks for it. */
export interface RequestAgent {
  operator: string
  product: string
  purpose: DetectedAgent['purpose']
  /** `unverifiable` without `evidence`. */
  verdict: Verdict
  evidence?: JudgedEvidence
}

/** One request. `agent` is null for people and unknown programs. */
export interface Visit {
  agent: RequestAgent | null
  /** As recorded, see `page` of the options. */
  page: string
  /** As the sender wrote it, without the query. */
  path: string
  readonly session: Session
  /** The `agent` field of events. */
  eventAgent: { [field: string]: unknown } | null
}

/** The parts of a request that all frameworks have. */
export interface SeenRequest {
  raw: object
  method: string
  /** With or without the query. */
  url: string
  headers: RequestHeaders
  address: string | null | undefined
}

export interface SeenResponse {
  status: number
  /** The content-length header. */
  bytes: unknown
  /** The sender closed the connection before the response ended. */
  isAborted?: boolean
}

export interface Visits {
  /** Null when the request is skipped. Never throws. The function reports the response; call it once, at its end. */
  begin(request: SeenRequest): ((response: SeenResponse) => void) | null
}

const visitOfRequest = new WeakMap<object, Visit>()

/** The visit of a request that the middleware has seen: the object that your handler gets. */
export function visitOf(request: object): Visit | null {
  return visitOfRequest.get(request) ?? null
}

/** `request.agent`, typed. Null for people, unknown programs and requests that the middleware has not seen. */
export function agentOf(request: object): RequestAgent | null {
  return visitOfRequest.get(request)?.agent ?? null
}

/** Also lets `alias` find the visit, such as Fastify's request beside Node's. */
export function aliasVisit(raw: object, alias: object): void {
  const visit = visitOfRequest.get(raw)
  if (visit === undefined) return
  visitOfRequest.set(alias, visit)
  setAgent(alias, visit.agent)
}

const userAgentsMax = 10_000
const sessionsMax = 20_000
const pageCharsMax = 500
const hostCharsMax = 253

export function createVisits<Raw extends object>(client: Client, options: MiddlewareOptions<Raw>): Visits {
  const report = reporter(options.onError)
  const detected = new Map<string, DetectedAgent | null>() // a site sees a few thousand user agents
  const sessions = new Set<string>() // whose start was reported
  const hook = <Value>(name: string, run: () => Value): Value | undefined => {
    try {
      return run()
    } catch (error) {
      const message = `The ${name} option of sightglass threw: ${error instanceof Error ? error.message : 'no error'}.`
      report({ code: 'hook_failed', message, cause: error })
      return undefined
    }
  }
  const detect = (userAgent: string): DetectedAgent | null => {
    let found = detected.get(userAgent)
    if (found !== undefined) return found
    found = detectAgent(userAgent)
    if (detected.size >= userAgentsMax) detected.clear()
    detected.set(userAgent, found)
    return found
  }
  const end = async (
    request: SeenRequest,
    visit: Visit,
    startMs: number,
    response: SeenResponse,
    durationMs: number,
  ) => {
    const { identify } = options
    const asked = identify === undefined ? null : hook('identify', () => identify(request.raw as Raw))
    const identity =
      asked instanceof Promise ? await asked.catch((error) => hook('identify', () => fail(error))) : asked
    const agent = { ...visit.eventAgent, ...(identity ? { trust: identity.trust ?? 'verified' } : {}) }
    const { session } = visit
    const metadata = metadataOf(request, visit.page, response, identity ?? null)
    const common = { agent, occurredAt: startMs }
    if (!sessions.has(session.sessionId)) {
      if (sessions.size >= sessionsMax) sessions.clear()
      sessions.add(session.sessionId)
      const { page, host, source } = metadata
      session.trace({ ...common, type: 'agent.detected', metadata: { page, host, source } as never })
    }
    session.trace({ ...common, type: 'agent.requested', outcome: outcomeOf(response), durationMs, metadata })
  }
  const begin: Visits['begin'] = (request) => {
    const raw = request.raw as Raw
    const { skip, page, address, evidence } = options
    if (skip !== undefined && hook('skip', () => skip(raw)) === true) return null
    const userAgent = userAgentOf(request.headers)
    const found = userAgent === '' ? null : detect(userAgent)
    const sender = (address && hook('address', () => address(raw))) ?? request.address ?? null
    const startMs = nowMs()
    const visit = visitFor(found, evidence, sender, startMs)
    visit.path = pageOf(request.url)
    visit.page = page === undefined ? visit.path : pageOf(hook('page', () => page(raw)) ?? request.url)
    lazySession(visit, () => client.session({ headers: request.headers }, { address: sender }))
    visitOfRequest.set(raw, visit)
    setAgent(raw, visit.agent)
    if (visit.agent === null) return () => {}
    const fromMs = performance.now()
    return (response) => {
      const durationMs = Math.round((performance.now() - fromMs) * 10) / 10
      void end(request, visit, startMs, response, durationMs).catch((error) =>
        hook('report', () => fail(error)),
      )
    }
  }
  return { begin: (request) => hook('request', () => begin(request)) ?? null }
}

function fail(error: unknown): never {
  throw error
}

function visitFor(
  found: DetectedAgent | null,
  evidence: Evidence | undefined,
  address: string | null,
  atMs: number,
): Visit {
  if (found === null) return { agent: null, eventAgent: null } as unknown as Visit
  const { vendor: operator, name: product, purpose } = found
  if (evidence === undefined) {
    return {
      agent: { operator, product, purpose, verdict: 'unverifiable' },
      eventAgent: found,
    } as unknown as Visit
  }
  const judged = judge(found, { address }, evidence, { atMs })
  const eventAgent = { ...found, trust: trustOf(judged.verdict), ...judged }
  return { agent: { operator, product, purpose, ...judged }, eventAgent } as unknown as Visit
}

/** Hashing the address costs more than all else, so it waits until somebody needs the session. */
function lazySession(visit: Visit, make: () => Session): void {
  let session: Session | undefined
  Object.defineProperty(visit, 'session', { get: () => (session ??= make()), enumerable: true })
}

/** Frozen requests do not get the field; `agentOf` works with them, too. */
function setAgent(request: object, agent: RequestAgent | null): void {
  Reflect.defineProperty(request, 'agent', {
    value: agent,
    configurable: true,
    writable: true,
    enumerable: false,
  })
}

const blocked = new Set([401, 402, 403, 407, 429, 451])

/** As for requests in access logs (contract §11). */
function outcomeOf({ status, isAborted }: SeenResponse): 'success' | 'blocked' | 'error' {
  if (blocked.has(status)) return 'blocked'
  return status < 400 && isAborted !== true ? 'success' : 'error'
}

function metadataOf(
  { method, headers }: SeenRequest,
  page: string,
  { status, bytes, isAborted }: SeenResponse,
  identity: Identity | null,
): { [field: string]: unknown } {
  const host = headerOf(headers, 'host')
  const referrer = headerOf(headers, 'referer')
  const referrerHost = /^[a-z][a-z+.-]*:\/\/(?:[^/?#@]*@)?([^/?#:]+)/i.exec(referrer)?.[1]?.toLowerCase()
  const length = typeof bytes === 'string' || typeof bytes === 'number' ? Number(bytes) : Number.NaN
  return {
    page,
    method,
    status,
    ...(Number.isSafeInteger(length) && length >= 0 ? { bytes: length } : {}),
    ...(referrerHost === undefined ? {} : { referrerHost: storable(referrerHost, hostCharsMax) }),
    ...(host === '' ? {} : { host: storable(host.toLowerCase().replace(/:\d+$/, ''), hostCharsMax) }),
    ...(isAborted === true ? { aborted: true } : {}),
    ...(identity?.subject === undefined ? {} : { subject: identity.subject }),
    ...(identity?.protocol === undefined ? {} : { protocol: identity.protocol }),
    source: 'middleware',
  }
}

function headerOf(headers: RequestHeaders, name: string): string {
  const value =
    typeof headers.get === 'function' ? headers.get(name) : (headers as { [name: string]: unknown })[name]
  return typeof value === 'string' ? value : ''
}

/** The path of a URL or of a path, without query and fragment. */
function pageOf(url: string): string {
  const path = url.replace(/^[a-z][a-z+.-]*:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '')
  return storable(path === '' ? '/' : path, pageCharsMax)
}

/** Without NUL and unpaired surrogates, which the appliance rejects. */
function storable(text: string, charsMax: number): string {
  return text.slice(0, charsMax).replace(/\0|\p{Cs}/gu, '\ufffd')
}
