/** What `init` takes and gives, and what an exporter is. */
import type { CompleteEvent, TraceEvent } from './event.ts'
import type { OnError } from './problem.ts'
import type { Session, VisitorOptions, VisitorRequest } from './visitor-session.ts'

/** Where events go. `createIntelExporter` and `createBrowserExporter` make two; any object of this shape will do. */
export interface Exporter {
  /** Takes one event. Must return at once. */
  export(event: CompleteEvent): unknown
  /** Resolves when everything taken so far is delivered or given up. */
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
  /** Names your organization. Safe in a browser; an ingest or secret key is refused. */
  publishableKey: string
  exporters: Exporter[]
  /** For events that do not name their site. */
  siteId?: string
  /**
   * For events that do not name their session; a fresh one for this client when left out. That suits a page or a
   * script. A server has many visitors: use `client.session(request)`.
   */
  sessionId?: string
  /**
   * Makes the ids of `client.session` hard to guess back. Give the processes of one site the same text, so that they
   * agree on a visitor's session. The publishable key when left out.
   */
  sessionSecret?: string
  /** Share of the events to keep, 0 to 1. Errors and blocks are always kept. */
  sample?: number
  /** Names or dotted paths of members to scrub besides passwords, tokens, authorization, cookies and secrets. */
  scrub?: string[]
  /** Hears of every problem. Without it they are warned about on the console. */
  onError?: OnError
}

export interface Client {
  readonly sessionId: string
  /** Queues one event. Never throws; what is wrong goes to `onError`. */
  trace(event: TraceEvent): void
  /**
   * The session of one visitor, kept until 30 minutes without a call. The visitor is a request, identified by user
   * agent and address, or a text of yours, such as a conversation's id. Never throws.
   */
  session(visitor: string | VisitorRequest, options?: VisitorOptions): Session
  /** Resolves when everything traced so far is delivered or given up. Never rejects. */
  flush(timeoutMs?: number): Promise<void>
  /** Flushes and ends; later traces are reported and not sent. Never rejects. */
  close(timeoutMs?: number): Promise<void>
}
