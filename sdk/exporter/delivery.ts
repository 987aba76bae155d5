/**
 * Brings queued events to the appliance: one request at a time, so that order holds, and the same request again until
 * it is taken. Nothing here throws or rejects.
 */
import { backoffMs, pause, type Pause } from '../wire/pause.ts'
import { makeBatch, sendBatch, type Batch, type BatchResult } from './batch.ts'
import { learnLimits, type IngestLimits } from './batch.ts'
import type { Issue, OnError } from '../client/problem.ts'
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
  bytesMax: number // halved when even an allowed batch is too large for something on the way
  owed: number // events to send without waiting for a full batch
  settled: number // events that left the queue since the start
  failures: number // attempts in a row that did not get through
  refusal: string | null // why nothing is taken at the moment
  running: boolean
  waiting: { pause: Pause; isAsked: boolean } | null
  onSettled: Set<() => void> // called after every request; a set, as callees take themselves out meanwhile
}

export function isBatchFull({ queue, options }: Delivery): boolean {
  return queue.count >= options.batchEventsMax || queue.bytes >= options.batchBytesMax
}

/** Sends until nothing is owed and no batch is full. A second call while it runs only lets the first see more. */
export async function deliver(state: Delivery): Promise<void> {
  if (state.running) return
  state.running = true
  let ready: Promise<Batch> | null = null
  while (state.queue.count > 0 && (state.owed > 0 || isBatchFull(state)) && !state.stop.signal.aborted) {
    const batch: Batch = await (ready ?? nextBatch(state, 0))
    const { limits, stop, platform } = state
    state.counts.requests++
    const sending = sendBatch(state.connection, batch, { nowMs: platform.nowMs, signal: stop.signal })
    // While the appliance works on this one the next is made, if enough wait that it would not have grown any more.
    const waiting = state.queue.count - batch.events.length
    ready = waiting >= limits.eventsPerRequestMax ? nextBatch(state, batch.events.length) : null
    const { verdict, result } = await sending
    if (stop.signal.aborted && verdict.kind === 'again') break
    await settle(state, batch.events, verdict, result)
    if (verdict.kind !== 'done' || state.limits !== limits) ready = null
    for (const tell of state.onSettled) tell()
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
  if (verdict.kind !== 'again') state.failures = 0
  if (verdict.kind !== 'refused') state.refusal = null
  switch (verdict.kind) {
    case 'done':
      if (result !== null) count(state, result)
      forget(state, events)
      if (!state.knowsLimits) await learn(state)
      return
    case 'rejected':
      return reject(state, events, verdict.message, verdict.issues, verdict.status)
    case 'no_compression':
      state.compress = false
      return
    case 'too_large':
      if (events.length === 1) return reject(state, events, verdict.message, [], 413)
      state.bytesMax = Math.max(1, Math.floor(bytesOf(events) / 2))
      return learn(state)
    case 'again':
      return waitToRepeat(state, verdict)
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
  const why = issues[0] === undefined ? '' : `, the first because ${issues[0].path} ${issues[0].message}`
  const message = `The appliance rejected ${rejected} events${why}.`
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
  forget(state, events)
  state.report({
    code: 'rejected',
    message: `The appliance rejected ${events.length} events: ${message}`,
    status,
    count: events.length,
    issues,
  })
}

function forget(state: Delivery, events: QueuedEvent[]): void {
  state.spool?.forget(events.length, bytesOf(events))
  state.queue.drop(events.length)
  state.owed = Math.max(0, state.owed - events.length)
  state.settled += events.length
}

async function learn(state: Delivery): Promise<void> {
  state.knowsLimits = true
  state.limits = await learnLimits(state.connection, state.limits, state.stop.signal)
}

/** The first failure is quiet: an appliance that restarts is back by the second attempt. */
async function waitToRepeat(state: Delivery, verdict: Verdict & { kind: 'again' }): Promise<void> {
  const { backoffMinMs, backoffMaxMs } = state.options
  const ownMs = backoffMs(state.failures++, backoffMinMs, backoffMaxMs, Math.random)
  if (state.failures === 2) {
    const { status, cause } = verdict
    const message = `Events wait (${state.queue.count} now) and are sent again until they arrive: ${verdict.message}.`
    state.report({ code: 'unreachable', message, ...(status === null ? {} : { status }), cause })
  }
  state.owed = Math.max(state.owed, 1)
  const wait = pause(Math.max(ownMs, verdict.waitMs ?? 0))
  state.waiting = { pause: wait, isAsked: verdict.waitMs !== null }
  for (const tell of state.onSettled) tell()
  await wait.over
  state.waiting = null
}

/** Repeating would not help: said once, then tried again seldom and silently, in case somebody mends it. */
function refuse(state: Delivery, verdict: Verdict & { kind: 'refused' }): void {
  const { message, status, cause } = verdict
  if (state.refusal !== message) {
    const text = `Nothing can be sent: ${message}. The next attempt is in five minutes; events wait.`
    state.report({ code: 'refused', message: text, ...(status === null ? {} : { status }), cause })
  }
  state.refusal = message
}

function bytesOf(events: QueuedEvent[]): number {
  return events.reduce((sum, event) => sum + event.bytes, 0)
}

/** True when it all left in time; false at the deadline, or at once while the appliance refuses everything. */
export function flushWithin(state: Delivery, run: () => Promise<void>, timeoutMs: number): Promise<boolean> {
  const { queue } = state
  const target = state.settled + queue.count
  if (queue.count === 0) return Promise.resolve(true)
  if (state.refusal !== null) return Promise.resolve(false)
  state.owed = queue.count
  if (state.waiting?.isAsked === false) state.waiting.pause.cut() // a pause the appliance asked for is kept
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
    const timer = setTimeout(() => end(false), timeoutMs) // keeps the process alive, as a flush should
    state.onSettled.add(check)
    void run()
  })
}
