/**
 * What was pushed, as a page holds it. A push is no event, so no stream tells of it: it is asked for anew when the site
 * changes, when events of its kind come, and when the page is looked at again; an empty page looks again by itself.
 */
import { effect, type ReadonlySignal, signal, untracked } from '@preact/signals'
import { ApiError } from '../api/api.ts'
import type { Question } from './queries.ts'
import { recall, remember } from './query-cache.ts'

export interface Pushed<T> {
  list: T[]
  hasMore: boolean // there are more than a page can hold
}

export interface PushedModel<T> {
  data: ReadonlySignal<Pushed<T> | null>
  error: ReadonlySignal<ApiError | null>
  retry(): void
  stop(): void
}

interface PushedSource<T> {
  of: (siteIds: string[]) => Question<Pushed<T>> // its last answer for the same sites is shown until the new one comes
  siteIds: ReadonlySignal<string> // as JSON text
  moved: ReadonlySignal<unknown> // changes when events of its kind came
  freshMs?: number // what was asked for so lately is not asked for again
}

const emptyPauseMs = 2_000

export function createPushed<T>(source: PushedSource<T>): PushedModel<T> {
  const data = signal<Pushed<T> | null>(null)
  const error = signal<ApiError | null>(null)
  const freshMs = source.freshMs ?? 5_000
  let running = new AbortController()
  let askedAtMs = Number.NEGATIVE_INFINITY
  let timer = 0

  async function ask(): Promise<void> {
    running.abort()
    running = new AbortController()
    const stop = running.signal
    const question = source.of(JSON.parse(source.siteIds.peek()) as string[])
    askedAtMs = performance.now()
    clearTimeout(timer)
    try {
      const found = await question.ask(stop)
      if (stop.aborted) return
      remember(question.text, found)
      data.value = found
      error.value = null
      if (found.list.length === 0) timer = Number(setTimeout(() => void ask(), emptyPauseMs))
    } catch (cause) {
      if (stop.aborted) return
      if (!(cause instanceof ApiError)) throw cause
      error.value = cause
    }
  }
  const look = (): void => {
    if (performance.now() - askedAtMs > freshMs) void ask()
  }
  const endSites = effect(() => {
    const siteIds = source.siteIds.value
    untracked(() => {
      // What was pushed for other sites is not shown for these.
      data.value = recall(source.of(JSON.parse(siteIds) as string[]).text)
      void ask()
    })
  })
  const endMoves = effect(() => {
    void source.moved.value
    untracked(look)
  })
  if (typeof window !== 'undefined') window.addEventListener('focus', look)
  return {
    data,
    error,
    retry: () => void ask(),
    stop() {
      running.abort()
      clearTimeout(timer)
      endSites()
      endMoves()
      if (typeof window !== 'undefined') window.removeEventListener('focus', look)
    },
  }
}
