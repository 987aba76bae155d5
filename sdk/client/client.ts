/**
 * `init`: creates the client from its options. `trace` completes, scrubs, samples and exports an event, and never
 * throws.
 */
import { completeEvent, type CompleteEvent, type TraceEvent } from './event.ts'
import { requireKey } from '../wire/connection.ts'
import { reporter, type OnError, type Problem } from './problem.ts'
import type { Observed } from './observed.ts'
import { createScrub } from './scrub.ts'
import {
  visitorKey,
  visitorSessions,
  type Session,
  type VisitorOptions,
  type VisitorRequest,
} from './visitor-session.ts'
import type { Platform } from '../platform/platform.ts'
import type { Tool } from '../sync/intel-sync.ts'

/** Sends events somewhere. Use `createIntelExporter`, `createBrowserExporter`, or an object of your own. */
export interface Exporter {
  /**
   * Queues one event. Must not block. `observed` is what the server saw of the request. It holds the sender's address:
   * pass it on to nothing but an appliance.
   */
  export(event: CompleteEvent, observed?: Observed): unknown
  /** Whether `observed` is of use: the appliance judges by it. */
  observes?(): boolean
  /** Resolves when all queued events were delivered or dropped. */
  flush?(timeoutMs?: number): Promise<unknown>
  close?(timeoutMs?: number): Promise<unknown>
  /** Sends what changed in the tool registry of a page. `createBrowserExporter` does. Must not block. */
  tools?(change: ToolChange): unknown
  /** Called once by `init`. */
  attach?(host: ExporterHost): void
}

/** New and changed tools of a page, and the names of those that it has unregistered. */
export interface ToolChange {
  tools: Tool[]
  removed: string[]
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
  trace(event: TraceEvent, observed?: Observed): void
  /** Whether an appliance judges by what the middleware saw. */
  observes(): boolean
  /**
   * The session of one visitor, which ends after 30 minutes without a call. `visitor` is a request, identified by user
   * agent and address, or an id of your own, such as a conversation id. Never throws.
   */
  session(visitor: string | VisitorRequest, options?: VisitorOptions): Session
  /** Passes a change of the tool registry to the exporters that have `tools`. Never throws. */
  tools(change: ToolChange): void
  /** Resolves when all queued events were delivered or dropped. Never rejects. */
  flush(timeoutMs?: number): Promise<void>
  /** Flushes and closes. Later events are reported and not sent. Never rejects. */
  close(timeoutMs?: number): Promise<void>
}

/** Throws on invalid options, so that a mistake shows at the first start. */
export function startClient(
  options: InitOptions,
  platform: Pick<Platform, 'nowMs' | 'isPage' | 'uuid' | 'sha256'>,
): Client {
  const { exporters, siteId, sample = 1 } = checked(options)
  const report = reporter(options.onError)
  const scrub = createScrub(options.scrub)
  // Created on first use, because some edge runtimes have no random numbers before the first request.
  let sessionId = options.sessionId
  const defaults = {
    siteId,
    nowMs: platform.nowMs,
    uuid: platform.uuid,
    get sessionId(): string {
      sessionId ??= `sess_${platform.uuid()}`
      return sessionId
    },
  }
  let isOpen = true
  for (const exporter of exporters) exporter.attach?.({ publishableKey: options.publishableKey, report })

  const forEachExporter = async (
    act: (exporter: Exporter) => Promise<unknown> | undefined,
  ): Promise<void> => {
    const ends = exporters.map(async (exporter) => act(exporter))
    for (const end of await Promise.allSettled(ends)) {
      if (end.status === 'rejected') report(exporterFailed(end.reason))
    }
  }
  const sessionIdOf = visitorSessions(options.sessionSecret ?? options.publishableKey, platform)
  // Without a session id, a server would put all visitors into one session.
  let mayWarn = options.sessionId === undefined && !platform.isPage
  const trace = (event: TraceEvent, observed?: Observed): void => {
    try {
      if (!isOpen) throw new Error('the client is closed')
      const complete = scrub(completeEvent(event, defaults))
      if (mayWarn && event.sessionId === undefined) {
        mayWarn = false
        report(noSession)
      }
      if (!isSampled(complete, sample, event.sessionId ?? options.sessionId, Math.random)) return
      for (const exporter of exporters) exportTo(exporter, complete, observed, report)
    } catch (error) {
      report({ code: 'invalid_event', message: `An event was not sent: ${textOf(error)}.`, cause: error })
    }
  }
  return {
    get sessionId() {
      return defaults.sessionId
    },
    trace,
    observes: () => isOpen && exporters.some((exporter) => exporter.observes?.() === true),
    session(visitor, visitorOptions) {
      let { sessionId } = defaults
      try {
        sessionId = sessionIdOf(visitorKey(visitor, visitorOptions))
      } catch (error) {
        const message = `The visitor could not be identified: ${textOf(error)}.`
        report({ code: 'no_session', message, cause: error })
      }
      return sessionNamed(sessionId, trace)
    },
    tools: (change) => void (isOpen && forEachExporter(async (exporter) => exporter.tools?.(change))),
    flush: (timeoutMs) => forEachExporter((exporter) => exporter.flush?.(timeoutMs)),
    close(timeoutMs) {
      isOpen = false
      return forEachExporter((exporter) => exporter.close?.(timeoutMs))
    },
  }
}

