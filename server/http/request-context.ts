/** What is known of a request beside the request itself: its id, sender, listener, and who it turned out to be. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { ApiKey, SignInView } from '../../db/contract/store.ts'
import type { Owner, Share, Shares } from './shares.ts'
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
