/** What the Webhooks page knows: endpoints, notices and deliveries, asked anew while somebody looks. */
import { batch, computed, type ReadonlySignal, signal } from '@preact/signals'
import { ApiError } from '../../api.ts'
import type { Delivery, DeliveryFilter, DeliveryStatus, Endpoint, Notice } from '../../webhook-api.ts'

export interface WebhooksSource {
  deliveries: (
    filter: DeliveryFilter,
    cursor: string | null,
    signal: AbortSignal,
  ) => Promise<{ deliveries: Delivery[]; nextCursor: string | null }>
  endpoints: (signal?: AbortSignal) => Promise<Endpoint[]>
  notices: (signal?: AbortSignal) => Promise<Notice[]>
}

export interface Shown {
  endpoints: Endpoint[]
  notices: Notice[]
  deliveries: Delivery[] // newest first
  filter: DeliveryFilter
}

export interface WebhooksModel {
  shown: ReadonlySignal<Shown | null>
  stale: ReadonlySignal<boolean> // the rows are still those of the filter before
  error: ReadonlySignal<ApiError | null>
  hasOlder: ReadonlySignal<boolean>
  start(filter: DeliveryFilter): void
  refresh(): void
  loadOlder(): Promise<void>
  stop(): void
}

const statuses: readonly DeliveryStatus[] = ['pending', 'delivered', 'dead_letter']

export function deliveryFilterOf(query: URLSearchParams): DeliveryFilter {
  const wanted = query.get('status')
  return {
    status: statuses.find((status) => status === wanted) ?? null,
    endpointId: query.get('endpoint') || null,
  }
}

/** The newest page joined with older rows that were loaded before: each delivery once, in its newest state. */
export function joined(newest: Delivery[], older: Delivery[]): Delivery[] {
  const ids = new Set(newest.map((delivery) => delivery.id))
  return [...newest, ...older.filter((delivery) => !ids.has(delivery.id))]
}

/** Deliveries are no events, so no stream tells of them; a hidden page asks for nothing. */
const refreshMs = 3_000

export function createWebhooksModel(source: WebhooksSource): WebhooksModel {
  const shown = signal<Shown | null>(null)
  const stale = signal(false)
  const error = signal<ApiError | null>(null)
  const cursor = signal<string | null>(null)
  let running = new AbortController()
  let timer = 0
  let filter: DeliveryFilter = { status: null, endpointId: null }
  let older: Delivery[] = []

  async function load(stop: AbortSignal, again: boolean): Promise<void> {
    clearTimeout(timer)
    try {
      const [page, endpoints, notices] = await Promise.all([
        source.deliveries(filter, null, stop),
        source.endpoints(stop),
        source.notices(stop),
      ])
      if (stop.aborted) return
      batch(() => {
        // Older rows stay as they were when loaded, unless the newest page has them too.
        if (older.length === 0) cursor.value = page.nextCursor
        shown.value = { endpoints, notices, deliveries: joined(page.deliveries, older), filter }
        stale.value = false
        error.value = null
      })
    } catch (cause) {
      if (stop.aborted) return
      if (!(cause instanceof ApiError)) throw cause
      error.value = cause
    }
    if (again) timer = Number(setTimeout(() => tick(stop), refreshMs))
  }
  function tick(stop: AbortSignal): void {
    if (stop.aborted) return
    const hidden = typeof document !== 'undefined' && document.visibilityState === 'hidden'
    if (hidden) timer = Number(setTimeout(() => tick(stop), refreshMs))
    else void load(stop, true)
  }
  return {
    shown,
    stale,
    error,
    hasOlder: computed(() => cursor.value !== null),
    start(wanted) {
      running.abort()
      running = new AbortController()
      filter = wanted
      older = []
      stale.value = shown.peek() !== null
      void load(running.signal, true)
    },
    refresh: () => void load(running.signal, true),
    async loadOlder() {
      const stop = running.signal
      if (cursor.peek() === null) return
      try {
        const page = await source.deliveries(filter, cursor.peek(), stop)
        if (stop.aborted) return
        const before = shown.peek()
        older = joined(before?.deliveries ?? [], page.deliveries)
        cursor.value = page.nextCursor
        if (before) shown.value = { ...before, deliveries: older }
      } catch (cause) {
        if (stop.aborted) return
        if (!(cause instanceof ApiError)) throw cause
        error.value = cause
      }
    },
    stop() {
      running.abort()
      clearTimeout(timer)
    },
  }
}
