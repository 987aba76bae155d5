/** The queue of events to send, bounded by count and bytes, and the report of dropped events. */
import { type OnError, plural } from '../client/problem.ts'

export interface QueuedEvent {
  text: string // as JSON
  bytes: number // of the text, in UTF-8
  /** Its entry in `observed`, as JSON. In memory only. */
  observed?: string
}

export interface Queue {
  readonly count: number
  readonly bytes: number
  /** False when the queue is full. */
  push(event: QueuedEvent): boolean
  /** Adds an event of an earlier process, even when the queue is full. */
  restore(event: QueuedEvent): void
  /** The oldest events after `skip` that fit, at least one. They stay in the queue. */
  peek(countMax: number, bytesMax: number, skip?: number): QueuedEvent[]
  /** Removes the oldest events. */
  drop(count: number): void
}

function sizeOf({ bytes, observed = '' }: QueuedEvent): number {
  return bytes + observed.length
}

const spent: QueuedEvent = { text: '', bytes: 0 }
const spentMax = 1_024 // removed events before the array is compacted; compacting each time would be slow

export function createQueue(limits: { eventsMax: number; bytesMax: number }): Queue {
  let events: QueuedEvent[] = []
  let first = 0
  let bytes = 0
  const add = (event: QueuedEvent): void => {
    events.push(event)
    bytes += sizeOf(event)
  }
  return {
    get count() {
      return events.length - first
    },
    get bytes() {
      return bytes
    },
    push(event) {
      if (events.length - first >= limits.eventsMax || bytes + sizeOf(event) > limits.bytesMax) return false
      add(event)
      return true
    },
    restore: add,
    peek(countMax, bytesMax, skip = 0) {
      const start = Math.min(first + skip, events.length)
      let end = start
      for (let bytesLeft = bytesMax; end < events.length && end - start < countMax; end++) {
        bytesLeft -= sizeOf(events[end] ?? spent)
        if (bytesLeft < 0 && end > start) break
      }
      return events.slice(start, end)
    },
    drop(count) {
      for (const end = Math.min(first + count, events.length); first < end; first++) {
        bytes -= sizeOf(events[first] ?? spent)
        events[first] = spent // frees the text now
      }
      if (first === events.length) {
        events = []
        first = 0
      } else if (first > spentMax && first > events.length / 2) {
        events = events.slice(first)
        first = 0
      }
    },
  }
}

/** Counts dropped events and says so without a flood: at once, then at most once a minute, and when it is over. */
export interface DropReport {
  add(): void
  total(): number
  /** Reports the events dropped since the last report. */
  flush(): void
}

const quietMs = 60_000

export function createDropReport(nowMs: () => number, report: OnError): DropReport {
  let total = 0
  let unreported = 0
  let lastMs = Number.NEGATIVE_INFINITY
  const flush = (): void => {
    if (unreported === 0) return
    const message = `The queue is full: dropped ${plural(unreported)}, ${total} since start.`
    report({ code: 'queue_full', message, count: unreported })
    lastMs = nowMs()
    unreported = 0
  }
  return {
    add() {
      total++
      unreported++
      if (nowMs() - lastMs >= quietMs) flush()
    },
    total: () => total,
    flush,
  }
}
