/** A live stream of one organization's events: woken by commits, read in arrival order, pulled by the client. */
import type { EventFilter, EventStore, StoredEvent } from '../../../db/contract/store.ts'
import { limits } from '../../limits.ts'

export interface LiveOptions {
  events: Pick<EventStore, 'tail' | 'watch'>
  orgId: string
  filter: EventFilter
  afterSeq: number
  signal: AbortSignal
  heartbeatMs: number
  lifeMs: number // after it the stream ends and the client resumes where it was
}

export type LiveItem =
  { kind: 'events'; events: StoredEvent[]; lastSeq: number } | { kind: 'quiet'; lastSeq: number }

const pageMax = 200
const bytesMax = limits.liveBytesMax

/**
 * Yields every matching event after `afterSeq` exactly once, in arrival order, and `quiet` when nothing came for a
 * heartbeat. It is a generator, so a client that does not read holds no memory: the next page is read when it asks.
 */
export async function* liveEvents(options: LiveOptions): AsyncGenerator<LiveItem> {
  const { events, orgId, filter, signal } = options
  const bell = ringer(signal)
  const unwatch = events.watch((orgIds) => {
    if (orgIds.includes(orgId)) bell.ring()
  })
  const endAt = performance.now() + options.lifeMs
  let lastSeq = options.afterSeq
  try {
    while (!signal.aborted && performance.now() < endAt) {
      bell.reset()
      const page = await events.tail({ orgId, filter, afterSeq: lastSeq, limit: pageMax, bytesMax })
      if (signal.aborted) return
      const moved = page.lastSeq > lastSeq
      lastSeq = Math.max(lastSeq, page.lastSeq)
      if (page.events.length > 0) yield { kind: 'events', events: page.events, lastSeq }
      else if (!moved && !(await bell.wait(options.heartbeatMs))) yield { kind: 'quiet', lastSeq }
    }
  } finally {
    unwatch()
    bell.stop()
  }
}

/** A bell that can ring before anybody waits for it, so that a commit during a read is not missed. */
function ringer(signal: AbortSignal) {
  let rung = false
  let wake: (() => void) | null = null
  const ring = () => {
    rung = true
    wake?.()
  }
  signal.addEventListener('abort', ring)
  return {
    ring,
    reset: () => void (rung = false),
    stop: () => signal.removeEventListener('abort', ring),
    /** Waits until rung or the time is up; false when nothing rang. */
    wait(timeoutMs: number): Promise<boolean> {
      if (rung) return Promise.resolve(true)
      return new Promise((resolve) => {
        const timer = setTimeout(() => finish(false), timeoutMs)
        const finish = (answer: boolean) => {
          clearTimeout(timer)
          wake = null
          resolve(answer)
        }
        wake = () => finish(true)
      })
    },
  }
}
