/** One request that the middleware has seen: who sent it, and how handlers find that. */
import type { DetectedAgent } from '../agents/detect-agent.ts'
import type { RequestHeaders, Session } from '../client/visitor-session.ts'
import type { JudgedEvidence, Verdict } from '../judge/judge.ts'
import { currentOfWatch } from './watch-http.ts'

/** `request.agent`: who the sender says it is, and what speaks for it. */
export interface RequestAgent {
  operator: string
  /** Null when nothing but the signature of its operator names the agent. */
  product: string | null
  purpose: DetectedAgent['purpose'] | null
  /** `unverifiable` without `evidence`. By the address alone until `judgedAgentOf` has verified the signature. */
  verdict: Verdict
  evidence?: JudgedEvidence
}

/** One request. `agent` is null for people and unknown programs. */
export interface Visit {
  agent: RequestAgent | null
  /** As recorded, see `page` of the options. */
  page: string
  /** As the sender wrote it, whole, without the query. */
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
  /** It was not seen before its end, so its duration is unknown. */
  isOver?: boolean
}

/** A visit until its verdict is final. */
export interface OpenVisit extends Visit {
  /** The objects that have it as `agent`. */
  requests: object[]
  /** Gives the visit its final verdict. Never rejects. Null when it has that already. */
  settle: (() => Promise<void>) | null
}

/** On the request, because a WeakMap costs the garbage collector more than all else here. */
const visitKey = Symbol('sightglass visit')
const ofFrozen = new WeakMap<object, OpenVisit>()

/** The visit of the request that is being handled, when the servers of this process are watched. */
export function currentVisit(): OpenVisit | null {
  return (currentOfWatch() as OpenVisit | null | undefined) ?? null
}

export function openVisitOf(request: object): OpenVisit | null {
  return (request as { [visitKey]?: OpenVisit })[visitKey] ?? ofFrozen.get(request) ?? currentVisit()
}

/** The visit of a request that the middleware has seen: the object that your handler gets. */
export function visitOf(request: object): Visit | null {
  return openVisitOf(request)
}

/** `request.agent`, typed. Null for people, unknown programs and requests that the middleware has not seen. */
export function agentOf(request: object): RequestAgent | null {
  return openVisitOf(request)?.agent ?? null
}

/**
 * `agentOf` with the final verdict: waits for evidence that is being loaded, and verifies the signature of the request.
 * Afterwards `request.agent` and `decide` have this verdict, too. Never rejects.
 */
export async function judgedAgentOf(request: object): Promise<RequestAgent | null> {
  const visit = openVisitOf(request)
  await visit?.settle?.()
  return visit?.agent ?? null
}

/** Lets `request` find the visit: the raw request, and what a framework has beside it. */
export function addRequest(visit: OpenVisit, request: object): void {
  if (!define(request, visitKey, visit)) ofFrozen.set(request, visit)
  visit.requests.push(request)
  setAgent(request, visit.agent)
}

/** Also lets `alias` find the visit of `raw`, such as Fastify's request beside Node's. */
export function aliasVisit(raw: object, alias: object): void {
  const visit = openVisitOf(raw)
  if (visit !== null) addRequest(visit, alias)
}

/** Frozen requests do not get the field; `agentOf` works with them, too. */
export function setAgent(request: object, agent: RequestAgent | null): void {
  define(request, 'agent', agent)
}

function define(request: object, key: PropertyKey, value: unknown): boolean {
  return Reflect.defineProperty(request, key, {
    value,
    configurable: true,
    writable: true,
    enumerable: false,
  })
}

export function headerOf(headers: RequestHeaders, name: string): string {
  const value =
    typeof headers.get === 'function' ? headers.get(name) : (headers as { [name: string]: unknown })[name]
  return typeof value === 'string' ? value : ''
}

const absolute = /^[a-z][a-z+.-]*:\/\/[^/?#]*/i

/** The path of a URL or of a path, without query and fragment. */
export function pathOf(url: string): string {
  const path = withoutOrigin(url).replace(/[?#].*$/s, '')
  return path === '' ? '/' : path
}

export function withoutOrigin(url: string): string {
  return url.replace(absolute, '')
}

/** Without NUL and unpaired surrogates, which the appliance rejects. */
export function storable(text: string, charsMax: number): string {
  return text.slice(0, charsMax).replace(/\0|\p{Cs}/gu, '\ufffd')
}
