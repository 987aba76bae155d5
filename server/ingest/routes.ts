/** POST /v1/sdk/events (contract §4), acknowledged after the fsync, and GET /v1/limits. */
import { Elysia } from 'elysia'
import { AppError, type Issue } from '../errors.ts'
import { json, jsonText } from '../http/response.ts'
import { bodyTooLarge, decodeBody, readBytes } from '../http/body.ts'
import { contextOf, readQuery } from '../http/request.ts'
import { limits, publishedLimits } from '../limits.ts'
import {
  allRejected,
  eventSamples,
  guardRailRejected,
  rejectRestricted,
  requestSample,
  type Rejected,
  type Rejections,
} from './rejected.ts'
import { explained, requireAdmission, type ParseQueue } from './admission.ts'
import { acceptEvents, eventsMediaType, linesText, type Accepted, type EventsMediaType } from './accept.ts'
import { acceptInSteps, largeBodyBytes } from './accept-large.ts'
import { inSlices, slices } from '../http/slices.ts'
import { judgeObserved, type ObservedServices } from './observed.ts'
import { batchCount, type IngestCounts, type RequestCount } from './counts.ts'
import { nearMisses } from './check-event.ts'
import type { ApiKey, AppendResult, EventRecord, Store } from '../../db/contract/store.ts'
import type { Clock } from '../clock.ts'
import type { ClockGuard } from '../system/clock-guard.ts'
import type { SharedNode } from '../system/shared-node.ts'
import type { DiskWatch } from '../system/disk.ts'
import type { KeyGuard } from '../http/guard.ts'
import type { RateLimits } from '../http/rate-limit.ts'

export interface IngestRoutesServices extends ObservedServices {
  store: Store
  clock: Clock
  clockGuard: ClockGuard
  node: SharedNode | null
  guard: KeyGuard
  rateLimits: RateLimits
  disk: DiskWatch
  rejections: Rejections
  ingestCounts: IngestCounts
  parseQueue: ParseQueue
  fail(reason: string, holdsOnlyCopy?: boolean): void
}

export const eventsPath = '/v1/sdk/events'

/** `post` answers the requests to `eventsPath`. */
export function ingestRoutes(services: IngestRoutesServices, post = postEvents(services)) {
  return new Elysia()
    .get('/v1/limits', ({ request }) => {
      readQuery(request, {})
      return json({ ...publishedLimits, rateLimits: services.rateLimits.published })
    })
    .post(eventsPath, ({ request }) => post(request), { parse: 'none' })
}

/** One async function from the key to the answer: three more took 1.7 of the 22 µs of a request with one event. */
export function postEvents(services: IngestRoutesServices): (request: Request) => Promise<Response> {
  return async (request) => {
    const keyLookup = services.guard.ingest(request)
    const key = keyLookup instanceof Promise ? await keyLookup : keyLookup
    const count = services.ingestCounts.begin()
    let refused: 0 | 1 = 1
    try {
      const refusal = requireAdmission(services, request)
      if (refusal !== undefined) await refusal
      const body: Body = { type: 'application/json', text: '' }
      let read: Accepted
      try {
        body.type = requireEvents(request)
        const bytes = await readBytes(request, bodyLimits)
        const queued = services.parseQueue.wait(bytes.length)
        if (queued !== undefined) await queued
        read =
          bytes.length <= largeBodyBytes
            ? readEvents(services, key, body, bytes)
            : await readLargeEvents(services, key, body, bytes)
      } catch (thrown) {
        throw recorded(services, key, body, thrown)
      }
      const sites = services.store.sites.restricted(key.orgId)
      const restricted = sites instanceof Promise ? await sites : sites
      const accepted = rejectRestricted(restricted, key, read)
      const { records, sent: sentCount, positions, rejected } = accepted
      count.newestMs = newestOf(records)
      let unused: Issue[] = []
      if (accepted.observations !== undefined) unused = await judged(services, key, accepted)
      // From here on only the store holds the events, packed; the records are garbage.
      const appending = append(services, { request, key }, records, rejected.length, count)
      let result = emptyResult
      try {
        if (appending !== null) result = await appending
      } catch (thrown) {
        throw explained(services, thrown)
      }
      count.isWritten = appending !== null
      const response = answer(services, key, { sent: sentCount, positions, rejected }, result, count, unused)
      refused = 0
      return response
    } finally {
      services.ingestCounts.end(key, count, refused)
    }
  }
}

/**
 * Answers a request to another address whose body is one of events. Its key and admission were checked, its bytes were
 * read, and its handler counts it.
 */
export async function answerEvents(
  services: IngestRoutesServices,
  request: Request,
  bytes: Uint8Array,
  { key, count }: { key: ApiKey; count: RequestCount },
): Promise<Response> {
  const body: Body = { type: 'application/json', text: '' }
  let read: Accepted
  try {
    if (bytes.length > limits.bodyBytesMax) throw bodyTooLarge(limits.bodyBytesMax)
    read =
      bytes.length <= largeBodyBytes
        ? readEvents(services, key, body, bytes)
        : await readLargeEvents(services, key, body, bytes)
  } catch (thrown) {
    throw recorded(services, key, body, thrown)
  }
  const allowed = rejectRestricted(await services.store.sites.restricted(key.orgId), key, read)
  count.newestMs = newestOf(allowed.records)
  const unused = allowed.observations === undefined ? [] : await judged(services, key, allowed)
  const appending = append(services, { request, key }, allowed.records, allowed.rejected.length, count)
  let result = emptyResult
  try {
    if (appending !== null) result = await appending
  } catch (thrown) {
    throw explained(services, thrown)
  }
  count.isWritten = appending !== null
  return answer(services, key, allowed, result, count, unused)
}