function sessionNamed(sessionId: string, trace: Client['trace']): Session {
  return {
    sessionId,
    trace: (event, observed) => trace({ ...event, sessionId: event?.sessionId ?? sessionId }, observed),
  }
}

const noSession: Problem = {
  code: 'no_session',
  message:
    'An event has no session, so all visitors of this client share one. ' +
    'Use client.session(request).trace(event), or set sessionId in init if there is only one visitor.',
}

function checked(options: InitOptions): InitOptions {
  requireKey('publishableKey', options.publishableKey, 'publishable')
  const { exporters, sample = 1 } = options
  if (!Array.isArray(exporters) || exporters.some((exporter) => typeof exporter?.export !== 'function')) {
    throw new TypeError('exporters must be an array, such as [createIntelExporter({ url, ingestKey })]')
  }
  if (!(sample >= 0 && sample <= 1)) throw new TypeError('sample must be a number from 0 to 1')
  return options
}

function exportTo(
  exporter: Exporter,
  event: CompleteEvent,
  observed: Observed | undefined,
  report: OnError,
): void {
  try {
    const result = observed === undefined ? exporter.export(event) : exporter.export(event, observed)
    if (result instanceof Promise) result.catch((error: unknown) => report(exporterFailed(error)))
  } catch (error) {
    report(exporterFailed(error))
  }
}

function exporterFailed(error: unknown): { code: 'exporter_failed'; message: string; cause: unknown } {
  return { code: 'exporter_failed', message: `An exporter failed: ${textOf(error)}.`, cause: error }
}

/** Any value can be thrown, including objects that cannot be converted to a string. */
function textOf(error: unknown): string {
  try {
    return error instanceof Error ? error.message : String(error)
  } catch {
    return 'unknown error'
  }
}

/**
 * Whether to send the event at `rate` (0 to 1). Events with a session id of the host are sent or dropped together, so
 * that sessions stay complete; `random` decides about the others.
 */
export function isSampled(
  event: CompleteEvent,
  rate: number,
  sampleKey: string | undefined,
  random: () => number,
): boolean {
  if (rate >= 1 || event.outcome === 'error' || event.outcome === 'blocked') return true
  if (event.policy?.decision === 'deny') return true
  return (sampleKey === undefined ? random() : share(sampleKey)) < rate
}

/** A number from 0 to 1 that depends only on the text: FNV-1a with a final mix. */
export function share(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b)
  return ((hash ^ (hash >>> 16)) >>> 0) / 0x1_0000_0000
}
