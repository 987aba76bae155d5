/** `createIntelExporter`: queues events of a client or a relay and delivers them to the appliance in batches. */
import { plural, reporter, type OnError } from '../client/problem.ts'
import { connectionTo, isLoopback, type Fetch } from '../wire/connection.ts'
import { unref } from '../wire/retry.ts'
import {
  defaultLimits,
  deliver,
  flushWithin,
  isBatchFull,
  judgesObserved,
  type Delivery,
  type ExporterStats,
} from './delivery.ts'
import { createDropReport, createQueue, type DropReport, type QueuedEvent } from './queue.ts'
import type { Exporter, ExporterHost } from '../client/client.ts'
import type { CompleteEvent } from '../client/event.ts'
import type { Observed } from '../client/observed.ts'
import type { Platform, Spool } from '../platform/platform.ts'

export interface IntelExporterOptions {
  /** Address of the appliance, such as https://sightglass.example. */
  url: string
  /** `agtx_ik_…`, from Settings → SDK ingest keys. Use it on servers only. */
  ingestKey: string
  /** A batch is sent when it has this many events … Default: 500. */
  batchEventsMax?: number
  /** … or this many bytes … Default: 1 MiB. */
  batchBytesMax?: number
  /** … or after this time. Default: 1,000. */
  intervalMs?: number
  /** Maximum number of queued events; more are dropped and counted. Default: 200,000. */
  queueEventsMax?: number
  /** Maximum bytes of queued events. Default: 64 MiB. */
  queueBytesMax?: number
  /** Default: true, except for an appliance on the same machine. */
  gzip?: boolean
  /** Path of a file that stores queued events across restarts of the process. Node.js, Bun and Deno only. */
  spool?: string
  requestTimeoutMs?: number
  /** First and longest pause between attempts. Default: 500 and 30,000. */
  backoffMinMs?: number
  backoffMaxMs?: number
  /** How long `close` and the exit of the process wait for the last events. Default: 5,000. */
  closeTimeoutMs?: number
  /** Receives problems. Default: `onError` of the client. */
  onError?: OnError
  fetch?: Fetch
}

export interface IntelExporter extends Exporter {
  /** False when the event was dropped or too large. */
  export(event: CompleteEvent, observed?: Observed): boolean
  /** Whether the appliance judges by what is observed. Asks it when that is not known yet. */
  observes(): boolean
  /** True when all events queued before the call were sent in time. */
  flush(timeoutMs?: number): Promise<boolean>
  /** True when all events were sent. The next process sends the rest of a spool. */
  close(timeoutMs?: number): Promise<boolean>
  stats(): ExporterStats
}

interface ExporterState {
  state: Delivery
  drops: DropReport
  platform: Platform
  intervalMs: number
  timer: { handle: ReturnType<typeof setTimeout>; isSoon: boolean } | null
  isOpen: boolean
}

const refusedRetryMs = 5 * 60_000

/** Throws on an invalid key, address or spool. Nothing throws afterwards. */
export function startIntelExporter(options: IntelExporterOptions, platform: Platform): IntelExporter {
  const state = deliveryOf(options, platform)
  const drops = createDropReport(platform.nowMs, (problem) => state.report(problem))
  const exporter: ExporterState = {
    state,
    drops,
    platform,
    intervalMs: options.intervalMs ?? 1_000,
    timer: null,
    isOpen: true,
  }
  const closeTimeoutMs = options.closeTimeoutMs ?? 5_000
  state.spool = openSpool(options.spool, state, platform)
  state.onSettled.add(() => state.failures === 0 && drops.flush())
  const flush = (timeoutMs = 30_000): Promise<boolean> => flushWithin(state, () => run(exporter), timeoutMs)
  const cancelIdleExit = platform.onIdleExit(async () => reportUnsent(await flush(closeTimeoutMs), state))
  if (state.queue.count > 0) schedule(exporter)
  return {
    attach(host: ExporterHost) {
      if (options.onError === undefined) state.report = reporter(host.report)
    },
    export: (event, observed) => enqueue(exporter, event, observed),
    observes: () => judgesObserved(state),
    flush,
    async close(timeoutMs = closeTimeoutMs) {
      if (!exporter.isOpen) return state.queue.count === 0
      exporter.isOpen = false
      cancelIdleExit()
      const isEmpty = await flush(timeoutMs)
      state.stop.abort()
      state.waiting?.pause.cut()
      if (exporter.timer !== null) clearTimeout(exporter.timer.handle)
      drops.flush()
      reportUnsent(isEmpty, state)
      state.spool?.close()
      return isEmpty
    },
    stats: () => ({
      ...state.counts,
      queued: state.queue.count,
      queuedBytes: state.queue.bytes,
      dropped: drops.total(),
      refusal: state.refusal,
    }),
  }
}

