/** Sends queued events in one request within the limits of the appliance, and reads the counts of the response. */
import { request } from '../wire/request.ts'
import { isObject, issuesOf, verdictOf, type Verdict } from '../wire/verdict.ts'
import type { Issue } from '../client/problem.ts'
import type { Bytes, Platform } from '../platform/platform.ts'
import type { Connection } from '../wire/connection.ts'
import type { QueuedEvent } from './queue.ts'

export interface BatchResult {
  accepted: number
  deduped: number
  rejected: number
  issues: Issue[]
}

const compressBytesMin = 1_024
const ratioMax = 50 // the appliance rejects a ratio of 100, so very repetitive batches are sent uncompressed

export interface Batch {
  events: QueuedEvent[]
  body: string | Bytes
  headers: Record<string, string>
}

export async function makeBatch(
  events: QueuedEvent[],
  compress: boolean,
  platform: Pick<Platform, 'gzip'>,
): Promise<Batch> {
  const text = `{"events":[${events.map((event) => event.text).join(',')}]}`
  if (!compress || text.length < compressBytesMin) return { events, body: text, headers: {} }
  const bytes: Bytes = new TextEncoder().encode(text)
  const compressed = await platform.gzip(bytes).catch(() => null) // some edge runtimes have no CompressionStream
  if (compressed === null || bytes.length > compressed.length * ratioMax)
    return { events, body: bytes, headers: {} }
  return { events, body: compressed, headers: { 'content-encoding': 'gzip' } }
}

/** `result` has the counts when the verdict is `done`. */
export async function sendBatch(
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

export interface IngestLimits {
  eventsPerRequestMax: number
  bodyBytesMax: number
  eventBytesMax: number
}

export const defaultLimits: IngestLimits = {
  eventsPerRequestMax: 1_000,
  bodyBytesMax: 8 * 1024 * 1024,
  eventBytesMax: 64 * 1024,
}

/** Reads the limits of the appliance. Missing or invalid values keep their previous value. */
export async function fetchLimits(
  connection: Connection,
  known: IngestLimits,
  signal: AbortSignal,
): Promise<IngestLimits> {
  const reply = await request(connection, { method: 'GET', path: '/v1/limits', signal })
  const body = reply.kind === 'response' && reply.status === 200 && isObject(reply.body) ? reply.body : {}
  const pick = (name: keyof IngestLimits): number => {
    const value = body[name]
    return typeof value === 'number' && value >= 1 ? Math.floor(value) : known[name]
  }
  return {
    eventsPerRequestMax: pick('eventsPerRequestMax'),
    bodyBytesMax: pick('bodyBytesMax'),
    eventBytesMax: pick('eventBytesMax'),
  }
}
