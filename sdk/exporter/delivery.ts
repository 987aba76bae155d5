/**
 * Delivers queued events to the appliance in batches within its limits, one request at a time to preserve the order,
 * with retries. Nothing here throws or rejects.
 */
import { backoffMs, pause, type Pause } from '../wire/retry.ts'
import { plural, type Issue, type OnError } from '../client/problem.ts'
import { isObject, issuesOf, request, verdictOf, type Verdict } from '../wire/request.ts'
import type { Bytes, Platform, Spool } from '../platform/platform.ts'
import type { Connection } from '../wire/connection.ts'
import type { Queue, QueuedEvent } from './queue.ts'

export interface DeliveryOptions {
  batchEventsMax: number
  batchBytesMax: number
  backoffMinMs: number
  backoffMaxMs: number
  refusedRetryMs: number
}

/** Counts since the exporter was created. */
export interface ExporterStats {
  accepted: number
  deduped: number
  rejected: number
  requests: number
  queued: number
  queuedBytes: number
  /** Events dropped because the queue was full. */
  dropped: number
  /** Why the appliance refuses events, or null. */
  refusal: string | null
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
  limitsAskedMs: number | null // when they were last asked for
  asking: Promise<void> | null // for them
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
  const events = queue.peek(limits.eventsPerRequestMax, bodyBytesMax, skip)
  return makeBatch(events, limits.observed, compress, platform)
}

async function settle(
  state: Delivery,
  events: QueuedEvent[],
  verdict: Verdict,
  result: BatchResult | null,
): Promise<void> {
  const wasAway = state.failures > 0
  if (verdict.kind !== 'retry') state.failures = 0
  if (verdict.kind !== 'refused') state.refusal = null
  switch (verdict.kind) {
    case 'done':
      if (result !== null) count(state, result)
      discard(state, events)
      if (state.limitsAskedMs === null) await updateLimits(state)
      // An appliance that was away, or that a proxy replaced unseen, may be another release.
      else if (!state.knowsLimits || wasAway || areLimitsOld(state)) void updateLimits(state)
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
  const firstIssue = issues[0] === undefined ? '' : `. First issue: ${issues[0].path} ${issues[0].message}`
  const message = `The appliance rejected ${plural(rejected)}${firstIssue}.`
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

const limitsMs = 10 * 60_000

function areLimitsOld({ limitsAskedMs, platform }: Delivery): boolean {
  return limitsAskedMs !== null && Math.abs(platform.nowMs() - limitsAskedMs) > limitsMs
}

/**
 * Whether the appliance judges by what is observed. The first call asks, beside the events, which wait for no answer.
 */
export function judgesObserved(state: Delivery): boolean {
  if (state.limitsAskedMs === null) void updateLimits(state)
  return state.limits.observed
}

function updateLimits(state: Delivery): Promise<void> {
  state.limitsAskedMs = state.platform.nowMs()
  state.asking ??= askLimits(state).finally(() => (state.asking = null))
  return state.asking
}

/** Without a response the limits stay unknown, and are asked for again after the next batch. */
async function askLimits(state: Delivery): Promise<void> {
  const reply = await request(state.connection, {
    method: 'GET',
    path: '/v1/limits',
    signal: state.stop.signal,
  })
  if (reply.kind !== 'response') return
  state.knowsLimits = true
  if (reply.status === 200 && isObject(reply.body)) state.limits = limitsIn(reply.body, state.limits)
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

interface BatchResult {
  accepted: number
  deduped: number
  rejected: number
  issues: Issue[]
}

const compressBytesMin = 1_024
const ratioMax = 50 // the appliance rejects a ratio of 100, so very repetitive batches are sent uncompressed

interface Batch {
  events: QueuedEvent[]
  body: string | Bytes
  headers: Record<string, string>
}

async function makeBatch(
  events: QueuedEvent[],
  observes: boolean,
  compress: boolean,
  platform: Pick<Platform, 'gzip'>,
): Promise<Batch> {
  const observed = observes ? events.flatMap((event) => event.observed ?? []) : []
  const list = events.map((event) => event.text).join(',')
  const text =
    observed.length === 0 ? `{"events":[${list}]}` : `{"events":[${list}],"observed":{${observed.join(',')}}}`
  if (!compress || text.length < compressBytesMin) return { events, body: text, headers: {} }
  const bytes: Bytes = new TextEncoder().encode(text)
  const compressed = await platform.gzip(bytes).catch(() => null) // some edge runtimes have no CompressionStream
  if (compressed === null || bytes.length > compressed.length * ratioMax)
    return { events, body: bytes, headers: {} }
  return { events, body: compressed, headers: { 'content-encoding': 'gzip' } }
}

/** `result` has the counts when the verdict is `done`. */
async function sendBatch(
  connection: Connection,
  { body, headers }: Batch,
  options: { nowMs: () => number; signal: AbortSignal },
): Promise<{ verdict: Verdict; result: BatchResult | null }> {
  const call = { method: 'POST', path: '/v1/sdk/events', body, headers, signal: options.signal } as const
  const reply = await request(connection, call)
  const verdict = verdictOf(reply, options.nowMs())
  if (verdict.kind !== 'done') return { verdict, result: null }
  const result = resultOf(verdict.body)
  if (result !== null) return { verdict, result }
  const message = 'this is not a Sightglass appliance, check the url'
  return { verdict: { kind: 'refused', message, status: null, cause: undefined }, result: null }
}

function resultOf(body: { [field: string]: unknown }): BatchResult | null {
  const { accepted, deduped, rejected } = body
  if (typeof accepted !== 'number') return null
  return {
    accepted,
    deduped: typeof deduped === 'number' ? deduped : 0,
    rejected: typeof rejected === 'number' ? rejected : 0,
    issues: issuesOf(body['errors']),
  }
}

interface IngestLimits {
  eventsPerRequestMax: number
  bodyBytesMax: number
  eventBytesMax: number
  observed: boolean // the appliance judges by it
}

export const defaultLimits: IngestLimits = {
  eventsPerRequestMax: 1_000,
  bodyBytesMax: 8 * 1024 * 1024,
  eventBytesMax: 64 * 1024,
  observed: false,
}

/** The limits of the appliance. Missing or invalid numbers keep their previous value. */
function limitsIn(body: { [field: string]: unknown }, previousLimits: IngestLimits): IngestLimits {
  const pick = (name: Exclude<keyof IngestLimits, 'observed'>): number => {
    const value = body[name]
    return typeof value === 'number' && value >= 1 ? Math.floor(value) : previousLimits[name]
  }
  return {
    eventsPerRequestMax: pick('eventsPerRequestMax'),
    bodyBytesMax: pick('bodyBytesMax'),
    eventBytesMax: pick('eventBytesMax'),
    observed: body['observed'] === true,
  }
}
