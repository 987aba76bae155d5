/** The state of Logs: rows, live stream, pause and history. */
import { computed, signal, type ReadonlySignal, type Signal } from '@preact/signals'
import { ApiError, type EventFilter, type EventPage, type ReceivedEvent } from '../../api/api.ts'
import { followLive, sleep, type LiveState } from '../../live/live.ts'
import { addArrivals, addOlder, emptyList, trim, type Entry, type EntryList } from './entries.ts'
import { isSearch } from './filter.ts'
import { isoTime } from '../../app/clock.ts'

/** The calls of the model, as a parameter for tests. */
export interface LogsSource {
  events: (
    filter: EventFilter,
    page: { limit: number; cursor?: string | null; until?: string | null },
    signal?: AbortSignal,
  ) => Promise<EventPage>
  live: (filter: EventFilter, position: string, signal: AbortSignal) => Promise<Response>
  /** The cached newest page of the same filter, shown as stale until the new one arrives. */
  readCached?: (filter: EventFilter) => ReceivedEvent[] | null
  writeCached?: (filter: EventFilter, events: ReceivedEvent[]) => void
}

export interface LogsModel {
  entries: ReadonlySignal<Entry[]>
  loaded: ReadonlySignal<boolean> // the first page has loaded
  stale: ReadonlySignal<boolean> // the rows still belong to the previous filter
  error: ReadonlySignal<ApiError | null>
  connection: ReadonlySignal<LiveState>
  paused: ReadonlySignal<boolean>
  waiting: ReadonlySignal<number> // new events that are not shown yet, because the list is paused or scrolled away
  hasOlder: ReadonlySignal<boolean>
  loadingOlder: ReadonlySignal<boolean>
  outcomesSeen: ReadonlySignal<Set<string>>
  still: ReadonlySignal<boolean> // a text search, which is not followed live
  start(filter: EventFilter): void
  stop(): void
  retry(): void
  pause(isPaused: boolean): void
  /** Set when the reader scrolls away from the top: rows must not move while they are read. */
  hold(isHeld: boolean): void
  loadOlder(): Promise<void>
}

export const pageSize = 100
const rowsMax = 5_000
const flushEveryMs = 100
/** Nobody reads hundreds of rows per second. At such rates, smooth frames matter more than latency. */
const flushManyEveryMs = 250
const manyAtOnce = 20

/** The state of the model. Values that the view shows are signals. */
interface State {
  source: LogsSource
  list: Signal<EntryList>
  loaded: Signal<boolean>
  stale: Signal<boolean>
  error: Signal<ApiError | null>
  connection: Signal<LiveState>
  paused: Signal<boolean>
  held: Signal<boolean>
  pending: Signal<number> // events since the last flush
  history: Signal<HistoryPlace>
  loadingOlder: Signal<boolean>
  outcomesSeen: Signal<Set<string>>
  still: Signal<boolean>
  buffer: ReceivedEvent[]
  overflowed: boolean // more events arrived than the table holds while it was paused
  filter: EventFilter
  running: AbortController
  flushTimer: number
  lastFlushed: number
}

function newState(source: LogsSource): State {
  return {
    source,
    list: signal<EntryList>(emptyList),
    loaded: signal(false),
    stale: signal(false),
    error: signal<ApiError | null>(null),
    connection: signal<LiveState>({ state: 'connecting' }),
    paused: signal(false),
    held: signal(false),
    pending: signal(0),
    history: signal<HistoryPlace>(noHistory),
    loadingOlder: signal(false),
    outcomesSeen: signal(new Set<string>()),
    still: signal(false),
    buffer: [],
    overflowed: false,
    filter: { types: [], outcomes: [] },
    running: new AbortController(),
    flushTimer: 0,
    lastFlushed: 0,
  }
}

function noteOutcomes({ outcomesSeen }: State, events: ReceivedEvent[]): void {
  const seenOutcomes = outcomesSeen.peek()
  const fresh = events.map((item) => item.event.outcome).filter((outcome) => !seenOutcomes.has(outcome))
  if (fresh.length > 0) outcomesSeen.value = new Set([...seenOutcomes, ...fresh])
}

/** Shows new events at most ten times per second, and four times at high rates. */
function flush(state: State): void {
  state.flushTimer = 0
  if (state.paused.peek() || state.held.peek()) return
  if (state.overflowed) return restart(state)
  const arrived = state.buffer
  state.buffer = []
  state.lastFlushed = arrived.length
  state.pending.value = 0
  if (arrived.length === 0) return
  noteOutcomes(state, arrived)
  const { list, latestRemovedMs } = trim(addArrivals(state.list.peek(), arrived), rowsMax)
  state.list.value = list
  if (latestRemovedMs === null) return
  // The cursor is below the removed rows, so history is fetched again from the latest of them.
  const untilMs = Math.max(latestRemovedMs, state.history.peek().untilMs ?? 0)
  state.history.value = { cursor: null, untilMs }
}

function arrive(state: State, events: ReceivedEvent[]): void {
  state.buffer.push(...events)
  if (state.buffer.length > rowsMax) {
    // The newest page is fetched again when the list resumes.
    state.buffer = state.buffer.slice(-rowsMax)
    state.overflowed = true
  }
  state.pending.value += events.length
  const soonMs = state.lastFlushed > manyAtOnce ? flushManyEveryMs : flushEveryMs
  if (state.flushTimer === 0) state.flushTimer = Number(setTimeout(() => flush(state), soonMs))
}

const retryMs = 4_000

