/** `createBrowserExporter`: sends a page's events to your backend, where a relay adds the key that no browser has. */
import type { Exporter } from '../client/client-options.ts'
import type { CompleteEvent } from '../client/event.ts'
import { type OnError, reporter } from '../client/problem.ts'

export interface BrowserExporterOptions {
  /** Of the relay on your backend, such as /traces. */
  url: string
  /** 1,000 by default. */
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

const waitingMax = 1_000 // a page that cannot send must not fill the visitor's memory
const batchMax = 50
const beaconCharsMax = 16_000 // a leaving page has 64 KiB for all beacons together
const failuresMax = 5

/** Batches, repeats a few times, and hands over what is left when the page is hidden. */
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
  const onHidden = (): void => {
    if (document.visibilityState === 'hidden') leave(state)
  }
  if (typeof document !== 'undefined') {
    document.addEventListener('visibilitychange', onHidden)
    window.addEventListener('pagehide', () => leave(state))
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
          message: 'An event was dropped: too many wait already.',
          count: 1,
        })
        return false
      }
      state.waiting.push(event)
      schedule(state, intervalMs)
      return true
    },
    flush,
    async close() {
      await flush()
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

/** One request at a time; a second caller waits for the first one's. */
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
    // No connection: as good as a 503.
  }
  const isTaken = status >= 200 && status < 300
  const isPassing = status === 0 || status === 429 || status >= 500
  if (isPassing && ++state.failures < failuresMax) return
  state.waiting.splice(0, events.length)
  state.failures = 0
  if (isTaken) return
  const message = `The relay did not take ${events.length} events (${status === 0 ? 'no connection' : status}).`
  state.report({ code: 'rejected', message, count: events.length, ...(status === 0 ? {} : { status }) })
}

/** A beacon outlives the page. What does not fit into one stays, in case the page comes back. */
function leave(state: State): void {
  while (state.waiting.length > 0) {
    let count = Math.min(state.waiting.length, batchMax)
    let body = bodyOf(state, state.waiting.slice(0, count))
    while (body.length > beaconCharsMax && count > 1) {
      count = Math.floor(count / 2)
      body = bodyOf(state, state.waiting.slice(0, count))
    }
    // Text needs no preflight, for which a leaving page has no time; the relay reads it all the same.
    if (!navigator.sendBeacon(state.url, body)) return
    state.waiting.splice(0, count)
  }
}

function bodyOf({ publishableKey }: State, events: CompleteEvent[]): string {
  return JSON.stringify({ publishableKey, events })
}
