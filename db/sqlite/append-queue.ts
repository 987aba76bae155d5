/**
 * Group commit on the calling side: appends that wait while the disk works travel together in the next group.
 * Two groups may be outstanding, so that the writer finds the next one ready when it has finished the last.
 */
import { StoreError } from '../errors.ts'
import type { AppendResult, EventBatch } from '../store.ts'
import type { AppendOutcome } from './protocol.ts'

const groupsMax = 2
const groupEventsMax = 4_000
const groupCharsMax = 8 * 1024 * 1024

interface Waiting {
  batch: EventBatch
  chars: number // of the events' JSON texts: their bytes, near enough, without encoding them
  sinceMs: number
  resolve(result: AppendResult): void
  reject(error: unknown): void
}

export interface AppendQueue {
  append(batch: EventBatch): Promise<AppendResult>
  pressure(): { queuedBytes: number; oldestMs: number }
  /** Fulfilled when nothing waits and nothing is outstanding. */
  drained(): Promise<void>
}

export function appendQueue(
  send: (batches: EventBatch[]) => Promise<AppendOutcome[]>,
  committed: (orgIds: string[]) => void,
): AppendQueue {
  let waiting: Waiting[] = []
  const outstanding = new Set<Waiting[]>()
  let queuedChars = 0
  let onDrained: (() => void)[] = []

  function nextGroup(): Waiting[] {
    let events = 0
    let chars = 0
    let count = 0
    for (const { batch, chars: batchChars } of waiting) {
      events += batch.events.length
      chars += batchChars
      if (count > 0 && (events > groupEventsMax || chars > groupCharsMax)) break
      count++
    }
    const group = waiting.slice(0, count)
    waiting = waiting.slice(count)
    return group
  }

  function sendWaiting(): void {
    while (outstanding.size < groupsMax && waiting.length > 0) {
      const group = nextGroup()
      outstanding.add(group)
      void send(group.map((one) => one.batch))
        .then(
          (outcomes) => settle(group, outcomes),
          (error: unknown) => group.forEach((one) => one.reject(error)),
        )
        .then(() => finish(group))
    }
  }

  function settle(group: Waiting[], outcomes: AppendOutcome[]): void {
    const touched = new Set<string>()
    group.forEach((one, index) => {
      const outcome = outcomes[index]
      if (outcome === undefined) one.reject(new StoreError('internal', 'the writer lost a batch'))
      else if ('kind' in outcome) one.reject(new StoreError(outcome.kind, outcome.message))
      else {
        if (outcome.accepted > 0) touched.add(one.batch.orgId)
        one.resolve(outcome)
      }
    })
    if (touched.size > 0) committed([...touched])
  }

  function finish(group: Waiting[]): void {
    outstanding.delete(group)
    for (const one of group) queuedChars -= one.chars
    sendWaiting()
    if (outstanding.size > 0) return
    for (const resolve of onDrained) resolve()
    onDrained = []
  }

  return {
    append(batch) {
      const chars = batch.events.reduce((sum, event) => sum + event.json.length, 0)
      queuedChars += chars
      return new Promise((resolve, reject) => {
        waiting.push({ batch, chars, sinceMs: performance.now(), resolve, reject })
        sendWaiting()
      })
    },
    pressure() {
      const oldest = [...outstanding][0]?.[0] ?? waiting[0]
      return {
        queuedBytes: queuedChars,
        oldestMs: oldest === undefined ? 0 : performance.now() - oldest.sinceMs,
      }
    },
    drained() {
      if (outstanding.size === 0) return Promise.resolve()
      return new Promise((resolve) => onDrained.push(resolve))
    },
  }
}