async function open(state: State, running: AbortSignal): Promise<void> {
  try {
    const page = await state.source.events(state.filter, { limit: pageSize }, running)
    if (running.aborted) return
    state.source.writeCached?.(state.filter, page.events)
    state.list.value = addOlder(emptyList, page.events)
    state.history.value = page.nextCursor === null ? noHistory : { cursor: page.nextCursor, untilMs: null }
    state.loaded.value = true
    state.stale.value = false
    state.error.value = null
    noteOutcomes(state, page.events)
    if (state.still.peek()) return await searchOn(state, running)
    await followLive({
      after: page.live,
      open: (position, stop) => state.source.live(state.filter, position, stop),
      onEvents: (events) => arrive(state, events),
      onState: (connection) => (state.connection.value = connection),
      onForgotten: () => restart(state),
      signal: running,
    })
  } catch (cause) {
    if (running.aborted) return
    if (!(cause instanceof ApiError)) throw cause
    state.error.value = cause
    // A rejected query stays rejected. A server or database that is away is asked again.
    const isAway = cause.status === 0 || cause.status >= 500
    state.connection.value = { state: 'lost', error: cause, retryInMs: isAway ? retryMs : 0 }
    if (isAway) await sleep(retryMs, running)
    if (isAway && !running.aborted) restart(state)
  }
}

/** A search may find nothing in many pages. It continues until it has a row to show. */
async function searchOn(state: State, running: AbortSignal): Promise<void> {
  while (!running.aborted && state.list.peek().entries.length === 0 && state.history.peek() !== noHistory) {
    const from = state.history.peek()
    await loadOlder(state)
    if (state.history.peek() === from) return // the search was interrupted; the next scroll continues it
  }
}

function stop(state: State): void {
  state.running.abort()
  clearTimeout(state.flushTimer)
  state.flushTimer = 0
  state.buffer = []
  state.overflowed = false
  state.pending.value = 0
}

function restart(state: State): void {
  stop(state)
  state.running = new AbortController()
  state.connection.value = { state: 'connecting' }
  void open(state, state.running.signal)
}

async function loadOlder(state: State): Promise<void> {
  const from = state.history.peek()
  if (state.loadingOlder.peek() || from === noHistory) return
  const running = state.running.signal
  state.loadingOlder.value = true
  try {
    const { list, history } = await olderPage(state.list.peek(), from, (page) =>
      state.source.events(state.filter, { limit: pageSize, ...page }, running),
    )
    // Rows were removed meanwhile and left a gap above this page, so history is fetched again from the gap.
    if (running.aborted || state.history.peek() !== from) return
    state.list.value = addOlder(state.list.peek(), list)
    state.history.value = history
    noteOutcomes(state, list)
  } catch (cause) {
    // The connection status shows the failure; the next scroll retries.
    if (!(cause instanceof ApiError) && !running.aborted) throw cause
  } finally {
    state.loadingOlder.value = false
  }
}

function start(state: State, filter: EventFilter): void {
  state.filter = filter
  state.still.value = isSearch(filter)
  const cachedEvents = state.source.readCached?.(filter) ?? []
  if (cachedEvents.length > 0) {
    state.list.value = addOlder(emptyList, cachedEvents)
    state.loaded.value = true
    noteOutcomes(state, cachedEvents)
  }
  // The previous rows stay, dimmed, until the new ones arrive, because an empty table would flash.
  state.stale.value = state.loaded.peek()
  state.history.value = noHistory
  state.held.value = false
  restart(state)
}

export function createLogsModel(source: LogsSource): LogsModel {
  const state = newState(source)
  const {
    loaded,
    stale,
    error,
    connection,
    paused,
    held: heldSignal,
    pending,
    history,
    loadingOlder,
    outcomesSeen,
  } = state
  const change = (flag: Signal<boolean>, isOn: boolean): void => {
    if (flag.peek() === isOn) return
    flag.value = isOn
    flush(state)
  }
  return {
    entries: computed(() => state.list.value.entries),
    loaded,
    stale,
    error,
    connection,
    paused,
    waiting: computed(() => (paused.value || heldSignal.value ? pending.value : 0)),
    hasOlder: computed(() => history.value.cursor !== null || history.value.untilMs !== null),
    loadingOlder,
    outcomesSeen,
    still: state.still,
    start: (filter) => start(state, filter),
    stop: () => stop(state),
    retry: () => restart(state),
    pause: (isPaused) => change(paused, isPaused),
    hold: (isHeld) => change(heldSignal, isHeld),
    loadOlder: () => loadOlder(state),
  }
}

/** History is read by the cursor of the previous page, or by time where rows were removed. */
interface HistoryPlace {
  cursor: string | null
  untilMs: number | null // rows at and before this time were removed; history is fetched again from there
}

/** The end of history. */
const noHistory: HistoryPlace = { cursor: null, untilMs: null }

/** A page may contain only events that are shown already. The limit is the number of rows in the table. */
const knownPagesMax = 60

type Ask = (page: { cursor: string | null; until: string | null }) => Promise<EventPage>

/** The next events that are not in the list, with the position to continue from; empty at the end of history. */
async function olderPage(
  shown: EntryList,
  from: HistoryPlace,
  ask: Ask,
): Promise<{ list: ReceivedEvent[]; history: HistoryPlace }> {
  let history = from
  for (let pages = 0; pages < knownPagesMax; pages++) {
    const { cursor, untilMs } = history
    // `until` is exclusive, and there may be more events in that millisecond.
    const page = await ask({ cursor, until: untilMs === null ? null : isoTime(untilMs + 1) })
    history = page.nextCursor === null ? noHistory : { cursor: page.nextCursor, untilMs: null }
    const list = page.events.filter((item) => !shown.ids.has(item.event.id))
    if (list.length > 0 || history === noHistory) return { list, history }
  }
  return { list: [], history }
}
