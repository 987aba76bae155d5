/**
 * The relay without a server: checks a request from a browser, stamps its events and queues them. The defaults of its
 * options protect a public endpoint.
 */
import { nowMs } from '../platform/clock.ts'
import { detectAgent } from '../agents/detect-agent.ts'
import { requireKey } from '../wire/connection.ts'
import { reporter, type OnError } from '../client/problem.ts'
import { createToolRegistry, type ToolRegistry } from './tool-registry.ts'
import type { CompleteEvent } from '../client/event.ts'
import { observe, type Observed } from '../client/observed.ts'
import type { IntelSync, Tool } from '../sync/intel-sync.ts'

/** The sender of a request, from your own authentication. It replaces any identity the browser claims. */
export interface Identity {
  /** The verified subject. */
  subject?: string
  /** The protocol that proved it, such as `sso` or `web-bot-auth`. */
  protocol?: string
  /** Default: `verified`. */
  trust?: 'verified' | 'linked'
}

/** The part of `IntelExporter` that a relay uses. */
interface RelayExporter {
  export(event: CompleteEvent, observed?: Observed): boolean
  flush(timeoutMs?: number): Promise<boolean>
}

/** `Raw` is the request type of the server: Fetch, Node.js or Express. */
export interface RelayOptions<Raw> {
  exporter: RelayExporter
  /** Accepted publishable keys. */
  publishableKey: string | string[]
  /** Accepted origins, such as https://shop.example. Default: the host of the relay. */
  origins?: string[]
  /** Overrides the site of every event. */
  siteId?: string
  identify?(request: Raw): Identity | null | Promise<Identity | null>
  /** The client's address, when the server does not provide it or is behind a proxy. */
  clientAddress?(request: Raw): string | null | undefined
  /** Maximum size of a request. Default: 262,144. */
  bodyBytesMax?: number
  /** Maximum number of events per request. Default: 200. */
  eventsMax?: number
  /** Rate limit per address; bursts up to this number. Default: 600. */
  eventsPerMinute?: number
  /**
   * When to respond: `queued` (default) when the exporter has the events, `sent` when the appliance has them. Use
   * `sent` where code stops running after the response.
   */
  answerAfter?: 'queued' | 'sent'
  /** Keeps the tool registry in step with the tools that pages have registered (`captureWebMcp`). */
  sync?: Pick<IntelSync, 'pushTools'>
  /** Which tools of pages to accept. Descriptors come from browsers, so anybody can send any. Default: all. */
  acceptTool?(tool: Tool): boolean
  /** Receives problems of `sync`. By default they are logged with `console.warn`. */
  onError?: OnError
}

interface RelayRules<Raw> extends Required<Omit<RelayOptions<Raw>, OptionalName>> {
  publishableKeys: Set<string>
  origins: Set<string> | null
  siteId: string | null
  identify: RelayOptions<Raw>['identify']
  clientAddress: RelayOptions<Raw>['clientAddress']
  registry: ToolRegistry | null
}

type OptionalName =
  'publishableKey' | 'origins' | 'siteId' | 'identify' | 'clientAddress' | 'sync' | 'acceptTool' | 'onError'

/** Throws on invalid options. */
function relayRules<Raw>(options: RelayOptions<Raw>): RelayRules<Raw> {
  const keys = [options.publishableKey].flat().map((key) => requireKey('publishableKey', key, 'publishable'))
  return {
    exporter: options.exporter,
    publishableKeys: new Set(keys),
    origins: options.origins === undefined ? null : new Set(options.origins.map(originOf)),
    siteId: options.siteId ?? null,
    identify: options.identify,
    clientAddress: options.clientAddress,
    bodyBytesMax: options.bodyBytesMax ?? 256 * 1024,
    eventsMax: options.eventsMax ?? 200,
    eventsPerMinute: options.eventsPerMinute ?? 600,
    answerAfter: options.answerAfter ?? 'queued',
    registry:
      options.sync === undefined
        ? null
        : createToolRegistry({
            sync: options.sync,
            accept: options.acceptTool,
            report: reporter(options.onError),
            nowMs,
          }),
  }
}

