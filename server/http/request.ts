/**
 * Everything that a handler reads from a request besides its body: the context, the path, the query string and the
 * cursor.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { AppError, type Issue } from '../errors.ts'
import { limits } from '../limits.ts'
import { parseTime } from '../clock.ts'
import type { ApiKey, SignInView } from '../../db/contract/store.ts'
import type { Owner, Share, Shares } from './shares.ts'
import type { Permit } from './permit.ts'
import type { Cipher } from '../system/encryption.ts'

/** A token bucket after a request. */
export interface BucketState {
  count: number // of the limit
  windowMs: number
  remaining: number
  fullMs: number // until the bucket is full again
  waitMs: number // until the next request is accepted; 0 when this one was
}

export interface Sender {
  address: string // of the client, behind trusted proxies
  secure: boolean // received over https, by us or by the trusted proxy
}

export interface RequestContext {
  id: string // req_…, sent back as x-request-id
  startedMs: number // performance.now()
  /** Ask before the response is sent. */
  sender(this: RequestContext): Sender
  listener: 'main' | 'ingest' | 'metrics' | 'jobs'
  route?: string // the pattern that matched
  key?: ApiKey
  rateLimits?: ({ policy: 'address' | 'key' } & BucketState)[] // the limits that applied
  signIn?: SignInView
  /** Set when a key or a sign-in was accepted. Streams ask it while they run. */
  permit?: Permit
  inFlight: { bodies: Shares; largeBodies: Shares; responses: Shares } // bytes, of all clients
  body?: Share // of this request's body
  /** An error in the form of this request; null for the common one. */
  writeError?(error: AppError, request: Request): Response | null
  /** Disables the idle timeout of this connection, for streams that may be quiet. */
  keepOpen(this: RequestContext): void
}

/** A property, which is found at once: a map of requests would outgrow the caches between two collections. */
const attached = Symbol('context')
type Attached = Request & { [attached]?: RequestContext }

export function setContext(request: Request, context: RequestContext): void {
  ;(request as Attached)[attached] = context
}

const running = new AsyncLocalStorage<RequestContext>()

/** Runs a handler with its context, so that audit entries record who sent the request and from where. */
export function withContext<T>(context: RequestContext, work: () => T): T {
  return running.run(context, work)
}

/** The context of the current request; null in jobs, in the CLI and in ingest, which writes no audit entries. */
export function runningContext(): RequestContext | null {
  return running.getStore() ?? null
}

/** Whom a request's resources are counted against. */
export function ownerOf(context: RequestContext): Owner {
  const { key, signIn } = context
  if (key !== undefined) return { orgId: key.orgId, holderId: key.id }
  if (signIn !== undefined) return { orgId: signIn.org.id, holderId: signIn.account.id }
  return { orgId: '', holderId: context.sender().address }
}

/** The context that the listener attached. */
export function contextOf(request: Request): RequestContext {
  const context = (request as Attached)[attached]
  if (!context) throw new Error('request has no context')
  return context
}

/** Null for a request that did not come through a listener. */
export function contextIfAny(request: Request): RequestContext | null {
  return (request as Attached)[attached] ?? null
}

/**
 * The request with an absolute URL. Without a valid Host header Bun's `url` is the bare path, which this module and the
 * router would split differently: the path checked here would not be the path served.
 */
export function withAbsoluteUrl(request: Request): Request {
  const { url } = request // each read makes a new string
  if (url.startsWith('http://')) return request
  if (url.startsWith('https://')) {
    // The router only finds the path after `http://`. The same object is reused because its body and signal are bound
    // to the connection; whether it was secure is in its context.
    return Object.defineProperty(request, 'url', { value: `http${url.slice('https'.length)}` })
  }
  return new Request(`http://unnamed.invalid/${url.replace(/^\//, '')}`, request)
}

let lastUrl = 'http://unnamed.invalid'
let lastPath = '/'

/** Requires an absolute URL. Keeps the last path: it is asked for several times per request, often of one endpoint. */
export function pathOf(request: Request): string {
  const { url } = request
  if (url === lastUrl) return lastPath
  const start = url.indexOf('/', url.indexOf('://') + 3)
  const end = start === -1 ? -1 : url.indexOf('?', start)
  lastPath = start === -1 ? '/' : end === -1 ? url.slice(start) : url.slice(start, end)
  lastUrl = url
  return lastPath
}

/** Whether an OpenTelemetry exporter sends this. The same paths are read with GET. */
export function isOtlp(method: string, path: string): boolean {
  return method === 'POST' && /^\/v1\/(?:traces|logs|metrics)\/?$/.test(path)
}

