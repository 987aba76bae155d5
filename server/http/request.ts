/** The context of a request: id, sender, listener, path, and who it was authenticated as. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { ApiKey, SignInView } from '../../db/contract/store.ts'
import type { Owner, Share, Shares } from './shares.ts'

/** A token bucket after a request. */
export interface BucketState {
  count: number // of the limit
  windowMs: number
  remaining: number
  fullMs: number // until the bucket is full again
  waitMs: number // until the next request is accepted; 0 when this one was
}

export interface RequestContext {
  id: string // req_…, sent back as x-request-id
  startedMs: number // performance.now()
  address: string // of the client, behind trusted proxies
  secure: boolean // received over https, by us or by the trusted proxy
  local: boolean // the Host header is a loopback name
  listener: 'main' | 'ingest' | 'metrics'
  route?: string // the pattern that matched
  key?: ApiKey
  rateLimits?: ({ policy: 'address' | 'key' } & BucketState)[] // the limits that applied
  signIn?: SignInView
  inFlight: { bodies: Shares; responses: Shares } // bytes, of all clients
  body?: Share // of this request's body
  /** Disables the idle timeout of this connection, for streams that may be quiet. */
  keepOpen(): void
}

const contexts = new WeakMap<Request, RequestContext>()

export function setContext(request: Request, context: RequestContext): void {
  contexts.set(request, context)
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
export function ownerOf({ key, signIn, address }: RequestContext): Owner {
  if (key !== undefined) return { orgId: key.orgId, holderId: key.id }
  if (signIn !== undefined) return { orgId: signIn.org.id, holderId: signIn.account.id }
  return { orgId: '', holderId: address }
}

/** The context that the listener attached. */
export function contextOf(request: Request): RequestContext {
  const context = contexts.get(request)
  if (!context) throw new Error('request has no context')
  return context
}

/** Null for a request that did not come through a listener. */
export function contextIfAny(request: Request): RequestContext | null {
  return contexts.get(request) ?? null
}

/**
 * The request with an absolute URL. Without a valid Host header Bun's `url` is the bare path, which this module and the
 * router would split differently: the path checked here would not be the path served.
 */
export function withAbsoluteUrl(request: Request): Request {
  if (request.url.startsWith('http://')) return request
  if (request.url.startsWith('https://')) {
    // The router only finds the path after `http://`. The same object is reused because its body and signal are bound
    // to the connection; whether it was secure is in its context.
    return Object.defineProperty(request, 'url', { value: `http${request.url.slice('https'.length)}` })
  }
  return new Request(`http://unnamed.invalid/${request.url.replace(/^\//, '')}`, request)
}

/** Requires an absolute URL. */
export function pathOf(request: Request): string {
  const start = request.url.indexOf('/', request.url.indexOf('://') + 3)
  if (start === -1) return '/'
  const end = request.url.indexOf('?', start)
  return end === -1 ? request.url.slice(start) : request.url.slice(start, end)
}
