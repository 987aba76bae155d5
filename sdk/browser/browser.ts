/**
 * `@sightglass/sdk/browser`: the entry point for pages. `createBrowserExporter` sends the events of a page to the relay
 * on your backend, which adds the ingest key.
 */
import { startClient, type Client, type Exporter, type InitOptions } from '../client/client.ts'
import { edgePlatform } from '../platform/edge-platform.ts'
import { plural, reporter, type OnError } from '../client/problem.ts'
import { createToolSender } from './send-tools.ts'
import type { CompleteEvent } from '../client/event.ts'

export { captureWebMcp, type WebMcpOptions } from './webmcp.ts'

/** Throws on invalid options. Nothing throws afterwards. */
export function init(options: InitOptions): Client {
  return startClient(options, { ...edgePlatform, isPage: true })
}

interface BrowserExporterOptions {
  /** Address of the relay on your backend, such as /traces. */
  url: string
  /** Time between batches. Default: 1,000. */
  intervalMs?: number
  onError?: OnError
}

interface State {
  url: string
  publishableKey: string
  report: OnError
  waiting: CompleteEvent[]
  failures: number
  timer: ReturnType<typeof setTimeout> | null
  sending: Promise<void> | null
}

const waitingMax = 1_000 // bounds the memory of a page that cannot send
const batchMax = 50
const beaconCharsMax = 16_000 // all beacons of a closing page share 64 KiB
const failuresMax = 5

/** Sends batches, retries up to five times, and sends the rest as beacons when the page is hidden. */
export function createBrowserExporter(options: BrowserExporterOptions): Exporter {
  const state: State = {
    url: options.url,
    publishableKey: '',
    report: reporter(options.onError),
    waiting: [],
    failures: 0,
    timer: null,
    sending: null,
  }
  const intervalMs = options.intervalMs ?? 1_000
  const flush = async (): Promise<void> => {
    while (state.waiting.length > 0 && state.failures === 0) await send(state)
  }
  const tools = createToolSender({
    url: options.url,
    publishableKey: () => state.publishableKey,
    report: (problem) => state.report(problem),
  })
  const onHidden = (): void => {
    if (document.visibilityState === 'hidden') leave(state)
  }
  if (typeof document !== 'undefined') {
    document.addEventListener('visibilitychange', onHidden)
    window.addEventListener('pagehide', () => {
      leave(state)
      tools.leave()
    })
  }
  return {
    attach(host) {
      state.publishableKey = host.publishableKey
      if (options.onError === undefined) state.report = host.report
    },
    export(event) {
      if (state.waiting.length >= waitingMax) {
        state.report({
          code: 'queue_full',
          message: `An event was dropped, because ${waitingMax} events are waiting.`,
          count: 1,
        })
        return false
      }
      state.waiting.push(event)
      schedule(state, intervalMs)
      return true
    },
    tools: tools.change,
    flush,
    async close() {
      await flush()
      tools.close()
      if (state.timer !== null) clearTimeout(state.timer)
    },
  }
}

function schedule(state: State, intervalMs: number): void {
  state.timer ??= setTimeout(
    async () => {
      state.timer = null
      await send(state)
      if (state.waiting.length > 0) schedule(state, intervalMs)
    },
    intervalMs * 2 ** state.failures,
  )
}

/** Runs one request at a time. A second caller waits for the first. */
function send(state: State): Promise<void> {
  state.sending ??= post(state).finally(() => {
    state.sending = null
  })
  return state.sending
}

async function post(state: State): Promise<void> {
  const events = state.waiting.slice(0, batchMax)
  if (events.length === 0) return
  let status = 0
  try {
    const headers = { 'content-type': 'application/json' }
    status = (await fetch(state.url, { method: 'POST', headers, body: bodyOf(state, events) })).status
  } catch {
    // No connection counts as a retryable failure.
  }
  const isAccepted = status >= 200 && status < 300
  const isRetryable = status === 0 || status === 429 || status >= 500
  if (isRetryable && ++state.failures < failuresMax) return
  state.waiting.splice(0, events.length)
  state.failures = 0
  if (isAccepted) return
  const message = `The relay did not accept ${plural(events.length)} (${status === 0 ? 'no connection' : `status ${status}`}).`
  state.report({ code: 'rejected', message, count: events.length, ...(status === 0 ? {} : { status }) })
}

/** Beacons outlive the page. Events that do not fit stay in the queue, in case the page becomes visible again. */
function leave(state: State): void {
  while (state.waiting.length > 0) {
    let count = Math.min(state.waiting.length, batchMax)
    let body = bodyOf(state, state.waiting.slice(0, count))
    while (body.length > beaconCharsMax && count > 1) {
      count = Math.floor(count / 2)
      body = bodyOf(state, state.waiting.slice(0, count))
    }
    // A text body needs no preflight request, for which a closing page has no time.
    if (!navigator.sendBeacon(state.url, body)) return
    state.waiting.splice(0, count)
  }
}

function bodyOf({ publishableKey }: State, events: CompleteEvent[]): string {
  return JSON.stringify({ publishableKey, events })
}
