/**
 * Group commit on the calling thread. Batches of one tick travel together. A writer that gathers stores all that have
 * arrived when it is free, so they are sent at once, unless they are few. For any other, appends that wait for the disk
 * travel in the next group: two groups may be outstanding when the second is large enough, so that the writer has it
 * when it finishes the first. While other nodes append too there is one: it would wait for theirs, and larger groups
 * cost everybody less.
 */
import { StoreError } from '../../contract/errors.ts'
import { diskBoundsMs, makeHistogram, observe } from '../../rules/histogram.ts'
import type { Histogram } from '../../contract/histogram.ts'
import type { AppendResult, EventBatch, Pressure } from '../../contract/store.ts'
import { packBatches, type AppendOutcome, type Parcel } from './protocol.ts'

const groupsMax = 2
const groupsBesideOthers = 1

/** Fewer events wait for the outstanding group, because small groups cost the writer more than they save. */
const secondGroupEventsMin = 256

/**
 * A writer that gathers gets fewer events only when it has no more than these. That stores a twelfth more single events
 * over 128 connections.
 */
const gatheredEventsMin = 96

export const groupEventsMax = 4_000
const groupCharsMax = 8 * 1024 * 1024

interface Waiting {
  orgId: string
  chars: number // of the events, before they are packed
  sinceMs: number
  resolve(result: AppendResult): void
  reject(error: unknown): void
}

/** Batches of one tick, packed, and who waits for each of them. */
interface WaitingParcel {
  parcel: Parcel
  senders: Waiting[]
}

interface AppendQueue {
  append(batch: EventBatch): Promise<AppendResult>
  pressure(): Pressure
  times(): Histogram
  /** Fulfilled when nothing is queued or outstanding. */
  drained(): Promise<void>
}

interface AppendQueueOptions {
  /** Whether other nodes append to the same organizations at the moment. */
  othersAppend?: (() => boolean) | undefined
  /** Whether the writer gathers the groups itself. */
  gathers?: boolean | undefined
}

type Committed = (orgIds: string[]) => void

type Send = (parcels: Parcel[]) => Promise<AppendOutcome[]>

export function appendQueue(send: Send, committed: Committed, options: AppendQueueOptions = {}): AppendQueue {
  let arrived: { batch: EventBatch; sender: Waiting }[] = []
  const waiting: WaitingParcel[] = []
  const outstanding = outstandingGroups(options)
  const times = makeHistogram(diskBoundsMs)
  let queuedChars = 0 // roughly bytes, without encoding
  let scheduled = false
  const disk = watchFull(send)
  let onDrained: (() => void)[] = []

  function sendWaiting(): void {
    scheduled = false
    for (const waitingParcel of parcelsOf(arrived)) {
      queuedChars += waitingParcel.parcel.text.length
      waiting.push(waitingParcel)
    }
    for (const { sender } of arrived) queuedChars -= sender.chars
    arrived = []
    while (waiting.length > 0 && outstanding.mayGrow(waiting)) {
      const group = waiting.splice(0, groupLength(waiting))
      outstanding.add(group)
      const senders = group.flatMap((waitingParcel) => waitingParcel.senders)
      const pendingOutcomes = disk.send(group.map(({ parcel }) => parcel))
      void settle(senders, pendingOutcomes, { times, committed }).then(() => finish(group))
    }
  }

  /** After the messages that arrived: a group of one costs the writer nearly as much as one of thirty. */
  function sendSoon(): void {
    if (scheduled) return
    scheduled = true
    setImmediate(sendWaiting)
  }

  function finish(group: WaitingParcel[]): void {
    outstanding.delete(group)
    for (const { parcel } of group) queuedChars -= parcel.text.length
    if (arrived.length + waiting.length > 0) sendSoon()
    else if (outstanding.isEmpty()) {
      for (const resolve of onDrained) resolve()
      onDrained = []
    }
  }

  return {
    append(batch) {
      let chars = 0
      for (const { json } of batch.events) chars += json.length
      queuedChars += chars
      return new Promise((resolve, reject) => {
        const { orgId } = batch
        arrived.push({ batch, sender: { orgId, chars, sinceMs: performance.now(), resolve, reject } })
        sendSoon()
      })
    },
    pressure() {
      const oldest = (outstanding.oldest() ?? waiting[0])?.senders[0] ?? arrived[0]?.sender
      return { queuedBytes: queuedChars, oldestMs: ageMs(oldest), full: disk.full() }
    },
    times: () => ({ ...times, counts: [...times.counts] }),
    drained() {
      if (outstanding.isEmpty() && waiting.length + arrived.length === 0) return Promise.resolve()
      return new Promise((resolve) => onDrained.push(resolve))
    },
  }
}

