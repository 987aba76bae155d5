/** The options and the result of `init`, and the interface of exporters. */
import type { CompleteEvent, TraceEvent } from './event.ts'
import type { OnError } from './problem.ts'
import type { Session, VisitorOptions, VisitorRequest } from './visitor-session.ts'

/** Sends events somewhere. Use `createIntelExporter`, `createBrowserExporter`, or an object of your own. */
export interface Exporter {
  /** Queues one event. Must not block. */
  export(event: CompleteEvent): unknown
  /** Resolves when all queued events were delivered or dropped. */
  flush?(timeoutMs?: number): Promise<unknown>
  close?(timeoutMs?: number): Promise<unknown>
  /** Called once by `init`. */
  attach?(host: ExporterHost): void
}

export interface ExporterHost {
  publishableKey: string
  report: OnError
}

export interface InitOptions {
  /** Identifies your organization. Safe in a browser. Ingest and secret keys are rejected. */
  publishableKey: string
  exporters: Exporter[]
  /** The site of events without `siteId`. */
  siteId?: string
  /**
   * The session of events without `sessionId`. By default each client has a new one, which suits a page or a
   * script. On a server, use `client.session(request)`.
   */
  sessionId?: string
  /**
   * Hashed into the ids of `client.session`, so that nobody can compute an address from an id. Processes of one site
   * need the same value to agree on the session of a visitor. Default: the publishable key.
   */
  sessionSecret?: string
  /** Share of events to send, 0 to 1. Errors and blocked events are always sent. Default: 1. */
  sample?: number
  /** Fields to scrub, by name or dotted path, in addition to passwords, tokens, authorization, cookies and secrets. */
  scrub?: string[]
  /** Receives every problem. By default problems are logged with `console.warn`. */
  onError?: OnError
}

export interface Client {
  readonly sessionId: string
  /** Queues one event. Never throws; problems are reported to `onError`. */
  trace(event: TraceEvent): void
  /**
   * The session of one visitor, which ends after 30 minutes without a call. `visitor` is a request, identified by user
   * agent and address, or an id of your own, such as a conversation id. Never throws.
   */
  session(visitor: string | VisitorRequest, options?: VisitorOptions): Session
  /** Resolves when all queued events were delivered or dropped. Never rejects. */
  flush(timeoutMs?: number): Promise<void>
  /** Flushes and closes. Later events are reported and not sent. Never rejects. */
  close(timeoutMs?: number): Promise<void>
}
