/**
 * Group commit on the calling thread: appends that wait for the disk travel together in the next group. Two groups may
 * be outstanding when the second is large enough, so that the writer has it when it finishes the first. While other
 * nodes append too there is one: it would wait for theirs, and larger groups cost everybody less.
 */
import { StoreError } from '../../contract/errors.ts'
import { diskBoundsMs, makeHistogram, observe, type Histogram } from '../../rules/histogram.ts'
import type { AppendResult, EventBatch, Pressure } from '../../contract/store.ts'
import { packBatch, type AppendOutcome, type PackedBatch } from './protocol.ts'

const groupsMax = 2
const groupsBesideOthers = 1

/** Fewer events wait for the outstanding group, because small groups cost the writer more than they save. */
const secondGroupEventsMin = 256

const groupEventsMax = 4_000
const groupCharsMax = 8 * 1024 * 1024

interface Waiting {
  batch: PackedBatch
  sinceMs: number
  resolve(result: AppendResult): void
  reject(error: unknown): void
}

export interface AppendQueue {
  append(batch: EventBatch): Promise<AppendResult>
  pressure(): Pressure
  times(): Histogram
  /** Fulfilled when nothing is queued or outstanding. */
  drained(): Promise<void>
}

type Committed = (orgIds: string[]) => void

type Send = (batches: PackedBatch[]) => Promise<AppendOutcome[]>

/** `othersAppend`: whether other nodes append to the same organizations at the moment. */
export function appendQueue(send: Send, committed: Committed, othersAppend = () => false): AppendQueue {
  const waiting: Waiting[] = []
  const outstanding = new Set<Waiting[]>()
  const times = makeHistogram(diskBoundsMs)
  let queuedChars = 0 // roughly bytes, without encoding
  let waitingEvents = 0
  let scheduled = false
  const disk = watchFull(send)
  let onDrained: (() => void)[] = []

  function sendWaiting(): void {
    scheduled = false
    while (waiting.length > 0 && isGroupDue(outstanding.size, othersAppend(), waitingEvents)) {
      const group = waiting.splice(0, groupLength(waiting))
      for (const { batch } of group) waitingEvents -= batch.events
      outstanding.add(group)
      void settle(group).then(() => finish(group))
    }
  }

  /** After the messages that arrived: a group of one costs the writer nearly as much as one of thirty. */
  function sendSoon(): void {
    if (scheduled) return
    scheduled = true
    setImmediate(sendWaiting)
  }

  async function settle(group: Waiting[]): Promise<void> {
    const outcomes = await disk.send(group.map((one) => one.batch)).catch((error: unknown) => {
      for (const one of group) one.reject(error)
    })
    if (!outcomes) return
    for (const one of group) observe(times, ageMs(one))
    const touched = answer(group, outcomes)
    if (touched.length > 0) committed(touched)
  }

  function finish(group: Waiting[]): void {
    outstanding.delete(group)
    for (const one of group) queuedChars -= one.batch.text.length
    sendSoon()
    if (outstanding.size > 0 || waiting.length > 0) return
    for (const resolve of onDrained) resolve()
    onDrained = []
  }

  return {
    append(batch) {
      const packed = packBatch(batch)
      queuedChars += packed.text.length
      return new Promise((resolve, reject) => {
        waiting.push({ batch: packed, sinceMs: performance.now(), resolve, reject })
        waitingEvents += packed.events
        sendSoon()
      })
    },
    pressure() {
      const [firstGroup] = outstanding
      return { queuedBytes: queuedChars, oldestMs: ageMs(firstGroup?.[0] ?? waiting[0]), full: disk.full() }
    },
    times: () => ({ ...times, counts: [...times.counts] }),
    drained() {
      if (outstanding.size === 0 && waiting.length === 0) return Promise.resolve()
      return new Promise((resolve) => onDrained.push(resolve))
    },
  }
}

/** After a full disk a batch finds out this often whether there is space again. */
const fullMs = 1_000

function watchFull(send: Send): { send: Send; full(): boolean } {
  let fullAtMs = -Infinity
  return {
    async send(batches) {
      try {
        const outcomes = await send(batches)
        const isFull = outcomes.some((one) => 'kind' in one && one.kind === 'storage_full')
        fullAtMs = isFull ? performance.now() : -Infinity
        return outcomes
      } catch (error) {
        if (error instanceof StoreError && error.kind === 'storage_full') fullAtMs = performance.now()
        throw error
      }
    },
    full: () => performance.now() - fullAtMs < fullMs,
  }
}

function ageMs(one: Waiting | undefined): number {
  return one === undefined ? 0 : performance.now() - one.sinceMs
}

function isGroupDue(outstandingGroups: number, othersAppend: boolean, waitingEvents: number): boolean {
  const most = othersAppend ? groupsBesideOthers : groupsMax
  return outstandingGroups === 0 || (outstandingGroups < most && waitingEvents >= secondGroupEventsMin)
}

/** How many of the waiting batches fit the limits of one group, at least one. */
function groupLength(waiting: Waiting[]): number {
  let events = 0
  let chars = 0
  const end = waiting.findIndex((one, index) => {
    events += one.batch.events
    chars += one.batch.text.length
    return index > 0 && (events > groupEventsMax || chars > groupCharsMax)
  })
  return end < 0 ? waiting.length : end
}

/** Settles every batch of a group. Returns the organizations that got events. */
function answer(group: Waiting[], outcomes: AppendOutcome[]): string[] {
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
  return [...touched]
}