function originOf(text: string): string {
  try {
    const { origin } = new URL(text)
    if (origin !== 'null') return origin
  } catch {
    // Reported below.
  }
  throw new TypeError(`origins must be URLs such as https://shop.example, not ${text}`)
}

/** A request, independent of the server. */
export interface RelayRequest<Raw> {
  method: string
  /** With or without the host. */
  url: string
  header(name: string): string | null
  address: string | null
  /** The body as text, or null when it is longer than `bytesMax`. */
  readText(bytesMax: number): Promise<string | null>
  raw: Raw
}

export interface RelayAnswer {
  status: number
  headers: { [name: string]: string }
  body: string
}

/** Throws on invalid options. The returned function never rejects. */
export function eventReceiver<Raw>(
  options: RelayOptions<Raw>,
): (request: RelayRequest<Raw>) => Promise<RelayAnswer> {
  const rules = relayRules(options)
  const rate = createRate(rules.eventsPerMinute, nowMs)
  return async (request) => {
    const origin = request.header('origin')
    const isAllowed = origin !== null && isOrigin(origin, request, rules)
    const cors: { [name: string]: string } = isAllowed
      ? { 'access-control-allow-origin': origin, vary: 'origin' }
      : { vary: 'origin' }
    const answer = await answerOf(request, isAllowed, rules, rate)
    return { ...answer, headers: { ...cors, ...answer.headers } }
  }
}

function isOrigin<Raw>(origin: string, request: RelayRequest<Raw>, { origins }: RelayRules<Raw>): boolean {
  if (origins !== null) return origins.has(origin)
  try {
    return new URL(origin).host === request.header('host')
  } catch {
    return false // `null`: a sandboxed page or a file
  }
}

async function answerOf<Raw>(
  request: RelayRequest<Raw>,
  isAllowed: boolean,
  rules: RelayRules<Raw>,
  rate: Rate,
): Promise<RelayAnswer> {
  if (request.method === 'OPTIONS' && isAllowed) return preflight
  if (request.method !== 'POST') return refusal(405, 'method_not_allowed', 'use POST', { allow: 'POST' })
  if (!isAllowed) return refusal(403, 'forbidden', 'this origin is not allowed to send events')
  let text: string | null
  try {
    text = await request.readText(rules.bodyBytesMax)
  } catch {
    return refusal(400, 'invalid_body', 'the body could not be read')
  }
  if (text === null) return tooLarge(`a request may have at most ${rules.bodyBytesMax} bytes`)
  const payload = sentBody(text, rules)
  if ('status' in payload) return payload
  const address = rules.clientAddress?.(request.raw) ?? request.address ?? 'unknown'
  const waitSeconds = rate.take(address, 'events' in payload ? payload.events.length : countOf(payload))
  if (waitSeconds > 0) {
    return refusal(429, 'rate_limited', 'too many events', { 'retry-after': String(waitSeconds) })
  }
  return 'events' in payload ? pass(request, payload.events, rules) : passTools(payload, rules)
}

const preflight: RelayAnswer = {
  status: 204,
  headers: {
    'access-control-allow-methods': 'POST',
    'access-control-allow-headers': 'content-type',
    'access-control-max-age': '86400',
  },
  body: '',
}

interface SentTools {
  page: string
  tools: unknown[]
  removed: unknown[]
  /** The page closes. */
  left: boolean
}

const countOf = ({ tools, removed }: SentTools): number => tools.length + removed.length