const noParameters = {}
const bodyLimits = { bytesMax: limits.bodyBytesMax, ratioMax: limits.bodyRatioMax }

/** Of a request that is being read. */
interface Body {
  type: EventsMediaType
  text: string // '' before it was read; of a large body the start, for its sample
}

/** Before the body is read. */
function requireEvents(request: Request): EventsMediaType {
  readQuery(request, noParameters)
  return eventsMediaType(request.headers.get('content-type'))
}

function readEvents(services: IngestRoutesServices, key: ApiKey, body: Body, bytes: Uint8Array): Accepted {
  body.text = body.type === 'application/x-ndjson' ? linesText(bytes) : decodeBody(bytes)
  return noteMisses(services, key, acceptEvents(body.text, body.type, key.siteIds))
}

/** The same in slices, one in each turn of the event loop. */
async function readLargeEvents(
  services: IngestRoutesServices,
  key: ApiKey,
  body: Body,
  bytes: Uint8Array,
): Promise<Accepted> {
  const work = slices.begin(key.orgId)
  const accepted = await inSlices(acceptInSteps(bytes, body.type, key.siteIds), work).catch(
    (thrown: unknown) => {
      body.text = startText(bytes)
      throw thrown
    },
  )
  await work.nextSlice()
  return noteMisses(services, key, accepted)
}

/** Enough for the sample of a rejected request. */
function startText(bytes: Uint8Array): string {
  const start = bytes.subarray(0, limits.rejectedExcerptBytesMax)
  return Buffer.from(start.buffer, start.byteOffset, start.length).toString()
}

function noteMisses(services: IngestRoutesServices, key: ApiKey, accepted: Accepted): Accepted {
  // One event per request, because a sender misspells a field in all events alike.
  const misses = nearMisses(accepted.sample)
  accepted.sample = undefined // garbage from here on, too
  if (misses.length > 0) services.ingestCounts.nearMisses(key, misses)
  return accepted
}

/** A request rejected as a whole is recorded for the ingest health page. Returns what was thrown. */
function recorded(services: IngestRoutesServices, key: ApiKey, { text }: Body, thrown: unknown): unknown {
  if (thrown instanceof AppError)
    services.rejections.add([requestSample(key, services.clock.now(), thrown, text)])
  return thrown
}

/** Judges the observed events, and forgets what was observed. Returns the issues of entries that were of no use. */
async function judged(services: IngestRoutesServices, key: ApiKey, accepted: Accepted): Promise<Issue[]> {
  try {
    return await judgeObserved(services, key, accepted, arrivalMs(services))
  } catch (thrown) {
    throw explained(services, thrown)
  } finally {
    delete accepted.observations
  }
}

const emptyResult: AppendResult = { accepted: 0, deduped: 0, rejected: [] }

/** Null when there is nothing to append. */
function append(
  services: IngestRoutesServices,
  { request, key }: { request: Request; key: ApiKey },
  records: EventRecord[],
  rejected: number,
  { newestMs }: RequestCount,
): Promise<AppendResult> | null {
  if (records.length === 0) return null
  const appended = services.store.events.append({
    orgId: key.orgId,
    keyId: key.id,
    door: 'events',
    receivedAtMs: arrivalMs(services),
    events: records,
    count: batchCount(rejected, newestMs, services.clock.now()),
  })
  contextOf(request).body?.release() // counted as queued from here on
  return appended
}

function arrivalMs({ node, clockGuard }: IngestRoutesServices): number {
  return Math.round(node?.clock.now() ?? clockGuard.arrival())
}

function newestOf(records: EventRecord[]): number | null {
  let newest: number | null = null
  for (const { occurredAtMs } of records) if (newest === null || occurredAtMs > newest) newest = occurredAtMs
  return newest
}

/**
 * 202 with the counts, plus the issues when some events were rejected, and those of observations that were of no use;
 * 400 or 403 when all events were rejected.
 */
function answer(
  services: IngestRoutesServices,
  key: ApiKey,
  accepted: Omit<Accepted, 'records'>,
  result: AppendResult,
  count: RequestCount,
  unused: readonly Issue[],
): Response {
  const { rejected } = accepted
  for (const railed of result.rejected)
    rejected.push(guardRailRejected(accepted.positions[railed.index]!, railed))
  count.accepted = result.accepted
  count.deduped = result.deduped
  count.rejected = rejected.length
  if (rejected.length === 0 && unused.length === 0)
    return jsonText(`{"ok":true,"accepted":${result.accepted},"deduped":${result.deduped}}`, 202)
  const warnings = unused.length === 0 ? {} : { warnings: unused }
  if (rejected.length === 0)
    return json({ ok: true, accepted: result.accepted, deduped: result.deduped, ...warnings }, 202)
  rejected.sort((a, b) => a.index - b.index)
  services.rejections.add(eventSamples(key, services.clock.now(), rejected))
  if (rejected.length === accepted.sent) throw allRejected(rejected)
  const errors = rejected.flatMap((event) => event.issues)
  const counts = { accepted: result.accepted, deduped: result.deduped, rejected: rejected.length }
  return json({ ok: false, ...counts, errors, ...warnings }, 202)
}
