/**
 * Delivers queued events to the appliance, one request at a time to preserve the order, with retries. Nothing here
 * throws or rejects.
 */
import { backoffMs, pause, type Pause } from '../wire/pause.ts'
import { makeBatch, sendBatch, type Batch, type BatchResult } from './batch.ts'
import { fetchLimits, type IngestLimits } from './batch.ts'
import { type Issue, type OnError, plural } from '../client/problem.ts'
import type { Platform, Spool } from '../platform/platform.ts'
import type { Connection } from '../wire/connection.ts'
import type { Verdict } from '../wire/verdict.ts'
import type { ExporterStats } from './exporter-options.ts'
import type { Queue, QueuedEvent } from './queue.ts'

export interface DeliveryOptions {
  batchEventsMax: number
  batchBytesMax: number
  backoffMinMs: number
  backoffMaxMs: number
  refusedRetryMs: number
}

export interface Delivery {
  readonly connection: Connection
  readonly platform: Pick<Platform, 'nowMs' | 'gzip'>
  readonly queue: Queue
  readonly options: DeliveryOptions
  readonly counts: Pick<ExporterStats, 'accepted' | 'deduped' | 'rejected' | 'requests'>
  readonly stop: AbortController
  report: OnError
  spool: Spool | null
  limits: IngestLimits
  knowsLimits: boolean
  compress: boolean
  bytesMax: number // halved when a proxy rejects a batch as too large
  due: number // events to send without waiting for a full batch
  settled: number // events that left the queue since start
  failures: number // consecutive failed attempts
  refusal: string | null // why the appliance refuses all events
  running: boolean
  waiting: { pause: Pause; isRequired: boolean } | null // required by Retry-After
  onSettled: Set<() => void> // called after every request; callees may remove themselves
}

export function isBatchFull({ queue, options }: Delivery): boolean {
  return queue.count >= options.batchEventsMax || queue.bytes >= options.batchBytesMax
}

/** Sends until no events are due and no batch is full. Does nothing while it is already running. */
export async function deliver(state: Delivery): Promise<void> {
  if (state.running) return
  state.running = true
  let ready: Promise<Batch> | null = null
  while (state.queue.count > 0 && (state.due > 0 || isBatchFull(state)) && !state.stop.signal.aborted) {
    const batch: Batch = await (ready ?? nextBatch(state, 0))
    const { limits, stop, platform } = state
    state.counts.requests++
    const sending = sendBatch(state.connection, batch, { nowMs: platform.nowMs, signal: stop.signal })
    // Builds the next batch while this one is sent, if enough events wait to fill it.
    const waiting = state.queue.count - batch.events.length
    ready = waiting >= limits.eventsPerRequestMax ? nextBatch(state, batch.events.length) : null
    const { verdict, result } = await sending
    if (stop.signal.aborted && verdict.kind === 'retry') break
    await settle(state, batch.events, verdict, result)
    if (verdict.kind !== 'done' || state.limits !== limits) ready = null
    for (const notify of state.onSettled) notify()
    if (state.refusal !== null) break
  }
  state.running = false
}

function nextBatch({ queue, limits, bytesMax, compress, platform }: Delivery, skip: number): Promise<Batch> {
  const bodyBytesMax = Math.min(bytesMax, limits.bodyBytesMax - 1_024)
  return makeBatch(queue.peek(limits.eventsPerRequestMax, bodyBytesMax, skip), compress, platform)
}

async function settle(
  state: Delivery,
  events: QueuedEvent[],
  verdict: Verdict,
  result: BatchResult | null,
): Promise<void> {
  if (verdict.kind !== 'retry') state.failures = 0
  if (verdict.kind !== 'refused') state.refusal = null
  switch (verdict.kind) {
    case 'done':
      if (result !== null) count(state, result)
      discard(state, events)
      if (!state.knowsLimits) await updateLimits(state)
      return
    case 'rejected':
      return reject(state, events, verdict.message, verdict.issues, verdict.status)
    case 'no_compression':
      state.compress = false
      return
    case 'too_large':
      if (events.length === 1) return reject(state, events, verdict.message, [], 413)
      state.bytesMax = Math.max(1, Math.floor(bytesOf(events) / 2))
      return updateLimits(state)
    case 'retry':
      return waitToRetry(state, verdict)
    case 'refused':
      return refuse(state, verdict)
  }
}