function outstandingGroups({ othersAppend = () => false, gathers = false }: AppendQueueOptions) {
  const groups = new Set<WaitingParcel[]>()
  let oldest: WaitingParcel | undefined // asked for by every request
  let events = 0
  let chars = 0
  const count = (group: readonly WaitingParcel[], sign: 1 | -1) => {
    for (const waitingParcel of group) {
      events += sign * waitingParcel.parcel.events
      chars += sign * waitingParcel.parcel.text.length
    }
  }
  return {
    isEmpty: () => groups.size === 0,
    oldest: () => oldest,
    /** Whether one of the waiting groups may be sent. */
    mayGrow(waiting: readonly WaitingParcel[]): boolean {
      if (groups.size === 0) return true
      const waitingEvents = waiting.reduce((sum, { parcel }) => sum + parcel.events, 0)
      if (gathers) {
        const isLarge = waitingEvents >= Math.min(events, gatheredEventsMin)
        return isLarge && events < groupEventsMax && chars < groupCharsMax
      }
      const groupCountMax = othersAppend() ? groupsBesideOthers : groupsMax
      return groups.size < groupCountMax && waitingEvents >= secondGroupEventsMin
    },
    add(group: WaitingParcel[]): void {
      groups.add(group)
      oldest ??= group[0]
      count(group, 1)
    },
    delete(group: WaitingParcel[]): void {
      groups.delete(group)
      oldest = groups.values().next().value?.[0]
      count(group, -1)
    },
  }
}

/** Packs batches in order, each parcel within the limits of a group. */
function parcelsOf(arrived: readonly { batch: EventBatch; sender: Waiting }[]): WaitingParcel[] {
  const parcels: WaitingParcel[] = []
  for (let from = 0; from < arrived.length;) {
    const part = arrived.slice(from, from + lengthWithin(arrived, from, arrivedSizes))
    from += part.length
    parcels.push({
      parcel: packBatches(part.map(({ batch }) => batch)),
      senders: part.map(({ sender }) => sender),
    })
  }
  return parcels
}

interface Sizes<One> {
  events(item: One): number
  chars(item: One): number
}

const arrivedSizes: Sizes<{ batch: EventBatch; sender: Waiting }> = {
  events: ({ batch }) => batch.events.length,
  chars: ({ sender }) => sender.chars,
}

const parcelSizes: Sizes<WaitingParcel> = {
  events: ({ parcel }) => parcel.events,
  chars: ({ parcel }) => parcel.text.length,
}

/** How many of the waiting parcels fit the limits of one group, at least one. */
function groupLength(waiting: readonly WaitingParcel[]): number {
  return lengthWithin(waiting, 0, parcelSizes)
}

/** How many of a list, at least one, fit the limits of one group. */
function lengthWithin<One>(items: readonly One[], from: number, sizes: Sizes<One>): number {
  let events = 0
  let chars = 0
  for (let index = from; index < items.length; index++) {
    events += sizes.events(items[index]!)
    chars += sizes.chars(items[index]!)
    if (index > from && (events > groupEventsMax || chars > groupCharsMax)) return index - from
  }
  return items.length - from
}

/** After a full disk a batch finds out this often whether there is space again. */
const fullMs = 1_000

function watchFull(send: Send): { send: Send; full(): boolean } {
  let fullAtMs = -Infinity
  return {
    async send(parcels) {
      try {
        const outcomes = await send(parcels)
        const isFull = outcomes.some((outcome) => 'kind' in outcome && outcome.kind === 'storage_full')
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

function ageMs(sender: Waiting | undefined): number {
  return sender === undefined ? 0 : performance.now() - sender.sinceMs
}

async function settle(
  senders: readonly Waiting[],
  pendingOutcomes: Promise<AppendOutcome[]>,
  { times, committed }: { times: Histogram; committed: Committed },
): Promise<void> {
  const outcomes = await pendingOutcomes.catch((error: unknown) => {
    for (const sender of senders) sender.reject(error)
  })
  if (!outcomes) return
  const nowMs = performance.now()
  for (const { sinceMs } of senders) observe(times, nowMs - sinceMs)
  const touched = answer(senders, outcomes)
  if (touched.length > 0) committed(touched)
}

/** Settles every batch of a group. Returns the organizations that got events. */
function answer(senders: readonly Waiting[], outcomes: AppendOutcome[]): string[] {
  const touched = new Set<string>()
  senders.forEach((sender, index) => {
    const outcome = outcomes[index]
    if (outcome === undefined) sender.reject(new StoreError('internal', 'the writer lost a batch'))
    else if ('kind' in outcome) sender.reject(new StoreError(outcome.kind, outcome.message))
    else {
      if (outcome.accepted > 0) touched.add(sender.orgId)
      sender.resolve(outcome)
    }
  })
  return [...touched]
}
