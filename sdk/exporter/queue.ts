/** Events that wait to be sent, oldest first, bounded by number and bytes. */
import type { OnError } from '../client/problem.ts'

export interface QueuedEvent {
  text: string // as JSON
  bytes: number // of it in UTF-8
}

export interface Queue {
  readonly count: number
  readonly bytes: number
  /** False when it is full; the event is then not taken. */
  push(event: QueuedEvent): boolean
  /** Takes an event beyond all bounds: it was queued before, by an earlier process. */
  restore(event: QueuedEvent): void
  /** The oldest events after `skip` that fit, at least one if there is one. They stay queued. */
  peek(countMax: number, bytesMax: number, skip?: number): QueuedEvent[]
  /** Removes the oldest. */
  drop(count: number): void
}

const spent: QueuedEvent = { text: '', bytes: 0 }
const spentMax = 1_024 // places left empty at the front before the list is cut: cutting each time would be slow

export function createQueue(limits: { eventsMax: number; bytesMax: number }): Queue {
  let events: QueuedEvent[] = []
  let first = 0
  let bytes = 0
  const add = (event: QueuedEvent): void => {
    events.push(event)
    bytes += event.bytes
  }
  return {
    get count() {
      return events.length - first
    },
    get bytes() {
      return bytes
    },
    push(event) {
      if (events.length - first >= limits.eventsMax || bytes + event.bytes > limits.bytesMax) return false
      add(event)
      return true
    },
    restore: add,
    peek(countMax, bytesMax, skip = 0) {
      const start = Math.min(first + skip, events.length)
      let end = start
      for (let room = bytesMax; end < events.length && end - start < countMax; end++) {
        room -= events[end]?.bytes ?? 0
        if (room < 0 && end > start) break
      }
      return events.slice(start, end)
    },
    drop(count) {
      for (const end = Math.min(first + count, events.length); first < end; first++) {
        bytes -= events[first]?.bytes ?? 0
        events[first] = spent // lets go of its text now
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
  /** Reports what was counted since the last report, if anything. */
  tellRest(): void
}

const quietMs = 60_000

export function createDropReport(nowMs: () => number, report: OnError): DropReport {
  let total = 0
  let untold = 0
  let lastMs = Number.NEGATIVE_INFINITY
  const tell = (): void => {
    if (untold === 0) return
    const message = `The queue is full: ${untold} events were dropped, ${total} since the start.`
    report({ code: 'queue_full', message, count: untold })
    lastMs = nowMs()
    untold = 0
  }
  return {
    add() {
      total++
      untold++
      if (nowMs() - lastMs >= quietMs) tell()
    },
    total: () => total,
    tellRest: tell,
  }
}