function count({ counts, report }: Delivery, result: BatchResult): void {
  counts.accepted += result.accepted
  counts.deduped += result.deduped
  counts.rejected += result.rejected
  if (result.rejected === 0) return
  const { rejected, issues } = result
  const why = issues[0] === undefined ? '' : `. First issue: ${issues[0].path} ${issues[0].message}`
  const message = `The appliance rejected ${plural(rejected)}${why}.`
  report({ code: 'rejected', message, count: rejected, issues })
}

function reject(
  state: Delivery,
  events: QueuedEvent[],
  message: string,
  issues: Issue[],
  status: number,
): void {
  state.counts.rejected += events.length
  discard(state, events)
  state.report({
    code: 'rejected',
    message: `The appliance rejected ${plural(events.length)}: ${message}.`,
    status,
    count: events.length,
    issues,
  })
}

function discard(state: Delivery, events: QueuedEvent[]): void {
  state.spool?.forget(events.length, bytesOf(events))
  state.queue.drop(events.length)
  state.due = Math.max(0, state.due - events.length)
  state.settled += events.length
}

async function updateLimits(state: Delivery): Promise<void> {
  state.knowsLimits = true
  state.limits = await fetchLimits(state.connection, state.limits, state.stop.signal)
}

/** Reports from the second failure on: a restarting appliance is back by the second attempt. */
async function waitToRetry(state: Delivery, verdict: Verdict & { kind: 'retry' }): Promise<void> {
  const { backoffMinMs, backoffMaxMs } = state.options
  const ownMs = backoffMs(state.failures++, backoffMinMs, backoffMaxMs, Math.random)
  if (state.failures === 2) {
    const { status, cause } = verdict
    const message = `The appliance is unreachable: ${verdict.message}. ${plural(state.queue.count)} waiting; retrying.`
    state.report({ code: 'unreachable', message, ...(status === null ? {} : { status }), cause })
  }
  state.due = Math.max(state.due, 1)
  const wait = pause(Math.max(ownMs, verdict.waitMs ?? 0))
  state.waiting = { pause: wait, isRequired: verdict.waitMs !== null }
  for (const notify of state.onSettled) notify()
  await wait.over
  state.waiting = null
}

/** Retries would fail, too. Reports once, then retries every 5 minutes in case the cause is fixed. */
function refuse(state: Delivery, verdict: Verdict & { kind: 'refused' }): void {
  const { message, status, cause } = verdict
  if (state.refusal !== message) {
    const text = `The appliance refuses events: ${message}. Events are queued; next attempt in 5 minutes.`
    state.report({ code: 'refused', message: text, ...(status === null ? {} : { status }), cause })
  }
  state.refusal = message
}

function bytesOf(events: QueuedEvent[]): number {
  return events.reduce((sum, event) => sum + event.bytes, 0)
}

/** True when all queued events were sent in time. False at the deadline, or at once while the appliance refuses. */
export function flushWithin(state: Delivery, run: () => Promise<void>, timeoutMs: number): Promise<boolean> {
  const { queue } = state
  const target = state.settled + queue.count
  if (queue.count === 0) return Promise.resolve(true)
  if (state.refusal !== null) return Promise.resolve(false)
  state.due = queue.count
  if (state.waiting?.isRequired === false) state.waiting.pause.cut() // Retry-After is respected
  return new Promise((resolve) => {
    const end = (isEmpty: boolean): void => {
      clearTimeout(timer)
      state.onSettled.delete(check)
      resolve(isEmpty)
    }
    const check = (): void => {
      if (state.settled >= target) end(true)
      else if (state.refusal !== null) end(false)
    }
    const timer = setTimeout(() => end(false), timeoutMs) // not unref'd: a flush keeps the process alive
    state.onSettled.add(check)
    void run()
  })
}
