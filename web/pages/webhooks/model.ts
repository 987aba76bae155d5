/** The data of the Webhooks page: endpoints, notices, alerts and deliveries, polled while the page is visible. */
import { readCache, writeCache } from '../../query/query.ts'
import { batch, computed, type ReadonlySignal, type Signal, signal } from '@preact/signals'
import { ApiError } from '../../api/api.ts'
import type { Delivery, DeliveryFilter, DeliveryStatus } from '../../api/webhook-api.ts'
import type { Endpoint, Incident, Notice } from '../../api/webhook-api.ts'

interface WebhooksSource {
  deliveries: (
    filter: DeliveryFilter,
    cursor: string | null,
    signal: AbortSignal,
  ) => Promise<{ deliveries: Delivery[]; nextCursor: string | null }>
  endpoints: (signal?: AbortSignal) => Promise<Endpoint[]>
  notices: (signal?: AbortSignal) => Promise<Notice[]>
  incidents: (signal?: AbortSignal) => Promise<Incident[]>
}

export interface Shown {
  endpoints: Endpoint[]
  notices: Notice[]
  incidents: Incident[] // open ones first
  deliveries: Delivery[] // newest first
  filter: DeliveryFilter
}

export interface WebhooksModel {
  shown: ReadonlySignal<Shown | null>
  stale: ReadonlySignal<boolean> // the rows still belong to the previous filter
  error: ReadonlySignal<ApiError | null>
  hasOlder: ReadonlySignal<boolean>
  start(filter: DeliveryFilter): void
  refresh(): void
  loadOlder(): Promise<void>
  stop(): void
}

const statuses: readonly DeliveryStatus[] = ['pending', 'delivered', 'dead_letter']

export function deliveryFilterOf(query: URLSearchParams): DeliveryFilter {
  const name = query.get('status')
  return {
    status: statuses.find((status) => status === name) ?? null,
    endpointId: query.get('endpoint') || null,
  }
}

/** The newest page plus older rows loaded before: each delivery once, in its newest state. */
export function joined(newest: Delivery[], older: Delivery[]): Delivery[] {
  const ids = new Set(newest.map((delivery) => delivery.id))
  return [...newest, ...older.filter((delivery) => !ids.has(delivery.id))]
}

/** Deliveries are polled because no stream reports them. A hidden page does not poll. */
export const refreshMs = 3_000

interface State {
  source: WebhooksSource
  shown: Signal<Shown | null>
  stale: Signal<boolean>
  error: Signal<ApiError | null>
  cursor: Signal<string | null>
  running: AbortController
  timer: number
  filter: DeliveryFilter
  older: Delivery[]
}

/** Runs a request. An API error is shown on the page, any other is thrown. */
async function showingErrors(state: State, stop: AbortSignal, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (cause) {
    if (stop.aborted) return
    if (!(cause instanceof ApiError)) throw cause
    state.error.value = cause
  }
}

const cacheKey = (filter: DeliveryFilter): string => `webhooks?${JSON.stringify(filter)}`

async function load(state: State): Promise<void> {
  const { source, filter } = state
  const stop = state.running.signal
  clearTimeout(state.timer)
  await showingErrors(state, stop, async () => {
    const [page, endpoints, notices, incidents] = await Promise.all([
      source.deliveries(filter, null, stop),
      source.endpoints(stop),
      source.notices(stop),
      source.incidents(stop),
    ])
    if (stop.aborted) return
    batch(() => {
      // Older rows are not refreshed, unless the newest page contains them.
      if (state.older.length === 0) state.cursor.value = page.nextCursor
      const deliveries = joined(page.deliveries, state.older)
      state.shown.value = { endpoints, notices, incidents, deliveries, filter }
      writeCache(cacheKey(filter), { ...state.shown.value, deliveries: page.deliveries })
      state.stale.value = false
      state.error.value = null
    })
  })
  if (!stop.aborted) state.timer = Number(setTimeout(() => tick(state, stop), refreshMs))
}

function tick(state: State, stop: AbortSignal): void {
  if (stop.aborted) return
  const hidden = typeof document !== 'undefined' && document.visibilityState === 'hidden'
  if (hidden) state.timer = Number(setTimeout(() => tick(state, stop), refreshMs))
  else void load(state)
}

async function loadOlder(state: State): Promise<void> {
  const stop = state.running.signal
  const from = state.cursor.peek()
  if (from === null) return
  await showingErrors(state, stop, async () => {
    const page = await state.source.deliveries(state.filter, from, stop)
    if (stop.aborted) return
    const previousView = state.shown.peek()
    state.older = joined(previousView?.deliveries ?? [], page.deliveries)
    state.cursor.value = page.nextCursor
    if (previousView) state.shown.value = { ...previousView, deliveries: state.older }
  })
}

export function createWebhooksModel(source: WebhooksSource): WebhooksModel {
  const state: State = {
    source,
    shown: signal<Shown | null>(null),
    stale: signal(false),
    error: signal<ApiError | null>(null),
    cursor: signal<string | null>(null),
    running: new AbortController(),
    timer: 0,
    filter: { status: null, endpointId: null },
    older: [],
  }
  return {
    shown: state.shown,
    stale: state.stale,
    error: state.error,
    hasOlder: computed(() => state.cursor.value !== null),
    start(filter) {
      state.running.abort()
      state.running = new AbortController()
      state.filter = filter
      state.older = []
      state.shown.value = readCache<Shown>(cacheKey(filter)) ?? state.shown.peek()
      state.stale.value = state.shown.peek() !== null
      void load(state)
    },
    refresh: () => void load(state),
    loadOlder: () => loadOlder(state),
    stop() {
      state.running.abort()
      clearTimeout(state.timer)
    },
  }
}
