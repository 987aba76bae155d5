/** What is known of a request beside the request itself: its id, sender, listener, and who it turned out to be. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { ApiKey, SignInView } from '../../db/store.ts'
import type { Taken } from './token-buckets.ts'

export interface RequestContext {
  id: string // req_…, sent back as x-request-id
  startedMs: number // performance.now()
  address: string // the client's, after trusted proxies
  secure: boolean // reached us (or the trusted proxy) by https
  local: boolean // the person reached us under a loopback name
  listener: 'main' | 'ingest' | 'metrics'
  route?: string // the pattern that took it
  key?: ApiKey
  rateLimits?: ({ policy: 'address' | 'key' } & Taken)[] // those that applied, passed or not
  signIn?: SignInView
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

/** The context the listener attached; a request without one is a fault of ours. */
export function contextOf(request: Request): RequestContext {
  const context = contexts.get(request)
  if (!context) throw new Error('request has no context')
  return context
}
