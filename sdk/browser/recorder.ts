/**
 * Records the calls of the WebMCP tools of a page, from the first registration on. There may be no client yet: at most
 * 1,000 events wait for one. It is small, because a script at the top of the page may contain it.
 */
import { nowMs } from '../platform/clock.ts'
import { formCalls } from './form-calls.ts'
import { onAbort, replaceMethod, type ModelContext, type PageWindow } from './model-context.ts'
import { watchedTool, type ToolCall } from './wrap-tool.ts'
import type { TraceEvent } from '../client/event.ts'

export interface WebMcpOptions {
  /** Also records arguments, results and the messages of errors, each up to 8,192 characters. Default: false. */
  content?: boolean
}

/** The fields of a tool that an implementation has read. */
type Fields = { [name: PropertyKey]: unknown }

export interface WebMcpRecorder {
  /** Sends what was recorded and whatever follows. Returns a function that ends it. */
  connect(trace: (event: TraceEvent) => void, options?: WebMcpOptions): () => void
  /** Adds the agent and the page. */
  trace(event: TraceEvent): void
  /** Calls `follow` when there is a context, `changed` after registrations. */
  watch(follow: (context: ModelContext) => void, changed: () => void): void
  /** Registrations by name, for implementations without `getTools`. */
  own: Map<string, Fields>
}

const waitingMax = 1_000
const ownMax = 1_000
const contentCharsMax = 8_192

/** Starts to record. A page needs one recorder: use `recorderOf`. */
function recordWebMcp(page: PageWindow, options: WebMcpOptions): WebMcpRecorder {
  let sink: ((event: TraceEvent) => void) | null = null
  let isStopped = false
  let withContent = options.content === true
  const waiting: TraceEvent[] = []
  const trace = (event: TraceEvent): void => {
    const metadata = { page: page.location.pathname, ...event.metadata }
    const agent = { class: 'webmcp', trust: 'detected' }
    const complete = { occurredAt: nowMs(), agent, ...event, metadata }
    if (sink !== null) sink(complete)
    else if (!isStopped && waiting.length < waitingMax) waiting.push(complete)
  }
  const { start, leave } = recordCalls(page, trace, () => withContent)
  const ownTools = new Map<string, Fields>()
  let follow = (_: ModelContext): void => {}
  let changed = (): void => {}
  const registered = (fields: Fields, registration: unknown): void => {
    const { name } = fields
    if (typeof name === 'string' && !ownTools.has(name) && ownTools.size < ownMax) {
      ownTools.set(name, fields)
      onAbort(registration, () => {
        ownTools.delete(name)
        changed()
      })
    }
    changed()
  }
  const forms = formCalls(page, start)
  let context: ModelContext | null = null
  const install = (): void => {
    if (context !== null) return
    context = page.document.modelContext ?? page.navigator?.modelContext ?? null
    if (context === null) return
    wrapRegisterTool(context, start, registered)
    forms.follow(context)
    follow(context)
  }
  install()
  // An implementation in JavaScript may arrive after this script.
  for (const name of ['DOMContentLoaded', 'load']) page.addEventListener(name, install)
  // Captured, so that it runs before the exporter sends its last events.
  const hide = (): void => {
    forms.left()
    leave()
  }
  page.addEventListener('pagehide', hide, true)
  return {
    connect(to, { content } = {}) {
      install()
      sink = to
      withContent = content ?? withContent
      for (const event of waiting.splice(0)) to(event)
      return () => {
        if (sink !== to) return
        sink = null
        isStopped = true
      }
    },
    trace,
    watch(onFollow, onChange) {
      follow = onFollow
      changed = onChange
      if (context !== null) follow(context)
    },
    own: ownTools,
  }
}

const recorderKey = Symbol.for('sightglass.webmcp')

/** The recorder of this page, which the script tag may have started. */
export function recorderOf(page: PageWindow, options: WebMcpOptions = {}): WebMcpRecorder {
  const holder = page as PageWindow & { [recorderKey]?: WebMcpRecorder }
  return (holder[recorderKey] ??= recordWebMcp(page, options))
}

interface Calls {
  start(name: string, input: unknown, extraMetadata?: object): ToolCall
  /** Calls that the page leaves behind cannot report how they end. */
  leave(): void
}

function recordCalls(
  page: PageWindow,
  trace: (event: TraceEvent) => void,
  withContent: () => boolean,
): Calls {
  const open = new Set<ToolCall>()
  const start: Calls['start'] = (name, input, extraMetadata = {}) => {
    const startMs = page.performance.now()
    const args = withContent() ? { arguments: contentOf(input) } : {}
    const call: ToolCall = {
      end(outcome, details = {}) {
        if (!open.delete(call)) return
        const result = withContent() && 'result' in details ? { result: contentOf(details.result) } : {}
        trace({
          type: 'tool.executed',
          tool: cleanText(name, 200),
          outcome,
          durationMs: Math.round((page.performance.now() - startMs) * 10) / 10,
          ...('error' in details ? { error: errorText(details.error, withContent()) } : {}),
          metadata: { ...extraMetadata, ...args, ...result },
        })
      },
    }
    open.add(call)
    return call
  }

  const leave = (): void => {
    for (const call of open) call.end('aborted', { error: { name: 'PageLeft' } })
  }
  return { start, leave }
}

/** Replaces `registerTool` where it is defined, so that also `ModelContext.prototype.registerTool.call` is seen. */
function wrapRegisterTool(
  context: ModelContext,
  start: (name: string, input: unknown) => ToolCall,
  registered: (fields: Fields, options: unknown) => void,
): void {
  const startCall = (name: string, input: unknown, callOptions: unknown): ToolCall => {
    const call = start(name, input)
    onAbort(callOptions, () => call.end('aborted'))
    return call
  }
  replaceMethod(context, 'registerTool', (register, self, args) => {
    const { view, fields } = watchedTool(args[0], startCall)
    const result = Reflect.apply(register, self, args.length === 0 ? args : [view, ...args.slice(1)])
    registered(fields, args[1])
    return result
  })
}

/** Without NUL and unpaired surrogates, which the appliance rejects. */
export function cleanText(text: string, charsMax: number): string {
  return text.slice(0, charsMax).replace(/\0|\p{Cs}/gu, '\ufffd')
}

/** Messages may contain arguments, so by default only the kind of an error is recorded. */
function errorText(error: unknown, withContent: boolean): string {
  try {
    if (typeof error !== 'object' || error === null)
      return withContent ? cleanText(String(error), 2_000) : typeof error
    const { name, message } = error as { name?: unknown; message?: unknown }
    const kind = typeof name === 'string' && /^[\w$.]{1,64}$/.test(name) ? name : 'Error'
    return withContent ? cleanText(`${kind}: ${String(message)}`, 2_000) : kind
  } catch {
    return 'Error'
  }
}

/** A copy, because the page may change the value later. */
function contentOf(value: unknown): unknown {
  try {
    const text = JSON.stringify(value) ?? 'null'
    return text.length > contentCharsMax ? `[${text.length} characters]` : JSON.parse(text)
  } catch {
    return '[not JSON]'
  }
}
