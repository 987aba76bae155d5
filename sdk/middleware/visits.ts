/** What the middleware does for every framework: recognizes the agent of a request and reports the response. */
import { detectAgent, type DetectedAgent } from '../agents/detect-agent.ts'
import { reporter, type OnError } from '../client/problem.ts'
import { userAgentOf, type Session } from '../client/visitor-session.ts'
import { judge } from '../judge/judge.ts'
import { nowMs } from '../platform/clock.ts'
import type { Client } from '../client/client.ts'
import type { TraceEvent } from '../client/event.ts'
import { observe } from '../client/observed.ts'
import type { NonceMemory } from '../judge/signature-keys.ts'
import type { Identity } from '../relay/receive-events.ts'
import type { EvidenceSource } from './evidence.ts'
import { giveVerdict, isSigned, originOf, settler, signedClaim, signedRequest } from './verdicts.ts'
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
  /** The sender, from your own authentication. Called after the response, for requests by agents. */
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
  const isFirst = firstTimes()
  const hook = hookRunner(report)
  const detect = cachedDetection()
  const end = async (
    request: SeenRequest,
    visit: OpenVisit,
    sender: string | null,
    startMs: number,
    response: SeenResponse,
    durationMs: number,
  ) => {
    if (visit.settle !== null) await visit.settle()
    // A person, a program whose signature is not valid, or one whose signature nobody verifies.
    if (visit.agent === null && (visit.settle !== null || !client.observes())) return
    const { identify } = options
    const identifyResult =
      identify === undefined ? null : hook('identify', () => identify(request.raw as Raw))
    const identity =
      identifyResult instanceof Promise
        ? await identifyResult.catch((error) => hook('identify', () => fail(error)))
        : identifyResult
    const claimed = visit.eventAgent ?? signedClaim(request.headers)
    const agent = identity ? { ...claimed, trust: identity.trust ?? 'verified' } : claimed
    const { session } = visit
    const metadata = metadataOf(request, visit.page, response, identity ?? null)
    const requested: TraceEvent = { type: 'agent.requested', occurredAt: startMs, agent, metadata }
    requested.outcome = outcomeOf(response)
    if (request.isOver !== true) requested.durationMs = durationMs
    const observed = observe(sender, signedRequest(request, origins)) ?? undefined
    if (isFirst(session.sessionId)) session.trace(startOf(requested), observed)
    session.trace(requested, observed)
  }
  const begin: Visits['begin'] = (request) => {
    const raw = request.raw as Raw
    const { skip, page, address, evidence, nonces } = options
    if (skip !== undefined && hook('skip', () => skip(raw)) === true) return null
    const userAgent = userAgentOf(request.headers)
    const claim = userAgent === '' ? null : detect(userAgent)
    const sender = (address && hook('address', () => address(raw))) ?? request.address ?? null
    const startMs = nowMs()
    const loadedEvidence = evidence?.current() ?? null
    const path = pathOf(request.url)
    const pageName = storable((page && hook('page', () => pathOf(page(raw) ?? path))) ?? path, pageCharsMax)
    const visit = newVisit(path, pageName, () =>
      client.session({ headers: request.headers }, { address: sender }),
    )
    if (claim !== null) {
      const judged =
        loadedEvidence && judge(claim, { address: sender }, loadedEvidence.evidence, { atMs: startMs })
      giveVerdict(visit, claim, judged)
    }
    const signed = evidence === undefined || origins.length === 0 ? null : signedRequest(request, origins)
    if (evidence !== undefined && (signed !== null || (loadedEvidence === null && claim !== null))) {
      const claimed = claim ?? { userAgent }
      visit.settle = settler({ visit, named: claimed, signed, sender, startMs, evidence, nonces, report })
    }
    addRequest(visit, raw)
    if (visit.agent === null && visit.settle === null && !isSigned(request.headers)) return () => {}
    const fromMs = performance.now()
    return (response) => {
      const durationMs = Math.round((performance.now() - fromMs) * 10) / 10
      void end(request, visit, sender, startMs, response, durationMs).catch((error) =>
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
      const reason = error instanceof Error ? error.message : 'no error'
      report({
        code: 'hook_failed',
        message: `The ${name} option of sightglass threw: ${reason}.`,
        cause: error,
      })
      return undefined
    }
  }
}

/** Whether a session was not seen before. */
function firstTimes(): (sessionId: string) => boolean {
  const sessionIds = new Set<string>()
  return (sessionId) => {
    if (sessionIds.has(sessionId)) return false
    if (sessionIds.size >= sessionsMax) sessionIds.clear()
    sessionIds.add(sessionId)
    return true
  }
}

/** The start of the session that begins with this request. */
function startOf({ occurredAt, agent, metadata }: TraceEvent): TraceEvent {
  const { page, host, source } = metadata as { [field: string]: unknown }
  return { type: 'agent.detected', occurredAt, agent, metadata: { page, host, source } } as TraceEvent
}

/** A site sees a few thousand user agents. */
function cachedDetection(): (userAgent: string) => DetectedAgent | null {
  const detected = new Map<string, DetectedAgent | null>()
  return (userAgent) => {
    let agent = detected.get(userAgent)
    if (agent !== undefined) return agent
    agent = detectAgent(userAgent)
    if (detected.size >= userAgentsMax) detected.clear()
    detected.set(userAgent, agent)
    return agent
  }
}

function fail(error: unknown): never {
  throw error
}

function newVisit(path: string, page: string, makeSession: () => Session): OpenVisit {
  let session: Session | undefined
  return {
    agent: null,
    eventAgent: null,
    path,
    page,
    requests: [],
    settle: null,
    /** Hashing the address costs more than all else, so it waits until somebody needs the session. */
    get session() {
      return (session ??= makeSession())
    },
  }
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
  const fields: { [field: string]: unknown } = { page, method, status }
  if (Number.isSafeInteger(length) && length >= 0) fields['bytes'] = length
  if (referrerHost !== undefined) fields['referrerHost'] = storable(referrerHost, hostCharsMax)
  if (host !== '') fields['host'] = storable(host.toLowerCase().replace(/:\d+$/, ''), hostCharsMax)
  if (isAborted === true) fields['aborted'] = true
  if (identity?.subject !== undefined) fields['subject'] = identity.subject
  if (identity?.protocol !== undefined) fields['protocol'] = identity.protocol
  fields['source'] = 'middleware'
  return fields
}