const valueCharsMax = 2_000

export type ParameterKind = 'one' | 'many'

export interface Query {
  /** The single value, or undefined when the parameter is absent. */
  one(name: string): string | undefined
  /** All values, or undefined when the parameter is absent. */
  many(name: string): string[] | undefined
}

const noParameters: Query = { one: () => undefined, many: () => undefined }

/** Reads the allowed parameters; throws 400 `invalid_query` that names the first wrong one. */
export function readQuery(request: Request, allowed: Record<string, ParameterKind>): Query {
  const { url } = request
  const mark = url.indexOf('?')
  if (mark === -1) return noParameters
  const values = new Map<string, string[]>()
  const query: Query = { one: (name) => values.get(name)?.[0], many: (name) => values.get(name) }
  for (const [name, value] of new URLSearchParams(url.slice(mark + 1))) {
    const kind = Object.hasOwn(allowed, name) ? allowed[name] : undefined
    if (!kind) {
      const acceptedNames = Object.keys(allowed).join(', ')
      throw invalidQuery(
        name,
        `Unknown parameter '${shortName(name)}'. Accepted: ${acceptedNames || 'none'}.`,
        'unknown',
      )
    }
    // Clients write `cursor=${cursor ?? ''}`. In a list '' means events without the field.
    if (value === '' && kind === 'one') continue
    const list = values.get(name)
    if (list && kind === 'one') throw invalidQuery(name, `'${name}' must not be repeated`, 'repeated')
    if (list && list.length >= 100)
      throw invalidQuery(name, `'${name}' must have at most 100 values`, 'too_many')
    const charsMax = name === 'cursor' ? limits.cursorCharsMax : valueCharsMax
    if (value.length > charsMax)
      throw invalidQuery(name, `'${name}' must have at most ${charsMax} characters`, 'too_long')
    if (list) list.push(value)
    else values.set(name, [value])
  }
  return query
}

/** A 400 that names the wrong parameter. */
export function invalidQuery(name: string, message: string, code = 'wrong_format'): AppError {
  const issue: Issue = { path: shortName(name), message, code }
  return new AppError('invalid_query', message, { issues: [issue] })
}

/** A name from a request as errors quote it. */
export function shortName(name: string): string {
  return name.length > 60 ? `${name.slice(0, 60)}…` : name
}

/** UTC milliseconds; a bare date is midnight UTC. Throws 400 `invalid_query` that names the parameter. */
export function parseQueryTime(name: string, text: string): number {
  const complete = /^\d{4}-\d{2}-\d{2}$/.test(text)
    ? `${text}T00:00:00Z`
    : text.replace(/ (?=\d{2}:\d{2}$)/, '+')
  const ms = parseTime(complete)
  if (ms === null) {
    throw invalidQuery(
      name,
      `${name} must be an RFC 3339 time such as 2026-06-23T12:00:00Z, or a date such as 2026-06-23`,
    )
  }
  return ms
}

/** A positive integer, reduced to `max`. Throws 400 `invalid_query`. */
export function readLimit(query: Query, byDefault: number, max: number): number {
  const text = query.one('limit')
  if (text === undefined) return byDefault
  if (!/^[0-9]+$/.test(text) || Number(text) < 1) {
    throw invalidQuery(
      'limit',
      `limit must be a positive integer. Values above ${max} are reduced to ${max}.`,
    )
  }
  return Math.min(Number(text), max)
}

/**
 * The contents of the cursor, null without one. A cursor belongs to one list, organization and set of filters; the
 * request may omit the filters. Throws 400 `invalid_query` when they differ.
 */
export function readCursor<Filters, Position>(
  cursorCipher: Cipher,
  list: string,
  orgId: string,
  query: Query,
  filters: Filters | null,
): { filters: Filters; position: Position } | null {
  const text = query.one('cursor')
  if (text === undefined) return null
  const contents = cursorCipher.decrypt(list, text) as [string, Filters, Position] | null
  if (!contents || contents[0] !== orgId) throw invalidQuery('cursor', 'Invalid cursor.')
  if (filters !== null && JSON.stringify(filters) !== JSON.stringify(contents[1])) {
    throw invalidQuery('cursor', 'This cursor was issued for other filters. Send it without filters.')
  }
  return { filters: contents[1], position: contents[2] }
}

export function encodeCursor(
  cursorCipher: Cipher,
  list: string,
  orgId: string,
  filters: unknown,
  position: unknown,
): string {
  return cursorCipher.encrypt(list, [orgId, filters, position])
}
