/** What the Logs page knows: rows, live stream, pause, history. The view reads it and calls its verbs. */
import { computed, type ReadonlySignal, signal } from '@preact/signals'
import { ApiError, type EventFilter, type EventPage, type ReceivedEvent } from '../../api.ts'
import { isoTime } from '../../clock.ts'
import { followLive, type LiveState } from '../../live.ts'
import { addArrivals, addOlder, emptyList, type Entry, type EntryList, trim } from './entries.ts'

/** The calls the model needs, given to it so that tests can stand in for the server. */
export interface LogsSource {
  events: (
    filter: EventFilter,
    page: { limit: number; cursor?: string | null; until?: string | null },
    signal?: AbortSignal,
  ) => Promise<EventPage>
  live: (filter: EventFilter, after: string, signal: AbortSignal) => Promise<Response>
}

export interface LogsModel {
  entries: ReadonlySignal<Entry[]>
  loaded: ReadonlySignal<boolean> // the first page of this filter is there
  error: ReadonlySignal<ApiError | null>
  connection: ReadonlySignal<LiveState>
  paused: ReadonlySignal<boolean>
  waiting: ReadonlySignal<number> // arrivals not shown yet, because paused or scrolled away
  hasOlder: ReadonlySignal<boolean>
  loadingOlder: ReadonlySignal<boolean>
  outcomesSeen: ReadonlySignal<Set<string>>
  start(filter: EventFilter): void
  stop(): void
  retry(): void
  pause(on: boolean): void
  /** The reader scrolled away from the top (true) or came back: rows must not move under his eyes. */
  hold(on: boolean): void
  loadOlder(): Promise<void>
}

const pageSize = 100
const rowsMax = 5_000
const flushEveryMs = 100
/** Empty pages of history are possible when all of their events are shown already; this many are passed at once. */
const knownPagesMax = 20

export function createLogsModel(source: LogsSource): LogsModel {
  const list = signal<EntryList>(emptyList)
  const loaded = signal(false)
  const error = signal<ApiError | null>(null)
  const connection = signal<LiveState>({ state: 'connecting' })
  const paused = signal(false)
  const held = signal(false)
  const pending = signal(0) // arrivals since the last flush
  const cursor = signal<string | null>(null)
  const askAgainUntilMs = signal<number | null>(null)
  const loadingOlder = signal(false)
  const outcomesSeen = signal(new Set<string>())
  let buffer: ReceivedEvent[] = []
  let overflowed = false
  let filter: EventFilter = { types: [], outcomes: [] }
  let running = new AbortController()
  let flushTimer = 0

  function note(events: ReceivedEvent[]): void {
    const seen = outcomesSeen.peek()
    const fresh = events.map((item) => item.event.outcome).filter((outcome) => !seen.has(outcome))
    if (fresh.length > 0) outcomesSeen.value = new Set([...seen, ...fresh])
  }

  /** Shows what came, at most ten times a second, however fast it comes. */
  function flush(): void {
    flushTimer = 0
    if (paused.peek() || held.peek()) return
    if (overflowed) return restart()
    const arrived = buffer
    buffer = []
    pending.value = 0
    if (arrived.length === 0) return
    note(arrived)
    const { list: kept, latestGoneMs } = trim(addArrivals(list.peek(), arrived), rowsMax)
    list.value = kept
    if (latestGoneMs !== null) {
      // The cursor stands below rows that went: history is asked for anew from the latest of them.
      askAgainUntilMs.value = Math.max(latestGoneMs, askAgainUntilMs.peek() ?? 0)
      cursor.value = null
    }
  }

  function arrive(events: ReceivedEvent[]): void {
    buffer.push(...events)
    if (buffer.length > rowsMax) {
      // More than the table can hold came while nobody looked: the newest page is fetched afresh then.
      buffer = buffer.slice(-rowsMax)
      overflowed = true
    }
    pending.value += events.length
    if (flushTimer === 0) flushTimer = Number(setTimeout(flush, flushEveryMs))
  }

  async function open(signal: AbortSignal): Promise<void> {
    try {
      const page = await source.events(filter, { limit: pageSize }, signal)
      if (signal.aborted) return
      list.value = addOlder(emptyList, page.events)
      cursor.value = page.nextCursor
      askAgainUntilMs.value = null
      loaded.value = true
      error.value = null
      note(page.events)
      await followLive({
        after: page.live,
        open: (after, stop) => source.live(filter, after, stop),
        onEvents: arrive,
        onState: (state) => (connection.value = state),
        onForgotten: restart,
        signal,
      })
    } catch (cause) {
      if (signal.aborted) return
      if (!(cause instanceof ApiError)) throw cause
      error.value = cause
      connection.value = { state: 'lost', error: cause, retryInMs: 0 }
    }
  }

  function stop(): void {
    running.abort()
    clearTimeout(flushTimer)
    flushTimer = 0
    buffer = []
    overflowed = false
    pending.value = 0
  }

  function restart(): void {
    stop()
    running = new AbortController()
    connection.value = { state: 'connecting' }
    void open(running.signal)
  }

  async function nextOlder(): Promise<void> {
    const { signal } = running
    for (let pages = 0; pages < knownPagesMax; pages++) {
      const untilMs = askAgainUntilMs.peek()
      const until = untilMs === null ? null : isoTime(untilMs + 1)
      const page = await source.events(filter, { limit: pageSize, cursor: cursor.peek(), until }, signal)
      if (signal.aborted) return
      askAgainUntilMs.value = null
      cursor.value = page.nextCursor
      const before = list.peek()
      list.value = addOlder(before, page.events)
      note(page.events)
      if (list.peek() !== before || page.nextCursor === null) return
    }
  }

  return {
    entries: computed(() => list.value.entries),
    loaded,
    error,
    connection,
    paused,
    waiting: computed(() => (paused.value || held.value ? pending.value : 0)),
    hasOlder: computed(() => cursor.value !== null || askAgainUntilMs.value !== null),
    loadingOlder,
    outcomesSeen,
    start(next) {
      filter = next
      list.value = emptyList
      cursor.value = null
      loaded.value = false
      error.value = null
      held.value = false
      restart()
    },
    stop,
    retry: restart,
    pause(on) {
      paused.value = on
      flush()
    },
    hold(on) {
      if (held.peek() === on) return
      held.value = on
      flush()
    },
    async loadOlder() {
      if (loadingOlder.peek() || (cursor.peek() === null && askAgainUntilMs.peek() === null)) return
      loadingOlder.value = true
      try {
        await nextOlder()
      } catch (cause) {
        // A break in the history is told by the connection line; the next scroll tries again.
        if (!(cause instanceof ApiError) && !running.signal.aborted) throw cause
      } finally {
        loadingOlder.value = false
      }
    },
  }
}