function deliveryOf(options: IntelExporterOptions, platform: Platform): Delivery {
  const { url, ingestKey, fetch, requestTimeoutMs, batchBytesMax = 1024 * 1024 } = options
  return {
    connection: connectionTo({
      url,
      key: ingestKey,
      kind: 'ingest',
      option: 'ingestKey',
      fetch,
      requestTimeoutMs,
    }),
    platform,
    queue: createQueue({
      eventsMax: options.queueEventsMax ?? 200_000,
      bytesMax: options.queueBytesMax ?? 64 * 1024 * 1024,
    }),
    options: {
      batchEventsMax: options.batchEventsMax ?? 500,
      batchBytesMax,
      backoffMinMs: options.backoffMinMs ?? 500,
      backoffMaxMs: options.backoffMaxMs ?? 30_000,
      refusedRetryMs,
    },
    counts: { accepted: 0, deduped: 0, rejected: 0, requests: 0 },
    stop: new AbortController(),
    report: reporter(options.onError),
    spool: null,
    limits: defaultLimits,
    knowsLimits: false,
    limitsAskedMs: null,
    asking: null,
    compress: options.gzip ?? !isLoopback(url),
    bytesMax: batchBytesMax,
    due: 0,
    settled: 0,
    failures: 0,
    refusal: null,
    running: false,
    waiting: null,
    onSettled: new Set(),
  }
}

/** Queues the events of an earlier process first, which preserves the order across restarts. */
function openSpool(path: string | undefined, state: Delivery, platform: Platform): Spool | null {
  if (path === undefined) return null
  if (platform.openSpool === null) throw new TypeError('spool needs a file system: Node.js, Bun or Deno')
  const spool = platform.openSpool(path, (cause) => {
    state.spool = null
    state.report({
      code: 'spool_failed',
      message: 'The spool cannot be written. Events wait in memory only.',
      cause,
    })
  })
  for (const text of spool.pending) state.queue.restore({ text, bytes: platform.byteLength(text) })
  spool.pending = []
  if (spool.damaged > 0) {
    const message = `${spool.damaged} damaged lines of the spool were dropped. The other events are sent.`
    state.report({ code: 'spool_failed', message, count: spool.damaged })
  }
  return spool
}

function enqueue(exporter: ExporterState, event: CompleteEvent, observed?: Observed): boolean {
  const { state, drops, platform } = exporter
  if (!exporter.isOpen) {
    state.report({ code: 'unsent', message: 'An event after close was dropped.', count: 1 })
    return false
  }
  const text = textOf(event)
  if (text === null) {
    const message =
      'An event was not sent: it contains a value that JSON cannot hold, such as a bigint or a cycle.'
    state.report({ code: 'invalid_event', message })
    return false
  }
  const bytes = platform.byteLength(text)
  if (bytes > state.limits.eventBytesMax) {
    const message = `An event of ${bytes} bytes was not sent: ${state.limits.eventBytesMax} are allowed.`
    state.report({ code: 'event_too_large', message, issues: [{ ...tooLarge, id: event.id }] })
    return false
  }
  const queued: QueuedEvent = { text, bytes }
  // An appliance that does not judge gets no address, so none is kept for it.
  if (observed !== undefined && (judgesObserved(state) || !state.knowsLimits))
    queued.observed = `${JSON.stringify(event.id)}:${JSON.stringify(observed)}`
  if (!state.queue.push(queued)) {
    drops.add()
    return false
  }
  state.spool?.append(text)
  schedule(exporter)
  return true
}

function textOf(event: CompleteEvent): string | null {
  try {
    return JSON.stringify(event)
  } catch {
    return null
  }
}

const tooLarge = { path: '', code: 'too_large', message: 'is too large' }

/** Sends a full batch at the end of this event-loop tick, and a partial one after the interval. */
function schedule(exporter: ExporterState): void {
  const { state, timer } = exporter
  if (state.running || state.refusal !== null) return
  const isSoon = isBatchFull(state)
  if (timer !== null && (timer.isSoon || !isSoon)) return
  startTimer(exporter, isSoon ? 0 : exporter.intervalMs, isSoon)
}

function startTimer(exporter: ExporterState, ms: number, isSoon: boolean): void {
  if (exporter.timer !== null) clearTimeout(exporter.timer.handle)
  const act = (): void => {
    exporter.timer = null
    exporter.state.due = exporter.state.queue.count
    void run(exporter)
  }
  exporter.timer = { handle: unref(setTimeout(act, ms)), isSoon }
}

async function run(exporter: ExporterState): Promise<void> {
  const { state } = exporter
  await deliver(state)
  if (state.stop.signal.aborted || state.running) return
  if (state.refusal !== null) startTimer(exporter, state.options.refusedRetryMs, false)
  else if (state.queue.count > 0) schedule(exporter)
}

function reportUnsent(isEmpty: boolean, state: Delivery): void {
  const { count } = state.queue
  if (isEmpty || count === 0) return
  const fate = state.spool === null ? 'got lost' : 'will be sent from the spool after the next start'
  state.report({ code: 'unsent', message: `${plural(count)} could not be sent in time and ${fate}.`, count })
}