/** The events or tools, or the error response. */
function sentBody<Raw>(
  text: string,
  rules: RelayRules<Raw>,
): { events: unknown[] } | SentTools | RelayAnswer {
  let body: { [field: string]: unknown } | null
  try {
    body = JSON.parse(text)
  } catch {
    return refusal(400, 'invalid_json', 'the body is not JSON')
  }
  if (typeof body?.['publishableKey'] !== 'string' || !rules.publishableKeys.has(body['publishableKey'])) {
    return refusal(403, 'forbidden', 'the publishable key is not accepted here')
  }
  const { events, tools, removed, page, left: hasLeft } = body
  if (events === undefined && Array.isArray(tools) && Array.isArray(removed)) {
    const sentTools = { page: String(page).slice(0, 64), tools, removed, left: hasLeft === true }
    return countOf(sentTools) > rules.eventsMax
      ? tooLarge(`a request may have at most ${rules.eventsMax} tools`)
      : sentTools
  }
  if (!Array.isArray(events) || events.length === 0)
    return refusal(400, 'invalid_body', 'events must be a non-empty array')
  return events.length > rules.eventsMax
    ? tooLarge(`a request may have at most ${rules.eventsMax} events`)
    : { events }
}

async function passTools<Raw>(
  { page, tools, removed, left: hasLeft }: SentTools,
  { registry, answerAfter }: RelayRules<Raw>,
): Promise<RelayAnswer> {
  if (registry === null) return refusal(400, 'invalid_body', 'the relay has no sync option')
  const accepted = registry.change(page, tools, removed)
  if (hasLeft) registry.leave(page)
  if (answerAfter === 'sent' && !(await registry.flush())) return unavailable
  return json(202, { ok: accepted === tools.length + removed.length, tools: accepted })
}

async function pass<Raw>(
  request: RelayRequest<Raw>,
  events: unknown[],
  { exporter, identify, siteId, answerAfter, clientAddress }: RelayRules<Raw>,
): Promise<RelayAnswer> {
  let identity = null
  try {
    identity = (await identify?.(request.raw)) ?? null
  } catch {
    return refusal(500, 'internal_error', 'the sender could not be identified')
  }
  const userAgent = request.header('user-agent')?.slice(0, 2_000) ?? null
  const stamped = events.map((event) => stampEvent(event, { siteId, userAgent, identity }))
  const good = stamped.filter((event) => event !== null)
  if (good.length === 0) return refusal(400, 'invalid_body', 'every event needs an id')
  const observed = observedOf(request, clientAddress?.(request.raw) ?? request.address, userAgent)
  let accepted = 0
  for (const [index, event] of good.entries()) {
    // A signature counts once: for the first of the events that came with it.
    const observation = index === 0 ? observed : withoutSignature(observed)
    if (observation === null ? exporter.export(event) : exporter.export(event, observation)) accepted++
  }
  if (accepted === 0) return unavailable
  if (answerAfter === 'sent' && !(await exporter.flush(10_000))) return unavailable
  return json(202, { ok: accepted === events.length, accepted })
}

function withoutSignature(observed: Observed | null): Observed | null {
  return observed?.address === undefined ? null : { address: observed.address }
}

