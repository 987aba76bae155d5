/** Counts of a page that follow the address and the live stream: asked anew when either says so, old ones dimmed. */
import { batch, type ReadonlySignal, signal } from '@preact/signals'
import { ApiError, type EventFilter, type EventPage } from '../api/api.ts'
import { followLive, type LiveState } from '../live/live.ts'

export interface CountsSource<T> {
  counts: (params: URLSearchParams, signal: AbortSignal) => Promise<T>
  newest: (filter: EventFilter, signal: AbortSignal) => Promise<EventPage>
  live: (filter: EventFilter, after: string, signal: AbortSignal) => Promise<Response>
  /** The last counts of the same range, if they are remembered: shown, dimmed, until the new ones come. */
  recall?: (params: URLSearchParams) => T | null
  remember?: (params: URLSearchParams, counted: T) => void
}

export interface CountsModel<T> {
  data: ReadonlySignal<T | null>
  stale: ReadonlySignal<boolean> // what is shown is that of the range before
  error: ReadonlySignal<ApiError | null>
  connection: ReadonlySignal<LiveState>
  start(params: URLSearchParams): void
  stop(): void
}

/**
 * After an event the counts are asked anew at most this often, and less often where counting takes long: an open page
 * must not keep the appliance busy. The stream is left meanwhile: a flood need not travel to a page that only counts.
 */
const pauseMs = 1_000
const pauseTimes = 5
const soonMs = 100
const retryMs = 4_000
const hourMs = 3_600_000

/** `types` are the events whose arrival changes the counts; [] means every event. */
export function createCounts<T>(source: CountsSource<T>, types: string[]): CountsModel<T> {
  const data = signal<T | null>(null)
  const stale = signal(false)
  const error = signal<ApiError | null>(null)
  const connection = signal<LiveState>({ state: 'connecting' })
  const filter: EventFilter = { types, outcomes: [] }
  let running = new AbortController()

  async function follow(params: URLSearchParams, stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      // The place in the stream is taken before counting: what comes in between is seen twice, not missed.
      const { live } = await source.newest(filter, stop)
      const askedAtMs = performance.now()
      const counted = await source.counts(params, stop)
      const countedAtMs = performance.now()
      const restMs = Math.max(pauseMs, pauseTimes * (countedAtMs - askedAtMs))
      if (stop.aborted) return
      source.remember?.(params, counted)
      batch(() => {
        if (!isSame(data.peek(), counted)) data.value = counted
        stale.value = false
        error.value = null
      })
      await nextArrival(source, filter, live, stop, (state) => (connection.value = state))
      // After a quiet time the first event is counted almost at once.
      await sleep(Math.max(soonMs, countedAtMs + restMs - performance.now()), stop)
    }
  }

  async function run(params: URLSearchParams, stop: AbortSignal): Promise<void> {
    try {
      await follow(params, stop)
    } catch (cause) {
      if (stop.aborted) return
      if (!(cause instanceof ApiError)) throw cause
      batch(() => {
        error.value = cause
        connection.value = { state: 'lost', error: cause, retryInMs: retryMs }
      })
      // A wrong range stays wrong; an appliance that does not answer comes back.
      if (cause.status !== 0 && cause.status < 500) return
      await sleep(Math.max(retryMs, (cause.retryAfterS ?? 0) * 1_000), stop)
      if (!stop.aborted) await run(params, stop)
    }
  }

  return {
    data,
    stale,
    error,
    connection,
    start(params) {
      running.abort()
      running = new AbortController()
      batch(() => {
        data.value = source.recall?.(params) ?? data.peek()
        stale.value = data.peek() !== null
      })
      void run(params, running.signal)
    },
    stop: () => running.abort(),
  }
}

/** Whether there is nothing to draw anew: at most the clock went on, by a few minutes. */
function isSame(before: unknown, after: unknown): boolean {
  const minutes = 'YYYY-MM-DDTHH:M'.length
  const text = (counted: unknown): string =>
    JSON.stringify(counted, (name, value: unknown) =>
      name === 'now' && typeof value === 'string' ? value.slice(0, minutes) : value,
    )
  return before !== null && text(before) === text(after)
}

/** Resolves when an event came, when an hour has passed (a running range moves on), or when `stop` aborts. */
async function nextArrival<T>(
  source: CountsSource<T>,
  filter: EventFilter,
  after: string,
  stop: AbortSignal,
  onState: (state: LiveState) => void,
): Promise<void> {
  const arrived = new AbortController()
  const timer = setTimeout(() => arrived.abort(), hourMs / 4)
  await followLive({
    after,
    open: (from, signal) => source.live(filter, from, signal),
    onEvents: () => arrived.abort(),
    onState,
    onForgotten: () => arrived.abort(),
    signal: AbortSignal.any([stop, arrived.signal]),
  })
  clearTimeout(timer)
}

function sleep(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    stop.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
