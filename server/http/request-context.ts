/** What is known of a request beside the request itself: its id, sender, listener, and who it turned out to be. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { ApiKey, SignInView } from '../../db/contract/store.ts'
import type { Owner, Share, Shares } from './shares.ts'

/** A token bucket after a request. */
export interface BucketState {
  count: number // of the limit
  windowMs: number
  remaining: number
  fullMs: number // until the whole burst is there again
  waitMs: number // 0: the request may pass; else until it would
}

export interface RequestContext {
  id: string // req_…, sent back as x-request-id
  startedMs: number // performance.now()
  address: string // the client's, after trusted proxies
  secure: boolean // reached us (or the trusted proxy) by https
  local: boolean // the person reached us under a loopback name
  listener: 'main' | 'ingest' | 'metrics'
  route?: string // the pattern that took it
  key?: ApiKey
  rateLimits?: ({ policy: 'address' | 'key' } & BucketState)[] // those that applied, passed or not
  signIn?: SignInView
  underWay: { bodies: Shares; answers: Shares } // bytes, of everybody
  body?: Share // what this request's body takes of them
  /** Ends the idle timer of this connection, for streams that may be quiet. */
  keepOpen(): void
}

const contexts = new WeakMap<Request, RequestContext>()

export function setContext(request: Request, context: RequestContext): void {
  contexts.set(request, context)
}

const running = new AsyncLocalStorage<RequestContext>()

/** Runs what answers a request, so that audit entries made on the way say who sent it and from where. */
export function withContext<T>(context: RequestContext, work: () => T): T {
  return running.run(context, work)
}

/** The request that this code runs for; null in jobs, on the command line and at ingest, which writes no entries. */
export function runningContext(): RequestContext | null {
  return running.getStore() ?? null
}

/** Whose share a request takes. */
export function ownerOf({ key, signIn, address }: RequestContext): Owner {
  if (key !== undefined) return { orgId: key.orgId, holderId: key.id }
  if (signIn !== undefined) return { orgId: signIn.org.id, holderId: signIn.account.id }
  return { orgId: '', holderId: address }
}

/** The context the listener attached; a request without one is a fault of ours. */
export function contextOf(request: Request): RequestContext {
  const context = contexts.get(request)
  if (!context) throw new Error('request has no context')
  return context
}

/** Null for a request that came through no listener. */
export function contextIfAny(request: Request): RequestContext | null {
  return contexts.get(request) ?? null
}

/**
 * The request with an absolute address. Without a valid Host header Bun's `url` is the bare path, which this module and
 * the router would cut at different places: a path checked here would not be the path that is served.
 */
export function withWholeUrl(request: Request): Request {
  if (request.url.startsWith('http://')) return request
  if (request.url.startsWith('https://')) {
    // The router looks for the path behind `http://` only. The same object goes on: its body and its signal are bound
    // to the connection, and who asks whether it was secure asks its context.
    return Object.defineProperty(request, 'url', { value: `http${request.url.slice('https'.length)}` })
  }
  return new Request(`http://unnamed.invalid/${request.url.replace(/^\//, '')}`, request)
}

/** Needs an absolute address. */
export function pathOf(request: Request): string {
  const start = request.url.indexOf('/', request.url.indexOf('://') + 3)
  if (start === -1) return '/'
  const end = request.url.indexOf('?', start)
  return end === -1 ? request.url.slice(start) : request.url.slice(start, end)
}