/** Only of requests whose user agent or signature claims an agent. What the page says it saw is ignored. */
function observedOf<Raw>(
  request: RelayRequest<Raw>,
  address: string | null | undefined,
  userAgent: string | null,
): Observed | null {
  const headers = { get: (name: string) => request.header(name) }
  const isSigned = request.header('signature-input')?.includes('"web-bot-auth"') === true
  if (!isSigned && detectAgent(userAgent) === null) return null
  const path = request.url.replace(/^[a-z][a-z+.-]*:\/\/[^/?#]*/i, '')
  const url = `https://${request.header('host')?.toLowerCase()}${path}`
  return observe(address, isSigned ? { method: request.method, url, headers } : null)
}

const unavailable = refusal(503, 'overloaded', 'the queue is full; try again later', { 'retry-after': '5' })

function tooLarge(message: string): RelayAnswer {
  return refusal(413, 'payload_too_large', message)
}

function refusal(
  status: number,
  error: string,
  message: string,
  headers: { [name: string]: string } = {},
): RelayAnswer {
  return { ...json(status, { error, message }), headers: { ...json(status, {}).headers, ...headers } }
}

function json(status: number, body: object): RelayAnswer {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  return { status, headers, body: JSON.stringify(body) }
}

interface Rate {
  /** 0 when `count` tokens were available; otherwise the seconds until they are. */
  take(address: string, count: number): number
}

const addressesMax = 10_000

export function createRate(perMinute: number, nowMs: () => number): Rate {
  const buckets = new Map<string, { tokens: number; atMs: number }>()
  const perMs = perMinute / 60_000
  return {
    take(address, count) {
      const ms = nowMs()
      const bucket = buckets.get(address)
      const tokens =
        bucket === undefined ? perMinute : refilled(bucket.tokens + (ms - bucket.atMs) * perMs, perMinute)
      const isAllowed = count <= tokens
      buckets.delete(address) // reinserted as the newest, so the first entry is the least recently used
      buckets.set(address, { tokens: isAllowed ? tokens - count : tokens, atMs: ms })
      if (buckets.size > addressesMax) buckets.delete(buckets.keys().next().value ?? address)
      return isAllowed ? 0 : Math.ceil((Math.min(count, perMinute) - tokens) / perMs / 1_000)
    },
  }
}

const refilled = (tokens: number, max: number): number => Math.min(max, Math.max(0, tokens))

interface Stamp {
  siteId: string | null
  userAgent: string | null
  identity: Identity | null
}

type Fields = { [field: string]: unknown }

/**
 * Sets the fields that only the server knows. Null unless `value` is an object with an id, because a retry without an
 * id could not be deduplicated.
 */
function stampEvent(value: unknown, { siteId, userAgent, identity }: Stamp): CompleteEvent | null {
  if (!isObject(value) || typeof value['id'] !== 'string' || value['id'] === '') return null
  const claimed = isObject(value['agent']) ? withoutProof(value['agent']) : null
  const { policy: _policy, ...event }: Fields = value
  if (siteId !== null) event['siteId'] = siteId
  const agent = stampAgent(claimed ?? detectAgent(userAgent), userAgent, identity)
  if (agent !== null) event['agent'] = agent
  const metadata = stampMetadata(value['metadata'], identity)
  if (metadata !== undefined) event['metadata'] = metadata
  return event as CompleteEvent
}

/** A page cannot know what judges and policies of a server say, whatever it sends. Contract §17. */
function withoutProof(agent: Fields): Fields {
  const { verdict: _verdict, evidence: _evidence, robots: _robots, robotsRule: _rule, ...claims } = agent
  return claims
}

function stampAgent(
  agent: Fields | null,
  userAgent: string | null,
  identity: Identity | null,
): Fields | null {
  const userAgentField = userAgent === null ? {} : { userAgent }
  if (agent === null && identity === null) return userAgent === null ? null : userAgentField
  return { ...agent, ...userAgentField, trust: trustOf(agent, identity) }
}

/** A browser can declare an identity, but not that it was verified. */
function trustOf(agent: Fields | null, identity: Identity | null): string {
  if (identity !== null) return identity.trust ?? 'verified'
  return agent?.['trust'] === 'declared' ? 'declared' : 'detected'
}

function stampMetadata(value: unknown, identity: Identity | null): unknown {
  if (value !== undefined && value !== null && !isObject(value)) return value // the appliance rejects it
  const { subject: _subject, protocol: _protocol, ...otherFields } = value ?? {}
  const proved = {
    ...(identity?.subject === undefined ? {} : { subject: identity.subject }),
    ...(identity?.protocol === undefined ? {} : { protocol: identity.protocol }),
  }
  if (value === undefined && Object.keys(proved).length === 0) return undefined
  return { ...otherFields, ...proved }
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
