/** What `init` takes and gives, and what an exporter is. */
import type { CompleteEvent, TraceEvent } from './event.ts'
import type { OnError } from './problem.ts'

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
  /** For events that do not name their session; a fresh one for this client when left out. */
  sessionId?: string
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
  /** Resolves when everything traced so far is delivered or given up. Never rejects. */
  flush(timeoutMs?: number): Promise<void>
  /** Flushes and ends; later traces are reported and not sent. Never rejects. */
  close(timeoutMs?: number): Promise<void>
}
