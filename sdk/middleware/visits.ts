/** What the middleware does for every framework: recognizes the agent of a request and reports the response. */
import { detectAgent, type DetectedAgent } from '../agents/detect-agent.ts'
import { reporter, type OnError } from '../client/problem.ts'
import { userAgentOf, type Session } from '../client/visitor-session.ts'
import { judge } from '../judge/judge.ts'
import { nowMs } from '../platform/clock.ts'
import type { Client } from '../client/client.ts'
import type { NonceMemory } from '../judge/signature-keys.ts'
import type { Identity } from '../relay/receive-events.ts'
import type { EvidenceSource } from './evidence.ts'
import { giveVerdict, originOf, settler, signedRequest } from './verdicts.ts'
import {
  addRequest,
  headerOf,
  pathOf,
  storable,
  type OpenVisit,
  type SeenRequest,
  type Visit,
} from './visit.ts'

export interface MiddlewareOptions<Raw = object> {
  /** Requests to leave alone, such as health checks. */
  skip?(request: Raw): boolean
  /** The sender, from your own authentication. Called after the response, for requests of agents. */
  identify?(request: Raw): Identity | null | undefined | Promise<Identity | null | undefined>
  /** The page to record. Default: the path without its query. */
  page?(request: Raw): string | null | undefined
  /** The sender's address, when the server does not provide it or is behind a proxy. */
  address?(request: Raw): string | null | undefined
  /** `loadEvidence({ url })`: judges what agents claim by their address. */
  evidence?: EvidenceSource
  /**
   * The origins of this site, such as `https://shop.example`. With them and `evidence`, signatures of agents are
   * verified (Web Bot Auth). One that was made for another site proves nothing.
   */
  origins?: string[]
  /** Accepts each signature once, and only those with a nonce: `createNonceMemory()`. */
  nonces?: NonceMemory
  /** Receives errors of your hooks. By default they are logged with `console.warn`. */
  onError?: OnError
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

const userAgentsMax = 10_000
const sessionsMax = 20_000
const pageCharsMax = 500
const hostCharsMax = 253

export function createVisits<Raw extends object>(client: Client, options: MiddlewareOptions<Raw>): Visits {
  const report = reporter(options.onError)
  const origins = options.origins?.map(originOf) ?? []
  const sessions = new Set<string>() // whose start was reported
  const hook = hookRunner(report)
  const detect = cachedDetection()
  const end = async (
    request: SeenRequest,
    visit: OpenVisit,
    startMs: number,
    response: SeenResponse,
    durationMs: number,
  ) => {
    if (visit.settle !== null) await visit.settle()
    if (visit.agent === null) return // a person, or a program whose signature is not valid
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
    const duration = request.isOver === true ? {} : { durationMs }
    session.trace({ ...common, type: 'agent.requested', outcome: outcomeOf(response), ...duration, metadata })
  }
  const begin: Visits['begin'] = (request) => {
    const raw = request.raw as Raw
    const { skip, page, address, evidence, nonces } = options
    if (skip !== undefined && hook('skip', () => skip(raw)) === true) return null
    const userAgent = userAgentOf(request.headers)
    const claim = userAgent === '' ? null : detect(userAgent)
    const sender = (address && hook('address', () => address(raw))) ?? request.address ?? null
    const startMs = nowMs()
    const known = evidence?.current() ?? null
    const path = pathOf(request.url)
    const visit = { agent: null, eventAgent: null, path, requests: [], settle: null } as unknown as OpenVisit
    visit.page = storable((page && hook('page', () => pathOf(page(raw) ?? path))) ?? path, pageCharsMax)
    lazySession(visit, () => client.session({ headers: request.headers }, { address: sender }))
    if (claim !== null) {
      const judged = known && judge(claim, { address: sender }, known.evidence, { atMs: startMs })
      giveVerdict(visit, claim, judged)
    }
    const signed = evidence === undefined ? null : signedRequest(request, origins)
    if (evidence !== undefined && (signed !== null || (known === null && claim !== null))) {
      const named = claim ?? { userAgent }
      visit.settle = settler({ visit, named, signed, sender, startMs, evidence, nonces, report })
    }
    addRequest(visit, raw)
    if (visit.agent === null && visit.settle === null) return () => {}
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

type RunHook = <Value>(name: string, run: () => Value) => Value | undefined

/** Runs code of the host, and reports what it throws. */
function hookRunner(report: OnError): RunHook {
  return (name, run) => {
    try {
      return run()
    } catch (error) {
      const why = error instanceof Error ? error.message : 'no error'
      report({
        code: 'hook_failed',
        message: `The ${name} option of sightglass threw: ${why}.`,
        cause: error,
      })
      return undefined
    }
  }
}

/** A site sees a few thousand user agents. */
function cachedDetection(): (userAgent: string) => DetectedAgent | null {
  const detected = new Map<string, DetectedAgent | null>()
  return (userAgent) => {
    let found = detected.get(userAgent)
    if (found !== undefined) return found
    found = detectAgent(userAgent)
    if (detected.size >= userAgentsMax) detected.clear()
    detected.set(userAgent, found)
    return found
  }
}

function fail(error: unknown): never {
  throw error
}

/** Hashing the address costs more than all else, so it waits until somebody needs the session. */
function lazySession(visit: Visit, make: () => Session): void {
  let session: Session | undefined
  Object.defineProperty(visit, 'session', { get: () => (session ??= make()), enumerable: true })
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
